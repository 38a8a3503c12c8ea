"""What became of texts and headers, remembered: most of what a step says, the one before it said too."""

from typing import Final

from spanreplay.content._histories import Histories

_ENTRIES: Final = 256
_CHARACTERS: Final = 4_000_000
_TEXT: Final = 65_536
_HEADERS: Final = 4096
_SHORT: Final = 256
_NAMES: Final = 4096


class Answers:
    """What became of texts, as long as no further secret is learnt.

    Two generations: a text that is asked for again moves to the recent ones; when these are many, the older are dropped.
    """

    __slots__ = ("characters", "headers", "histories", "names", "older", "recent")

    def __init__(self) -> None:
        self.recent: dict[str, tuple[str, int]] = {}
        self.older: dict[str, tuple[str, int]] = {}
        self.characters = 0
        self.headers: dict[tuple[str, str], tuple[tuple[str, str], int]] = {}
        self.names: dict[str, str] = {}
        self.histories = Histories()

    def keep(self, text: str, result: tuple[str, int]) -> None:
        """Remember what became of a text that is not too long for that."""
        if len(text) > _TEXT:
            return
        if len(self.recent) >= _ENTRIES or self.characters >= _CHARACTERS:
            self.recent, self.older, self.characters = {}, self.recent, 0
        self.recent[text] = result
        self.characters += len(text)

    def keep_header(self, pair: tuple[str, str], answer: tuple[tuple[str, str], int]) -> None:
        """Remember what became of a header."""
        if len(pair[0]) + len(pair[1]) > _SHORT:
            return
        if len(self.headers) >= _HEADERS:
            self.headers = {}
        self.headers[pair] = answer

    def keep_name(self, name: str, clean: str) -> None:
        """Remember what became of a name."""
        if len(name) > _SHORT:
            return
        if len(self.names) >= _NAMES:
            self.names = {}
        self.names[name] = clean
