"""Texts that are put together when they are asked for.

The requests of a conversation say again what was said before: whole, those of 200 turns take hundreds of times what they are made of. Each
was verified when it was read, and that needs its pieces only.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spanreplay.spans.record import Value


class Joined:
    """A text by its pieces."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def text(self) -> str:
        """All of it."""
        return "".join(self._pieces)


def whole(content: bytes | str | Joined) -> bytes | str:
    """Content, put together if need be."""
    return content.text() if isinstance(content, Joined) else content


class LateAttributes(Mapping[str, Value]):
    """Attributes, some of which are :class:`Joined` until they are asked for. A copy of them is a dict."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, "Value | Joined"]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Value:
        value = self._values[key]
        if isinstance(value, Joined):
            value = self._values[key] = value.text()
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
