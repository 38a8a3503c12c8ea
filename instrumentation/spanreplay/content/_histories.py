"""Long texts that begin as an earlier one did, as each request of a conversation does: only what is new in them is looked through.

A text is cut between objects of its arrays, at ``},{"name":``, and each segment is redacted by itself. That gives what redacting the whole
gives: no form of a secret goes on over such a place, but for a quoted string, or a value without quotes, that the segment leaves open.
A segment is read up to the quote after it, and a secret that goes on over its end has the whole text redacted at once.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

LONG: Final = 8_192
"""Characters from which on a text is cut."""
_LEAST: Final = 1_024
_HEAD: Final = 64
_ALIKE: Final = 128
"""Texts that begin with the same characters may be of as many conversations."""
_HELD: Final = 8_000_000
"""Characters of earlier texts that are remembered."""
_CUT: Final = re.compile(r'\},\s{0,40}\{\s{0,40}(?=\\*"[A-Za-z_][A-Za-z0-9_.-]{0,63}\\*"\s?:)')

Segment = Callable[[str, int], "tuple[str, int] | None"]
"""Redacts a segment: a text, and how many characters of it. ``None`` where that takes the text around it."""


class _Known(NamedTuple):
    text: str
    """Up to the last cut."""
    cuts: list[int]
    """The ends of its segments."""
    clean: list[str | None]
    """What became of each segment; ``None`` where it has no secret."""
    counts: list[int]

    def common(self, text: str) -> int:
        """How many segments the text has in common with this one, from the beginning."""
        if text.startswith(self.text):
            count = len(self.cuts)
        else:
            count, high = 0, len(self.cuts) - 1
            while count < high:
                middle = (count + high + 1) // 2
                if text.startswith(self.text[: self.cuts[middle - 1]]):
                    count = middle
                else:
                    high = middle - 1
        return count if count and _CUT.match(text, self.cuts[count - 1] - 1) else 0


class Histories:
    """What became of the beginnings of long texts, as long as no further secret is learnt. Safe to share between threads."""

    __slots__ = ("_held", "_known", "_lock")

    def __init__(self) -> None:
        self._known: dict[str, deque[_Known]] = {}
        self._held = 0
        self._lock = threading.Lock()

    def redact(self, text: str, segment: Segment) -> tuple[str, int] | None:
        """The text without its secrets, and how many were taken out; ``None`` where it is to be redacted at once.

        Args:
            text: of at least :data:`LONG` characters.
            segment: redacts a segment of it.
        """
        head = text[:_HEAD]
        with self._lock:
            alike = list(self._known.get(head, ()))
        best, count = None, 0
        for known in alike:
            found = known.common(text)
            if found > count:
                best, count = known, found
                if found == len(known.cuts):
                    break
        cuts, clean, counts = ([], [], []) if best is None else (best.cuts[:count], best.clean[:count], best.counts[:count])
        start = cuts[-1] if cuts else 0
        new = list(_cuts(text, start))
        if not cuts and not new:
            return None
        for end, over in (*new, (len(text), len(text))):
            made = segment(text[start:over], end - start)
            if made is None:
                return None
            cuts.append(end)
            clean.append(made[0] if made[1] else None)
            counts.append(made[1])
            start = end
        total = sum(counts)
        whole = text if not total else "".join([text[a:b] if c is None else c for a, b, c in zip((0, *cuts), cuts, clean, strict=False)])
        if new:
            self._remember(head, best, _Known(text[: new[-1][0]], cuts[:-1], clean[:-1], counts[:-1]))
        return whole, total

    def _remember(self, head: str, best: _Known | None, made: _Known) -> None:
        with self._lock:
            alike = self._known.setdefault(head, deque())
            if best is not None and made.text.startswith(best.text):
                for known in alike:
                    if known is best:
                        alike.remove(known)
                        self._held -= len(known.text)
                        break
            alike.appendleft(made)
            self._held += len(made.text)
            if len(alike) > _ALIKE:
                self._held -= len(alike.pop().text)
            if self._held > _HELD:
                self._known, self._held = {}, 0


def _cuts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Where segments end from ``start`` on, but for the last one, and where the quote after each is."""
    last = start
    for match in _CUT.finditer(text, start):
        end = match.start() + 1
        if end - last >= _LEAST:
            yield end, match.end()
            last = end
