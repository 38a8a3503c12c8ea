"""What a recorded command is: its definition, from nothing that starts a process or takes long."""

import hmac
import os
import re
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.credentials import credential_names
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter import environment_variables as env

_ENVIRONMENT: Final = re.compile(
    r"(OTEL_(?!.*HEADERS|.*CERTIFICATE|.*KEY).*|SPANREPLAY_(SPAN_CONTENT|RUN_PER|DURABILITY|SESSION|USER|SEED_SECRETS)"
    r"|PYTHON(HASHSEED|OPTIMIZE|UTF8|IOENCODING|DONTWRITEBYTECODE)|LANG|LC_ALL|TZ|VIRTUAL_ENV"
    r"|(OPENAI|ANTHROPIC)_(BASE_URL|API_BASE|MODEL|API_VERSION)|HTTPS?_PROXY|NO_PROXY)"
)
"""Names of variables that are kept: what shapes a run and is no secret by its nature. Values are redacted like any text."""

HASH_SEED: Final = "PYTHONHASHSEED"

PROXY: Final = "spanreplay.replay.proxy.serving"
"""The module that stands before a command that is not Python's: what it is started with names that command, after ``--``."""

_PASSING: Final = re.compile(
    r"SPANREPLAY_.*|OTEL_.*|SSH_.*|XDG_.*|DBUS_.*|TERM(_.*)?|PYTEST_.*|GIT_.*|LESS.*|LS_COLORS|HIST.*|PS\d|_|SHLVL|PWD|OLDPWD|PATH|PYTHONPATH"
    r"|COLUMNS|LINES|DISPLAY|WINDOWID|WAYLAND_.*|SESSION_.*|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_.*|TMPDIR|TEMP|TMP|SQLITE_TMPDIR|TRACEPARENT"
    r"|TRACESTATE|BAGGAGE|NO_COLOR|FORCE_COLOR|EDITOR|PAGER|MAIL|LOGNAME|PYTHONUNBUFFERED"
)
"""Names of variables that belong to a terminal or to one start of a program, and shape no run."""
_VARIABLES: Final = 500
_MARK: Final = 4
"""Hex digits of a variable's mark: enough to see that it is another one, too few to find out what it was."""

LOCKS: Final = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock", "conda-lock.yml", "requirements.txt")
"""Files that pin dependencies; the first that is there, in the working folder or above it in its repository, is the lock."""
_NAMED_FILES: Final = 50
_LOCK_BYTES: Final = 16 * 2**20
_IMAGE: Final = ("container.image.name", "container.image.id", "container.image.tags", "container.image.repo_digests")
_LOCAL_TIME: Final = "/etc/localtime"
_RELEASE: Final = Path("/etc/os-release")
_CONTAINER: Final = Path("/run/.containerenv")
"""What podman tells a container of itself."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_DISTRIBUTION: Final = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(-[^-]+)?\.(dist-info|egg-info)")


def definition(redactor: Redactor) -> str:
    """The definition of this process's command: canonical JSON.

    ``argv``, ``files`` (those that ``argv`` names, by their digests), ``cwd``, ``python``, ``platform``, ``timezone``, ``image`` of the
    container, ``environment`` (allow-listed variables), ``credentials`` (names of the variables that held one, never a value) and
    ``versions``. Equal commands have equal ones. In the process of a proxy, ``argv`` is the command that it stands before, empty if it
    knows none, and ``proxy`` has its ``upstreams``.
    """
    served = served_command(sys.orig_argv)
    argv = sys.orig_argv if served is None else served[0]

    def clean(text: str) -> str:
        return redactor.text(text)[0]

    system = os.uname() if hasattr(os, "uname") else None
    cwd = _cwd()
    return canonical_json(
        {
            "argv": redactor.arguments(argv),
            "cwd": None if cwd is None else str(cwd),
            "python": {"version": sys.version.split()[0], "implementation": sys.implementation.name, "executable": sys.executable},
            "platform": {
                "system": sys.platform,
                "machine": system.machine if system else None,
                "release": system.release if system else None,
                "distribution": _distribution(),
            },
            "timezone": timezone(),
            "image": _image(os.environ),
            "files": {} if cwd is None else files(cwd, argv),
            "environment": {
                name: clean(value)
                for name, value in sorted(os.environ.items())
                if _ENVIRONMENT.fullmatch(name) and not (name == HASH_SEED and chosen_hash_seed())
            },
            "credentials": credential_names(os.environ),
            "versions": versions(cwd),
            **({} if served is None else {"proxy": {"upstreams": [clean(url) for url in served[1]]}}),
        }
    )


def served_command(arguments: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The command that a proxy stands before, and the upstreams it was given; ``None`` for what is no proxy.

    Args:
        arguments: ``sys.orig_argv``.
    """
    if list(arguments[1:3]) != ["-m", PROXY]:
        return None
    end = arguments.index("--") if "--" in arguments else len(arguments)
    upstreams = [value for option, value in pairwise(arguments[:end]) if option == "--upstream"]
    return list(arguments[end + 1 :]), upstreams


