"""The code a command is started from: its commit, and what of it is not committed. Asks git, so it is for the program that starts one.

Nothing of the repository is touched: git works on a copy of its index and writes objects to a temporary folder.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.content.canonical import digest
from spanreplay.content.redaction import Redactor

DIFF_LIMIT: Final = 4 * 2**20
"""Bytes of a diff that is kept."""
_FILE_LIMIT: Final = 2**20
"""Bytes of a file that is not in the commit, or of a binary one that has changed, up to which it is kept."""
_FILES: Final = 1000
_SECONDS: Final = 10
_LEFT_OUT: Final = 20
"""Files that are named as left out."""
_GIT: Final = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
_DIFF: Final = (
    "--binary",
    "--full-index",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class GitError(Exception):
    """git is not there, did not answer in time, or refused; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The state of a working tree. As JSON it is ``spanreplay.run.code``.

    Attributes:
        root: top folder of the working tree.
        commit: what is checked out; ``None`` before the first commit.
        files: what is not committed: ``M agent.py``, ``A new.py``, ``D gone.py``.
        diff: all of it as one diff of git against the commit, redacted; ``None`` where it is not known, ``""`` where there is none.
        encoding: how ``diff`` becomes bytes: ``utf-8``, or ``latin-1`` for one that is no UTF-8.
        size: bytes of the diff.
        left_out: files that the diff lacks, as they are too large.
        redacted: how many secrets were taken out of the diff.
        why: why ``diff`` is not known.
    """

    root: str
    commit: str | None = None
    files: tuple[str, ...] = ()
    diff: str | None = None
    encoding: str = "utf-8"
    size: int = 0
    left_out: tuple[str, ...] = ()
    redacted: int = 0
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The value of ``spanreplay.run.code``."""
        return {
            "root": self.root,
            "commit": self.commit,
            "dirty": None if self.diff is None and not self.files else bool(self.files),
            "files": list(self.files),
            "diff": self.diff,
            "digest": None if self.diff is None else digest(self.diff),
            "encoding": self.encoding,
            "size": self.size,
            "left_out": list(self.left_out),
            "redacted": self.redacted,
            "why": self.why,
        }


def code_of(folder: Path, redactor: Redactor) -> Code | None:
    """The state of the working tree around a folder; ``None`` where there is none. Raises nothing.

    Args:
        folder: where a command is started.
        redactor: takes secrets out of the diff.
    """
    top = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    if top is None:
        return None
    from spanreplay.recording.definition import commit

    known = commit(folder)
    try:
        changed = changes(top)
        if not changed:
            return Code(root=str(top), commit=known, diff="")
        files = tuple(f"{how} {name}" for how, name in changed)
        try:
            data, left_out = _uncommitted(top, [name for _, name in changed], known)
        except GitError as error:
            return Code(root=str(top), commit=known, files=files[:_FILES], why=str(error))
    except (GitError, OSError) as error:
        return Code(root=str(top), commit=known, why=str(error))
    encoding = "utf-8"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text, encoding = data.decode("latin-1"), "latin-1"
    clean, secrets = redactor.text(text)
    return Code(
        root=str(top),
        commit=known,
        files=files[:_FILES],
        diff=clean,
        encoding=encoding,
        size=len(data),
        left_out=tuple(left_out[:_LEFT_OUT]),
        redacted=secrets,
    )


def changes(top: Path) -> list[tuple[str, str]]:
    """What differs from the commit: ``M``, ``A`` or ``D``, and the file's name below the top folder. Ignored files are not among them.

    Raises:
        GitError: git does not say.
    """
    told = git(top, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    found = []
    for entry in told.decode("utf-8", "surrogateescape").split("\0"):
        if entry:
            name = entry[3:]
            how = "A" if entry[:2] == "??" or "A" in entry[:2] else "D" if not os.path.lexists(top / name) else "M"
            found.append((how, name))
    return sorted(found, key=lambda change: change[1])


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, given: bytes | None = None) -> bytes:
    """What git prints.

    Args:
        folder: where it runs.
        *arguments: of git.
        environment: variables beside those of this process.
        given: its standard input.

    Raises:
        GitError: it is not there, took too long, or failed.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables = {**inherited, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(environment or {})}
    try:
        done = subprocess.run(  # noqa: S603 — git, with arguments of ours
            [*_GIT, *arguments], cwd=folder, env=variables, input=given or b"", capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took more than {_SECONDS} s") from error
    except (OSError, ValueError) as error:  # no folder, or no name of one
        raise GitError(f"git cannot be run in {str(folder)[:200]!r}: {getattr(error, 'strerror', None) or error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(f"git {arguments[0]}: {said[0] if said else f'exit code {done.returncode}'}"[:300])
    return done.stdout


def _uncommitted(top: Path, names: Sequence[str], known: str | None) -> tuple[bytes, list[str]]:
    """One diff of all that differs from the commit, and the files that it lacks."""
    kept: list[str] = []
    left_out: list[str] = []
    room = DIFF_LIMIT
    for name in names:
        size = _size(top / name)
        if size > _FILE_LIMIT or size > room or len(kept) >= _FILES:
            left_out.append(name)
        else:
            room -= size
            kept.append(name)
    told = git(top, "rev-parse", "--git-path", "index", "--git-path", "objects").decode("utf-8", "surrogateescape").splitlines()
    index, objects = (top / line for line in told)
    with tempfile.TemporaryDirectory(prefix="spanreplay-git-") as scratch:
        copy = Path(scratch) / "index"
        if index.is_file():
            shutil.copy2(index, copy)  # with its time: git reads a file again that is no older than the index
        others = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        environment = {
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(Path(scratch) / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join([str(objects), *([others] if others else [])]),
            "GIT_LITERAL_PATHSPECS": "1",
        }
        (Path(scratch) / "objects").mkdir()
        if kept:
            listed = b"\0".join(os.fsencode(name) for name in kept)
            git(top, "add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul", environment=environment, given=listed)
        against = (
            known if known is not None else git(top, "hash-object", "-t", "tree", "-w", "--stdin", environment=environment).decode().strip()
        )
        data = git(top, "diff", "--cached", *_DIFF, against, environment=environment)
    if len(data) > DIFF_LIMIT:
        raise GitError(f"the diff has {len(data)} bytes, more than the {DIFF_LIMIT} that are kept")
    return data, left_out


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # deleted
        return 0
