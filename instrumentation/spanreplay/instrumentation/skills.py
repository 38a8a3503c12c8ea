"""Skills: folders of instructions and files that an agent loads, with ``SKILL.md`` at their top.

Loading one is a step of kind ``io`` named ``skill NAME``. Its result is ``{"digest": …, "files": {path: sha256}, "texts": {path: text}}``;
a replay reads the folder again and compares. From then on every model call in this context names the skills that were loaded.
The format: <https://agentskills.io>.
"""

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope, in_force
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json, digest
from spanreplay.instrumentation.commands import makes_a_step
from spanreplay.semconv import attributes as names

MAIN: Final = "SKILL.md"

_FILES: Final = 500
_TEXT: Final = 64 * 2**10
"""Characters of a file whose text is kept."""
_BYTES: Final = 16 * 2**20
"""Bytes of all files that are read."""
_NAME: Final = re.compile(r"\A---\r?\n(?:.*\r?\n)*?name:[ \t]*[\"']?([^\"'\r\n]+)[\"']?[ \t]*\r?\n")
_SKIPPED: Final = frozenset({"__pycache__", ".git", "node_modules", ".DS_Store"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill, as it was when it was loaded."""

    name: str
    path: Path
    """Its folder."""
    text: str
    """Of ``SKILL.md``; empty where there is none."""
    digest: str
    """``sha256:<hex>`` of the names and digests of all its files."""
    files: Mapping[str, str]
    """Relative path to the SHA-256 of its bytes."""


def skill(name: str, path: str | os.PathLike[str]) -> Skill:
    """Declare that a skill is loaded: its version is kept with the run, and named by every model call that follows in this context.

    A program that opens a ``SKILL.md`` itself need not call this: it is noticed.

    Args:
        name: of the skill.
        path: its folder, or its ``SKILL.md``.

    Raises:
        OSError: the folder cannot be read.
    """
    with _quietly():
        made, texts = _read(name, Path(path))
    scope = boundary.here()
    if scope is not None:
        _declare(scope, made, texts)
    return made


def opened(path: str) -> None:
    """A ``SKILL.md`` has been opened for reading. Raises nothing."""
    scope = boundary.here()
    if scope is None:
        return
    try:
        with _quietly():
            made, texts = _read(None, Path(path))
    except (OSError, ValueError):
        return
    _declare(scope, made, texts)


def still_loaded() -> dict[str, Any]:
    """What model calls carry of the skills loaded so far."""
    loaded = in_force.get().get(names.SKILLS)
    return {} if loaded is None else {names.SKILLS: loaded}


def _declare(scope: Scope, made: Skill, texts: Mapping[str, str]) -> None:
    attributes = {
        names.GEN_AI_SKILL_NAME: made.name,
        names.GEN_AI_SKILL_SOURCE_URI: made.path.as_posix(),
        names.SKILL_DIGEST: made.digest,
    }
    try:
        if makes_a_step(scope):
            call = Call(
                kind="io",
                name=f"skill {made.name}",
                input=codec.encode({"skill": made.name}),
                attributes=attributes,
                effect="read",
                passed=True,
            )
            result = {"digest": made.digest, "files": dict(made.files), "texts": dict(texts)}
            boundary.call(scope, call, lambda: result)
        elif scope.step is not None:
            scope.step.learn(attributes)
        before = json.loads(in_force.get().get(names.SKILLS, "[]"))
        now = [*(known for known in before if known["name"] != made.name), {"name": made.name, "digest": made.digest}]
        in_force.set(MappingProxyType({**in_force.get(), names.SKILLS: canonical_json(now)}))
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the skill {made.name}")


def _read(name: str | None, path: Path) -> tuple[Skill, dict[str, str]]:
    folder = path.parent if path.name == MAIN else path
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    left = _BYTES
    for file in _walk(folder):
        size = file.stat().st_size
        if len(files) >= _FILES or size > left:
            continue
        data = file.read_bytes()
        left -= len(data)
        place = file.relative_to(folder).as_posix()
        files[place] = sha256(data).hexdigest()
        with contextlib.suppress(UnicodeDecodeError):
            if len(data) <= _TEXT:
                texts[place] = data.decode()
    text = texts.get(MAIN, "")
    found = _NAME.match(text)
    named = name or (found[1].strip() if found else folder.resolve().name)
    return Skill(name=named, path=folder, text=text, digest=digest(canonical_json(files)), files=MappingProxyType(files)), texts


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "a skill is a folder", str(folder))
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(files):
            file = Path(place, name)
            if name not in _SKIPPED and file.is_file() and not file.is_symlink():
                yield file


def _quietly() -> contextlib.AbstractContextManager[None]:
    from spanreplay.instrumentation.shims import untaped

    return untaped.unnamed()