def timezone() -> str | None:
    """The time zone of this machine, such as ``Europe/Berlin``, where ``TZ`` names no other; ``None`` where it does not say."""
    _, found, name = os.path.realpath(_LOCAL_TIME).rpartition("/zoneinfo/")
    return name if found else None


def chosen_hash_seed() -> str | None:
    """The hash seed that ``record`` chose for this command, as the user had chosen none: another one each time, no part of what it is."""
    chosen = os.environ.get(env.SPANREPLAY_HASH_SEED)
    return chosen if chosen is not None and chosen == os.environ.get(HASH_SEED) else None


def files(folder: Path, arguments: Sequence[str]) -> dict[str, str]:
    """The files that a command names, such as its script, by name; each with the digest of its content.

    Args:
        folder: where the command was started.
        arguments: its own name first.
    """
    found: dict[str, str] = {}
    for argument in arguments[1 : 1 + _NAMED_FILES]:
        try:
            path = folder / argument
            if argument and path.is_file() and path.stat().st_size <= _LOCK_BYTES:
                found[argument] = f"sha256:{sha256(path.read_bytes()).hexdigest()}"
        except (OSError, ValueError):  # no name of a file
            continue
    return found


def marks(environ: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """What is told of the variables whose value is not kept: a mark that says whether it is another one, and nothing else.

    It is the first digits of a digest that is keyed by the run's salt, so it tells nothing across runs. Credentials have none.

    Args:
        environ: the variables.
        redactor: knows the salt, and what is a secret by its form.
    """
    secret = frozenset(credential_names(environ))
    found: dict[str, str] = {}
    for name, value in sorted(environ.items()):
        if name in secret or _PASSING.fullmatch(name) or _ENVIRONMENT.fullmatch(name) or redactor.text(value)[1]:
            continue
        found[name] = mark_of(name, value, redactor.policy)
        if len(found) == _VARIABLES:
            break
    return found


def mark_of(name: str, value: str, policy: RedactionPolicy) -> str:
    """The mark of one variable."""
    text = f"{name}={value}".encode("utf-8", "surrogateescape")
    return hmac.new(policy.salt.encode(), text, sha256).hexdigest()[:_MARK]


def versions(folder: Path | None) -> Mapping[str, Any]:
    """Versions of code and dependencies.

    ``dependencies`` has the sorted ``name==version`` lines of every distribution on ``sys.path`` and their digest, read from the names of
    their folders (PEP 376), which takes no file to be opened; and name and digest of the lock file.
    """
    lines = sorted(_distributions())
    return {
        "code": {"commit": None if folder is None else commit(folder), "dirty": None},
        "dependencies": {
            "digest": digest("\n".join(lines)),
            "count": len(lines),
            "packages": lines,
            "lock": None if folder is None else lock(folder),
        },
    }


def lock(folder: Path, top: Path | None = None) -> Mapping[str, str] | None:
    """The lock file that is in force in a folder: ``file`` and ``digest``.

    Args:
        folder: where a command is started.
        top: the last folder above it to look in; by default that of the repository.
    """
    for parent in (folder, *folder.parents):
        for name in LOCKS:
            try:
                if (parent / name).is_file() and (parent / name).stat().st_size <= _LOCK_BYTES:
                    return {"file": name, "digest": f"sha256:{sha256((parent / name).read_bytes()).hexdigest()}"}
            except OSError:
                continue
        if parent == top or (parent / ".git").exists():
            break
    return None


def _distribution() -> str | None:
    """Name and version of the Linux distribution, see os-release(5)."""
    try:
        lines = _RELEASE.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    told = {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in lines)}
    return " ".join(filter(None, (told.get("ID"), told.get("VERSION_ID")))) or None


def _image(environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """The image of the container, as ``OTEL_RESOURCE_ATTRIBUTES`` or podman tell it; a process cannot find it out by itself."""
    found: dict[str, str] = {}
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, _, value = pair.strip().partition("=")
        if name in _IMAGE and value:
            found[name.removeprefix("container.image.")] = unquote(value)
    try:
        told = _CONTAINER.read_text(encoding="utf-8") if not found and _CONTAINER.is_file() else ""
    except (OSError, ValueError):
        told = ""
    for line in told.splitlines():
        name, _, value = line.partition("=")
        if name in ("image", "imageid") and value.strip('"'):
            found["id" if name == "imageid" else "name"] = value.strip('"')
    return found or None


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
    """A short name for what runs: the script or module, without folders; before what a proxy stands."""
    served = served_command(sys.orig_argv)
    if served is not None:
        return Path(served[0][0]).name if served[0] else "proxy"
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
