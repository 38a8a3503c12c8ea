"""What a recorded command is: its definition, from nothing that starts a process or takes long."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.redaction import Redactor, credential_names
from spanreplay.exporter import environment_variables as env

_ENVIRONMENT: Final = re.compile(
    r"(OTEL_(?!.*HEADERS|.*CERTIFICATE|.*KEY).*|SPANREPLAY_(SPAN_CONTENT|RUN_PER|DURABILITY|SESSION|USER)"
    r"|PYTHON(HASHSEED|OPTIMIZE|UTF8|IOENCODING|DONTWRITEBYTECODE)|LANG|LC_ALL|TZ|VIRTUAL_ENV"
    r"|(OPENAI|ANTHROPIC)_(BASE_URL|API_BASE|MODEL|API_VERSION)|HTTPS?_PROXY|NO_PROXY)"
)
"""Names of variables that are kept: what shapes a run and is no secret by its nature. Values are redacted like any text."""

HASH_SEED: Final = "PYTHONHASHSEED"

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_DISTRIBUTION: Final = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(-[^-]+)?\.(dist-info|egg-info)")


def definition(redactor: Redactor) -> str:
    """The definition of this process's command: canonical JSON.

    ``argv``, ``cwd``, ``python``, ``platform``, ``environment`` (allow-listed variables), ``credentials`` (names of the variables that held
    one, never a value) and ``versions``.
    """

    def clean(text: str) -> str:
        return redactor.text(text)[0]

    system = os.uname() if hasattr(os, "uname") else None
    cwd = _cwd()
    return canonical_json(
        {
            "argv": redactor.arguments(sys.orig_argv),
            "cwd": None if cwd is None else str(cwd),
            "python": {"version": sys.version.split()[0], "implementation": sys.implementation.name, "executable": sys.executable},
            "platform": {
                "system": sys.platform,
                "machine": system.machine if system else None,
                "release": system.release if system else None,
            },
            "environment": {
                name: clean(value)
                for name, value in sorted(os.environ.items())
                if _ENVIRONMENT.fullmatch(name) and not (name == HASH_SEED and chosen_hash_seed())
            },
            "credentials": credential_names(os.environ),
            "versions": versions(cwd),
        }
    )


def chosen_hash_seed() -> str | None:
    """The hash seed that ``record`` chose for this command, as the user had chosen none: another one each time, no part of what it is."""
    chosen = os.environ.get(env.SPANREPLAY_HASH_SEED)
    return chosen if chosen is not None and chosen == os.environ.get(HASH_SEED) else None


def versions(folder: Path | None) -> Mapping[str, Any]:
    """Versions of code and dependencies.

    ``dependencies`` is a digest of the sorted ``name==version`` lines of every distribution on ``sys.path``, read from the names of
    their folders (PEP 376), which takes no file to be opened.
    """
    lines = sorted(_distributions())
    return {
        "code": {"commit": None if folder is None else commit(folder), "dirty": None},
        "dependencies": {"digest": digest("\n".join(lines)), "count": len(lines)},
    }


def commit(folder: Path) -> str | None:
    """The commit that is checked out around ``folder``, from the files of ``.git``; ``None`` if there is none."""
    try:
        for parent in (folder, *folder.parents):
            git = parent / ".git"
            if git.is_file():  # a worktree or submodule
                git = parent / git.read_text().partition("gitdir:")[2].strip()
            if git.is_dir():
                return _head(git)
    except (OSError, ValueError):
        pass
    return None


def _head(git: Path) -> str | None:
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head if _COMMIT.fullmatch(head) else None
    name = head[4:].strip()
    common = git / "commondir"
    for place in (git, git / common.read_text().strip() if common.is_file() else git):
        loose = place / name
        if loose.is_file():
            return loose.read_text().strip()
        packed = place / "packed-refs"
        if packed.is_file():
            for line in packed.read_text().splitlines():
                if line.endswith(" " + name):
                    return line.split(" ", 1)[0]
    return None


def _distributions() -> set[str]:
    found: set[str] = set()
    for entry in sys.path:
        try:
            listing = os.listdir(entry or ".")  # noqa: PTH208 — a scan of names only
        except OSError:
            continue
        for name in listing:
            match = _DISTRIBUTION.fullmatch(name) if name.endswith(("-info",)) else None
            if match:
                found.add(f"{match['name'].lower().replace('_', '-')}=={match['version']}")
    return found


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def program() -> str:
    """A short name for what runs: the script or module, without folders."""
    arguments = sys.orig_argv[1:]
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option == "-m" and arguments:
            return arguments[0]
        if option.startswith("-c"):
            return "python -c"
        if option in ("-X", "-W") and arguments:
            arguments.pop(0)
    return Path(arguments[0]).name if arguments else "python"
