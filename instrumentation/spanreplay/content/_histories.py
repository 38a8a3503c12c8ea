"""Long texts that begin or end as an earlier one did, as each request of a conversation does: only what is new in them is looked through.

What a conversation has said stands at the beginning of its next request, and the descriptions of its tools at the end of all of them.

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


class _Piece(NamedTuple):
    """A segment of a text."""

    text: str
    clean: str | None
    """What became of it; ``None`` where it has no secret."""
    taken: int
    """How many were taken out of it."""


class _Shared(NamedTuple):
    """What a text has in common with a known one: its first pieces, and its last ones."""

    first: int
    """So many."""
    start: int
    """Where they end."""
    last: int
    """From this one on."""
    stop: int
    """Where they begin."""


def _shared(pieces: list[_Piece], text: str) -> _Shared:
    first = start = 0
    while first < len(pieces) - 1 and text.startswith(pieces[first].text, start):
        start += len(pieces[first].text)
        first += 1
    while first and not _CUT.match(text, start - 1):
        first -= 1
        start -= len(pieces[first].text)
    last, stop = len(pieces), len(text)
    while last > max(first, 1) and text.endswith(pieces[last - 1].text, start, stop):
        last -= 1
        stop -= len(pieces[last].text)
    while last < len(pieces) and not _CUT.match(text, stop - 1):
        stop += len(pieces[last].text)
        last += 1
    return _Shared(first, start, last, stop)


class Histories:
    """What became of the segments of long texts, as long as no further secret is learnt. Safe to share between threads."""

    __slots__ = ("_held", "_known", "_lock")

    def __init__(self) -> None:
        self._known: dict[str, deque[tuple[list[_Piece], int]]] = {}
        self._held = 0
        self._lock = threading.Lock()

    def redact(self, text: str, segment: Segment) -> tuple[str, int] | None:
        """The text without its secrets, and how many were taken out; ``None`` where it is to be redacted at once.

        Args:
            text: of at least :data:`LONG` characters.
            segment: redacts a segment of it.
        """
        head = text[:_HEAD]
        known, shared = self._best(head, text)
        new = list(_segments(text, shared.start, shared.stop))
        if len(new) < 2 and not shared.first and shared.last == len(known):
            return None
        looked = _looked_through(text, shared.start, new, segment)
        if looked is None:
            return None
        pieces = [*known[: shared.first], *looked, *known[shared.last :]]
        if len(new) > 1:
            self._remember(head, known if shared.last - shared.first <= 1 else None, pieces, len(text))
        total = sum([piece.taken for piece in pieces])
        return ("".join([piece.text if piece.clean is None else piece.clean for piece in pieces]) if total else text), total

    def _best(self, head: str, text: str) -> tuple[list[_Piece], _Shared]:
        """The known text with which this one has most in common; one of which all but one piece are in this is taken at once."""
        with self._lock:
            alike = list(self._known.get(head, ()))
        best: list[_Piece] = []
        most = _Shared(0, 0, 0, len(text))
        for known, _ in alike:
            shared = _shared(known, text)
            if shared.last - shared.first <= 1:
                return known, shared
            if not best or shared.first > most.first:
                best, most = known, shared
        return best, most

    def _remember(self, head: str, superseded: list[_Piece] | None, pieces: list[_Piece], size: int) -> None:
        with self._lock:
            alike = self._known.setdefault(head, deque())
            for known in alike:
                if known[0] is superseded:
                    alike.remove(known)
                    self._held -= known[1]
                    break
            alike.appendleft((pieces, size))
            self._held += size
            if len(alike) > _ALIKE:
                self._held -= alike.pop()[1]
            if self._held > _HELD:
                self._known, self._held = {}, 0


def _segments(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the segments of a part of a text end, and where the quote after each is; of the last one of a text, where that ends."""
    cut = _CUT.search(text, start + _LEAST - 1)
    while cut is not None and cut.start() + 1 < stop:
        end = cut.start() + 1
        yield end, cut.end()
        cut = _CUT.search(text, end + _LEAST - 1)
    after = _CUT.match(text, stop - 1) if stop < len(text) else None
    yield stop, stop if after is None else after.end()


def _looked_through(text: str, start: int, new: list[tuple[int, int]], segment: Segment) -> list[_Piece] | None:
    """What becomes of new segments; ``None`` where that takes the whole text."""
    made: list[_Piece] = []
    cuts = new if new[-1][0] < len(text) else new[:-1]
    if len(cuts) > 1:  # most have no secret, and that takes one search for all of them
        stop, over = cuts[-1]
        together = segment(text[start:over], stop - start)
        if together is not None and not together[1]:
            for end, _ in cuts:
                made.append(_Piece(text[start:end], None, 0))
                start = end
    for end, over in new[len(made) :]:
        found = segment(text[start:over], end - start)
        if found is None:
            return None
        made.append(_Piece(text[start:end], found[0] if found[1] else None, found[1]))
        start = end
    return made
