"""Which versions of a whole command have the words that differ: variables, arguments, dependencies, files, Python."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spanreplay.replay.reexecution._cause_hits import CALLED, POSSIBLE, SEEN
from spanreplay.replay.reexecution.looking import SHORT, Looked, holds
from spanreplay.replay.reexecution.versions_now import Change

_LINE_LENGTH: Final = 60
_FILES: Final = 300
_BYTES: Final = 8 * 2**20
_READ: Final = frozenset({".py", ".txt", ".md", ".json", ".yaml", ".yml", ".toml", ".jinja", ".j2"})


def known_values(change: Change) -> Iterator[str]:
    """What of a change stands in a text as it is."""
    match change.kind:
        case "variable":
            yield os.environ.get(change.name) or ""
        case "argv":
            yield from (word for word in (change.actual or "").split() if word not in (change.recorded or "").split())
        case "cwd" | "python":
            yield change.actual or ""
        case _:
            pass


def read_text(path: Path, room: int = _BYTES) -> str:
    """The beginning of a file; nothing where it cannot be read.

    Args:
        path: of the file.
        room: characters, at most.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(room)
    except OSError:
        return ""


class Versions:
    """Looks for words in what has changed; the texts of a dependency are read once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def strength(self, change: Change, added: Sequence[str], removed: Sequence[str], looked: Looked, evidence: Mapping[str, Any]) -> int:
        """How a change is tied to a difference.

        Args:
            change: a version that is another one now.
            added: the words that only the actual value has.
            removed: the words that only the recorded value has.
            looked: both, as they are looked for in files.
            evidence: of the difference.
        """
        match change.kind:
            case "variable":
                value = os.environ.get(change.name)
                seen = (value is not None and _reaches(value, added)) or (
                    change.recorded is not None and _reaches(change.recorded, removed)
                )
            case "argv":
                was, now = (change.recorded or "").split(), (change.actual or "").split()
                seen = any(_reaches(a, added) for a in now if a not in was) or any(_reaches(a, removed) for a in was if a not in now)
            case "cwd":
                seen = any(change.actual is not None and change.actual in text for text in added)
            case "dependency":
                seen = bool(added) and looked.in_file(self._text_of(change))
                if not seen and not set(change.modules).isdisjoint(evidence.get("packages", ())):
                    return CALLED
            case "file":
                seen = bool(added) and looked.in_file(read_text(Path(change.name)))
            case "python":
                seen = any(change.actual is not None and change.actual in text for text in added)
            case _:
                seen = False
        return SEEN if seen else POSSIBLE

    def words(self, change: Change, texts: Sequence[str]) -> frozenset[str]:
        """Which of the words that differ a variable, or a dependency, has."""
        match change.kind:
            case "variable":
                values = [value for value in (os.environ.get(change.name), change.recorded) if value]
                return frozenset(text for text in texts if any(_reaches(value, [text]) for value in values))
            case "dependency":
                return frozenset(text for text in texts if holds(self._text_of(change), text))
            case _:
                return frozenset()

    def _text_of(self, change: Change) -> str:
        """The texts of a distribution that has changed."""
        if change.name not in self._texts:
            files, room = 0, _BYTES
            parts: list[str] = []
            for place in change.places:
                for path in [Path(place)] if Path(place).is_file() else sorted(Path(place).rglob("*")):
                    if path.suffix in _READ and files < _FILES and room > 0:
                        parts.append(read_text(path, room))
                        files, room = files + 1, room - len(parts[-1])
            self._texts[change.name] = "\n".join(parts)
        return self._texts[change.name]


def _reaches(value: str, texts: Sequence[str]) -> bool:
    """Is a value among words that differ?"""
    if len(value) < SHORT - 1:
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for text in texts if value and len(text) <= _LINE_LENGTH)
    return any(value in text or (len(text) >= SHORT and text in value) for text in texts)
