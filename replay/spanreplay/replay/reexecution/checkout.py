"""The code that a run was recorded with, laid out again in a new folder: its commit, what was not committed, and its packages.

The commit comes from a repository that has it, as a work tree of git beside the user's own, whose files are not touched.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.recording.code import GitError, git
from spanreplay.replay.model import Json, Run
from spanreplay.replay.showing import short_id

REQUIREMENTS: Final = "requirements.recorded.txt"

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PACKAGE: Final = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+")


class CheckoutError(Exception):
    """The code of a run cannot be laid out; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What was laid out.

    Attributes:
        folder: the top folder.
        repository: where the commit came from.
        commit: what is checked out there.
        files: what was not committed, as in :class:`spanreplay.recording.code.Code`.
        left_out: files of the recorded working tree that the record lacks, as they were too large.
        requirements: the file that lists the recorded packages; ``None`` where they are not known.
        lock: name of the lock file that was in force, and whether it is there as it was.
        cwd: where in it the command was started.
        argv: the recorded command.
    """

    folder: Path
    repository: Path
    commit: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    requirements: Path | None
    lock: tuple[str, bool] | None
    cwd: Path
    argv: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As ``spanreplay checkout --json`` prints it."""
        return {
            "folder": str(self.folder),
            "repository": str(self.repository),
            "commit": self.commit,
            "files": list(self.files),
            "left_out": list(self.left_out),
            "requirements": None if self.requirements is None else str(self.requirements),
            "lock": None if self.lock is None else {"file": self.lock[0], "as_recorded": self.lock[1]},
            "cwd": str(self.cwd),
            "argv": list(self.argv),
        }


def check_out(
    runs: Sequence[Run], folder: Path, *, repositories: Sequence[Path] = (), ours: bool = False, without_diff: bool = False
) -> Checkout:
    """Lay out the code of a run in a new folder.

    Args:
        runs: the run, and the others of its recorded command.
        folder: does not exist yet, or is empty.
        repositories: where the commit may be.
        ours: the runs were recorded here, so that the folder that they name is looked into too.
        without_diff: leave out what was not committed.

    Raises:
        CheckoutError: it cannot be done; nothing is left of it.
    """
    command = next((run for run in runs if run.is_command and isinstance(run.code, dict)), None)
    if command is None:
        named = short_id(runs[0].run_id) if runs else "this"
        raise CheckoutError(
            f"the record of run {named} does not say which code it ran: only a command that spanreplay record ran in a git repository does"
        )
    code: dict[str, Json] = command.code
    commit = code.get("commit")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise CheckoutError(f"the repository of run {short_id(command.run_id)} had no commit when it was recorded")
    diff = None if without_diff else _diff(command, code)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckoutError(
            f"{folder} is {'not empty' if folder.is_dir() else 'a file'}; name a folder that does not exist yet, or an empty one"
        )
    folder = folder.resolve()
    recorded = [Path(code["root"])] if ours and isinstance(code.get("root"), str) else []
    repository = _holding(commit, [*recorded, *repositories])
    try:
        git(repository, "worktree", "add", "--detach", "--quiet", str(folder), commit)
    except GitError as error:
        raise CheckoutError(f"commit {commit[:12]} of {repository} cannot be laid out in {folder}: {error}") from error
    try:
        if diff:
            _apply(folder, diff, code)
        return _finished(command, code, folder, repository, commit, without_diff=without_diff)
    except BaseException:
        git(repository, "worktree", "remove", "--force", str(folder))
        raise


def _diff(command: Run, code: dict[str, Json]) -> bytes:
    text = code.get("diff")
    if isinstance(text, str):
        try:
            return text.encode("latin-1" if code.get("encoding") == "latin-1" else "utf-8")
        except ValueError as error:
            raise CheckoutError(f"the uncommitted changes of run {short_id(command.run_id)} are damaged: {error}") from error
    lost = f"what was not committed when run {short_id(command.run_id)} was recorded is not kept"
    raise CheckoutError(f"{lost} ({code.get('why') or 'no reason is recorded'}); --without-diff lays out the commit alone")


def _holding(commit: str, repositories: Sequence[Path]) -> Path:
    looked: list[str] = []
    for repository in dict.fromkeys(path.absolute() for path in repositories):
        try:
            git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
        except GitError as error:
            looked.append(f"{repository} ({'it is not there' if 'cat-file' in str(error) else error})")
            continue
        return repository
    advice = "fetch it, or name a repository that has it with --repository"
    raise CheckoutError(f"commit {commit} was not found; looked in {', '.join(looked) or 'no repository'}; {advice}")


def _apply(folder: Path, diff: bytes, code: dict[str, Json]) -> None:
    try:
        git(folder, "apply", "--whitespace=nowarn", "-", given=diff)
    except GitError as error:
        secrets = code.get("redacted")
        why = f"; {secrets} secrets were taken out of it, and may stand in lines that it changes" if secrets else ""
        raise CheckoutError(
            f"the recorded changes do not apply to the commit: {error}{why}; --without-diff lays out the commit alone"
        ) from error


def _finished(command: Run, code: dict[str, Json], folder: Path, repository: Path, commit: str, *, without_diff: bool) -> Checkout:
    definition: dict[str, Json] = command.definition if isinstance(command.definition, dict) else {}
    cwd = folder
    root, where = code.get("root"), definition.get("cwd")
    if isinstance(root, str) and isinstance(where, str) and Path(where).is_relative_to(root):
        below = folder / Path(where).relative_to(root)
        cwd = below if below.is_dir() else folder
    dependencies = _member(_member(definition, "versions"), "dependencies")
    argv = definition.get("argv")
    return Checkout(
        folder=folder,
        repository=repository,
        commit=commit,
        files=() if without_diff else _texts(code.get("files")),
        left_out=() if without_diff else _texts(code.get("left_out")),
        requirements=_requirements(folder, command, definition, dependencies),
        lock=_lock(folder, cwd, dependencies.get("lock")),
        cwd=cwd,
        argv=_texts(argv),
    )


def _requirements(folder: Path, command: Run, definition: dict[str, Json], dependencies: dict[str, Json]) -> Path | None:
    packages = [line for line in _texts(dependencies.get("packages")) if _PACKAGE.fullmatch(line)]
    if not packages:
        return None
    python = _member(definition, "python").get("version")
    version = python if isinstance(python, str) and re.fullmatch(r"[0-9A-Za-z.+]+", python) else "not recorded"
    path = folder / REQUIREMENTS
    path.write_text(f"# packages of run {command.run_id}; its Python: {version}\n" + "\n".join(packages) + "\n", encoding="utf-8")
    return path


def _lock(folder: Path, cwd: Path, recorded: Json) -> tuple[str, bool] | None:
    """The lock file that was in force, and whether it is the recorded one."""
    from spanreplay.recording.definition import lock

    if not isinstance(recorded, dict) or not isinstance(recorded.get("file"), str):
        return None
    return recorded["file"], lock(cwd, top=folder) == recorded


def _member(value: dict[str, Json], name: str) -> dict[str, Json]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
