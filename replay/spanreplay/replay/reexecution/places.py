"""Places in a JSON value, named by patterns: what a tolerant replay ignores, and where a model API has ids that programs make.

A pattern is a path as differences name it, with the wildcards of RFC 9535 (JSONPath): ``messages[*].content``, ``arguments.when``,
``tools[*].function.description``, ``metadata.*``, ``['a name']``, ``..description`` for any depth. A leading ``$`` is allowed. It names the
value there and all below it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Keys: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of members and numbers of items, from the outside in."""

_ANY: Final = None
_TOKEN: Final = re.compile(
    r"(?P<deep>\.\.)?(?:(?<!\.)\.)?(?:(?P<name>[^.\[\]*'\"\s]+)|(?P<star>\*)|\[(?:(?P<index>\d+)|(?P<all>\*)|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\])"
)


class PatternError(ValueError):
    """A text names no place."""


@dataclass(frozen=True, slots=True)
class _Part:
    key: str | int | None
    """``None``: any."""
    deep: bool
    """At any depth from here."""


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern, read.

    Attributes:
        text: as it was given.
    """

    text: str
    _parts: tuple[_Part, ...]

    @classmethod
    def read(cls, text: str) -> "Place":
        """Read a pattern.

        Raises:
            PatternError: it is none.
        """
        rest = text.removeprefix("$")
        at, parts = 0, []
        while at < len(rest):
            found = _TOKEN.match(rest, at)
            if found is None or found.end() == at or (at and rest[at] not in ".["):
                wanted = "wanted a path such as messages[*].content, arguments.when or ..description"
                raise PatternError(f"{wanted}, found {text!r}; not understood: {rest[at:]!r}")
            parts.append(_Part(_key(found), bool(found["deep"])))
            at = found.end()
        if not parts:
            raise PatternError(f"wanted a path such as messages[*].content, found {text!r}, which names everything")
        return cls(text, tuple(parts))

    def covers(self, keys: Keys) -> bool:
        """Whether the value at ``keys`` is there, or below."""
        reached = {0}  # how many parts the keys so far may have used up
        for key in keys:
            following: set[int] = set()
            for used in reached:
                if used == len(self._parts):
                    return True
                part = self._parts[used]
                if part.deep:
                    following.add(used)
                if part.key is _ANY or part.key == key:
                    following.add(used + 1)
            reached = following
        return len(self._parts) in reached


def _key(found: re.Match[str]) -> str | int | None:
    if found["star"] or found["all"]:
        return _ANY
    if found["index"] is not None:
        return int(found["index"])
    return next(found[name] for name in ("name", "single", "double") if found[name] is not None)


def written(keys: Sequence[str | int]) -> str:
    """Keys as people read them: ``messages[0].content``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text
