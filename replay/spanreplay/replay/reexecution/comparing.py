"""How inputs are compared: all of them exactly, or without what the user has named."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Self, TypeAlias

from spanreplay.replay.reexecution.places import Keys, PatternError, Place

Mode: TypeAlias = Literal["strict", "tolerant"]

_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_REGEX: Final = re.compile(r"/(?P<body>.*)/(?P<flags>[ims]*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Comparing:
    r"""How a replay compares, and how far it goes. It reaches every process of a replayed command as JSON.

    Attributes:
        mode: ``strict``: any difference of an input is one. ``tolerant``: but those in ``ignore``.
        ignore: places (see :mod:`spanreplay.replay.reexecution.places`), and regular expressions between slashes, ``/\d+ ms/``, whose
            matches are taken out of every text on both sides. Flags ``i``, ``m``, ``s`` may follow the last slash.
        all_differences: a call that differs from the step at its place is answered all the same, so that later differences are found too.

    Raises:
        PatternError: one of ``ignore`` is neither.
    """

    mode: Mode = "strict"
    ignore: tuple[str, ...] = ()
    all_differences: bool = False

    def __post_init__(self) -> None:
        """Read the patterns, so that a wrong one is said at once."""
        assert self._places is not None  # noqa: S101 — reads them
        assert self._texts is not None  # noqa: S101

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return tuple(Place.read(text) for text in self.ignore if not text.startswith("/"))

    @cached_property
    def _texts(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_pattern(text) for text in self.ignore if text.startswith("/"))

    @property
    def tolerant(self) -> bool:
        """Whether anything is ignored."""
        return self.mode == "tolerant" and bool(self.ignore)

    def ignores(self, keys: Keys, recorded: Any, actual: Any) -> bool:
        """Whether two values at a place count as equal, though they differ."""
        if not self.tolerant:
            return False
        if any(place.covers(keys) for place in self._places):
            return True
        return bool(self._texts) and isinstance(recorded, str) and isinstance(actual, str) and self._bare(recorded) == self._bare(actual)

    def _bare(self, text: str) -> str:
        for pattern in self._texts:
            text = pattern.sub("", text)
        return text

    def to_json(self) -> dict[str, Any]:
        """As in the plan of a replayed command."""
        return {"mode": self.mode, "ignore": list(self.ignore), "all_differences": self.all_differences}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read :meth:`to_json` back."""
        return cls(mode=found["mode"], ignore=tuple(found["ignore"]), all_differences=found["all_differences"])


def _pattern(text: str) -> re.Pattern[str]:
    found = _REGEX.fullmatch(text)
    if found is None or not found["body"]:
        raise PatternError(f"wanted a regular expression between slashes, such as /request [0-9]+/, found {text!r}")
    flags = 0
    for letter in found["flags"]:
        flags |= _FLAGS[letter]
    try:
        return re.compile(found["body"], flags)
    except re.error as error:
        raise PatternError(f"{text}: {error}") from error


EXACT: Final = Comparing()
"""Everything counts."""
