"""The recorded state of a command, put back where it was, for the replay alone.

The folder around each path is overlaid (overlayfs, in a namespace of mounts): the program finds the state of then under the same paths,
and what it changes lies in scratch. The real files are not touched, and the next replay finds the state of then again.
"""

import base64
import ctypes
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from spanreplay.replay.isolation.kernel import NotOfferedError
from spanreplay.replay.isolation.namespaces import NEW_MOUNTS, enter
from spanreplay.replay.model import Json

_FOLDER: Final = "state"
_RECURSIVE_PRIVATE: Final = 0x4000 | 1 << 18
_RECURSIVE_BIND: Final = 4096 | 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was put back."""

    paths: tuple[Path, ...] = ()
    overlaid: tuple[Path, ...] = ()
    """Folders in which nothing that is written reaches the real ones."""


def paths_of(state: Json) -> tuple[Path, ...]:
    """The paths whose state a run has."""
    return tuple(Path(kept["path"]) for kept in _kept(state))


def put_back(scratch: Path, state: Json, keep: Sequence[Path] = ()) -> Restored:
    """Put the state back, in the view of this process and of every child it will have. For a process of one thread.

    The first process of a replay restores it; the others go on with what those before them have made of it.

    Args:
        scratch: of the replay.
        state: as in ``spanreplay.run.state``, see :mod:`spanreplay.recording.state`.
        keep: what must go on to be the real thing, beside scratch. The state wins over what lies in it and over what holds it.

    Raises:
        NotOfferedError: the machine does not allow it; the real files are what the program sees.
    """
    kept = list(_kept(state))
    if not kept:
        return Restored()
    here = Path.cwd()
    paths = [Path(one["path"]) for one in kept]
    folders = _around(paths)
    real = [scratch, *(one for one in (path.resolve() for path in keep) if not any(_share(one, path) for path in paths))]
    enter(NEW_MOUNTS)
    with _held(real) as held:  # only now: what was opened in another namespace cannot be mounted in this one
        try:
            _mount(None, Path("/"), None, _RECURSIVE_PRIVATE)
            for number, folder in enumerate(folders):
                _overlay(folder, scratch / _FOLDER / str(number))
                for path, descriptor in held.items():
                    if path.is_relative_to(folder):
                        _mount(f"/proc/self/fd/{descriptor}", path, None, _RECURSIVE_BIND)
            os.chdir(here)  # a working folder that was entered before is the real one
            if _is_first(scratch):
                for one in kept:
                    _restore(one)
        except OSError as error:
            raise NotOfferedError(f"the recorded state cannot be put back: {error}") from error
    return Restored(paths=tuple(paths), overlaid=tuple(folders))


def _kept(state: Json) -> Iterator[Mapping[str, Any]]:
    paths = state.get("paths") if isinstance(state, Mapping) else None
    for one in paths if isinstance(paths, Sequence) and not isinstance(paths, str) else ():
        path = one.get("path") if isinstance(one, Mapping) else None
        if isinstance(path, str) and path.startswith("/") and "\0" not in path and os.path.normpath(path) == path != "/":
            yield one


def _around(paths: Sequence[Path]) -> list[Path]:
    """The folders that are there around some paths, none of them inside another."""
    found = {next(parent for parent in path.parents if parent.is_dir()) for path in paths}
    return sorted(one for one in found if not any(other in one.parents for other in found))


def _share(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


@contextmanager
def _held(paths: Sequence[Path]) -> Iterator[dict[Path, int]]:
    """Descriptors of what is there of some paths."""
    found: dict[Path, int] = {}
    try:
        for path in dict.fromkeys(one.resolve() for one in paths):
            with suppress(OSError):
                found[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
        yield found
    finally:
        for descriptor in found.values():
            os.close(descriptor)


def _overlay(folder: Path, beside: Path) -> None:
    upper, work = beside / "upper", beside / "work"
    for one in (upper, work):
        one.mkdir(parents=True, exist_ok=True)
    about = folder.stat()
    upper.chmod(about.st_mode & 0o7777)
    options = ",".join(f"{name}={_escaped(path)}" for name, path in (("lowerdir", folder), ("upperdir", upper), ("workdir", work)))
    try:
        _mount("overlay", folder, "overlay", 0, f"{options},userxattr")
    except OSError:
        _mount("overlay", folder, "overlay", 0, options)


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _mount(source: str | None, target: Path, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    given = None if options is None else os.fsencode(options)
    if ctypes.CDLL(None, use_errno=True).mount(*texts, ctypes.c_ulong(flags), given):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _is_first(scratch: Path) -> bool:
    try:
        os.close(os.open(scratch / _FOLDER / "restored", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _restore(kept: Mapping[str, Any]) -> None:
    path = Path(kept["path"])
    for present in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))):
        if present.is_dir() and not present.is_symlink():
            shutil.rmtree(present)
        else:
            present.unlink(missing_ok=True)
    if kept.get("kind") == "folder":
        path.mkdir(parents=True, exist_ok=True)
    for name in _names(kept.get("folders")):
        (path / name).mkdir(parents=True, exist_ok=True)
    for file in kept.get("files") or ():
        content = _content(file)
        if content is None:
            continue
        names = [""] if file["name"] == "" else list(_names([file["name"]]))
        if not names:
            continue
        target = path / names[0] if names[0] else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        mode = file.get("mode")
        target.chmod(mode & 0o777 if isinstance(mode, int) else 0o600)


def _names(found: Any) -> Iterator[str]:
    """Names below a path, and none that leaves it."""
    for name in found if isinstance(found, Sequence) and not isinstance(found, str) else ():
        if isinstance(name, str) and name and "\0" not in name and not name.startswith("/") and ".." not in PurePosixPath(name).parts:
            yield name


def _content(file: Any) -> bytes | None:
    content = file.get("content") if isinstance(file, Mapping) and isinstance(file.get("name"), str) else None
    if not isinstance(content, str):
        return None
    try:
        return base64.b64decode(content, validate=True) if file.get("encoding") == "base64" else content.encode("utf-8", "surrogateescape")
    except ValueError:
        return None
