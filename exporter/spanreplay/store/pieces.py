"""Long JSON texts in pieces, so that what one says again of another is kept once.

The history of a conversation is sent with every request, and stands in each in more than one form: as it was sent, as messages of the
conventions, as arguments of the call. What these have in common are the strings in them. So a text is cut at its long strings, and becomes
its *parts*: literal text and digests of pieces by turns, of which the first and the last are literals. Put together they are the text to
the byte, however it was written; nothing is parsed and rendered again.

Elements of arrays (messages, tool schemas) are gathered into groups, else a request would name every message before it. Where a group ends
is up to the last element in it (content-defined chunking, as in LBFS, Muthitacharoen et al. 2001), so that a history from which the
beginning was cut has the same groups.

A text that is very long is cut in any case, JSON or not.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, islice
from json.decoder import scanstring  # type: ignore[attr-defined]  # it has been there since Python 2.6
from typing import Final
from zlib import crc32

from spanreplay.store.json_spans import NO_JSON, elements, members, read, skip

SHORTEST: Final = 1_024
"""Characters of a text from which on it is cut."""
_PIECE: Final = 256
"""Characters from which on something is a piece: naming one takes 71."""
_GROUP: Final = 64
LONGEST: Final = 1_000_000
"""Characters of a piece, at most. The database has to hold every value whole in memory, several times over."""
_LITERAL: Final = 65_536
"""Characters between two pieces, at most, where a text is longer than a piece may be."""
_DEPTH: Final = 2
"""Objects inside objects that are looked into: of ``{"body": {"messages": []}}`` the messages."""
_HELD: Final = 8_000_000
"""Characters of earlier texts that are remembered."""
_LIKE: Final = 64
"""Texts that begin with the same characters may be the same conversation."""
_ALIKE: Final = 64
_CLOSE: Final = 4
"""Of these, how many are looked at for a beginning in common that is shorter than they are."""
_FEW: Final = 4
"""Long strings that a text is cut at without reading what is around them: groups of elements would save nothing."""
_AROUND: Final = 1_024
"""Characters around them, at most."""
_string: Final = re.compile(r'"[^"]*+(?:(?<=[^\\]\\)"[^"]*+)*+(?<!\\)"').match
"""A string in JSON; none that has a quote after two backslashes. Takes a third of the time that decoding it takes."""


@dataclass(slots=True, eq=False)
class Piece:
    """A piece of a text."""

    digest: str
    """``sha256:`` and hex, of its UTF-8 bytes."""
    size: int
    """Bytes."""
    text: str | None
    """Absent where it has parts."""
    parts: list[str] | None = None
    inner: "Sequence[Piece]" = ()
    """The pieces that its parts name."""


@dataclass(slots=True)
class Cut:
    """A piece, and where it stands in a text."""

    start: int
    end: int
    piece: Piece


@dataclass(slots=True)
class _Array:
    """The elements of one array, and the groups that they make."""

    ends: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    strings: list[list[Cut]] = field(default_factory=list)
    """The long strings of each element."""
    groups: list[Cut] = field(default_factory=list)
    group_ends: list[int] = field(default_factory=list)
    """How many elements there are up to the end of each group."""

    def adder(self, text: str) -> Callable[[object, int, int], None]:
        """Takes elements of this text."""
        return lambda _, start, end: self._add(text, start, end)

    def _add(self, text: str, start: int, end: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.strings.append(long_strings(text, start, end))
        first = self.group_ends[-1] if self.group_ends else 0
        count, begin = len(self.ends) - first, self.starts[first]
        if count > 1 and end - begin >= _PIECE and (count >= _GROUP or crc32(text[start:end].encode()) & 15 == 0):
            self.groups.append(Cut(begin, end, _composed(text, begin, end, list(chain.from_iterable(self.strings[first:])))))
            self.group_ends.append(len(self.ends))

    def first(self, count: int) -> "_Array":
        """The array as it was when it had so many elements."""
        groups = bisect_right(self.group_ends, count)
        return _Array(
            ends=self.ends[:count],
            starts=self.starts[:count],
            strings=self.strings[:count],
            groups=self.groups[:groups],
            group_ends=self.group_ends[:groups],
        )

    def cuts(self) -> list[Cut]:
        first = self.group_ends[-1] if self.group_ends else 0
        return [*self.groups, *chain.from_iterable(self.strings[first:])]


@dataclass(slots=True)
class _Known:
    """A text that was cut: what a later one may have in common with it."""

    prefix: str
    """Up to the end of the last element of its longest array."""
    suffix: str
    """From the end of that array on."""
    before: list[Cut]
    array: _Array
    after: list[Cut]
    """Places in them count from the beginning of the suffix."""

    def common(self, text: str) -> int:
        """How many elements the text has in common with this one, from the beginning; fewer than all."""
        ends = self.array.ends
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if text.startswith(self.prefix[: ends[middle - 1]]):
                low = middle
            else:
                high = middle - 1
        return low


class Splitter:
    """Cuts texts. What it knows of earlier ones, it does not read again: a longer history costs what is new in it.

    Not for two threads at once.
    """

    def __init__(self) -> None:
        self._known: dict[str, deque[_Known]] = {}
        self._held = 0

    def split(self, text: str, digest: str, size: int) -> Piece | None:
        """The text as a piece that has parts; ``None`` where it is to stay whole.

        Args:
            text: valid Unicode: no lone surrogates.
            digest: of its UTF-8 bytes.
            size: how many these are.
        """
        cuts = _bounded(text, 0, len(text), self._cuts(text))
        return Piece(digest, size, None, parts_of(text, 0, len(text), cuts), [cut.piece for cut in cuts]) if cuts else None

    def _cuts(self, text: str) -> list[Cut]:
        if len(text) < SHORTEST or text[0] not in "{[" or "[" not in text:
            return []
        few = _few(text)
        if few is not None:
            return few
        try:
            found = self._resumed(text) or _read(text)
        except NO_JSON:
            return []
        if found is None:
            return []
        self._remember(text, found)
        shift = len(text) - len(found.suffix)
        return [*found.before, *found.array.cuts(), *(Cut(cut.start + shift, cut.end + shift, cut.piece) for cut in found.after)]

    def _resumed(self, text: str) -> _Known | None:
        best, most = None, 0
        alike = self._known.get(text[:_LIKE], ())
        for known in alike:
            if text.startswith(known.prefix):
                best, most = known, len(known.array.ends)
                break
        else:
            for known in islice(alike, _CLOSE):
                count = known.common(text)
                if count > most:
                    best, most = known, count
        if best is None:
            return None
        array = best.array.first(most)
        end = elements(text, array.ends[-1], array.adder(text), first=False)
        if len(text) - end != len(best.suffix) or not text.endswith(best.suffix):
            return None
        return _Known(text[: array.ends[-1]], best.suffix, best.before, array, best.after)

    def _remember(self, text: str, found: _Known) -> None:
        alike = self._known.setdefault(text[:_LIKE], deque())
        for known in alike:
            if found.prefix.startswith(known.prefix):
                alike.remove(known)
                self._held -= len(known.prefix)
                break
        alike.appendleft(found)
        self._held += len(found.prefix)
        if len(alike) > _ALIKE:
            self._held -= len(alike.pop().prefix)
        if self._held > _HELD:
            self._known = {}
            self._held = 0


def _read(text: str) -> _Known | None:
    """``None`` if no array of the text has an element.

    Raises:
        Exception: one of :data:`~spanreplay.store.json_spans.NO_JSON`.
    """
    reader = _Reader(text)
    end = reader.value(0, 0)
    if skip(text, end) != len(text):
        raise ValueError(end)
    if not reader.arrays:
        return None
    place, length, array = max(reader.arrays, key=lambda found: found[2].ends[-1] - found[2].starts[0])
    close = skip(text, array.ends[-1])
    return _Known(
        text[: array.ends[-1]],
        text[close:],
        reader.cuts[:place],
        array,
        [Cut(cut.start - close, cut.end - close, cut.piece) for cut in reader.cuts[place + length :]],
    )


class _Reader:
    """Finds where a text is to be cut."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.cuts: list[Cut] = []
        self.arrays: list[tuple[int, int, _Array]] = []
        """Where its cuts begin, how many they are, and the array; those with elements."""

    def value(self, start: int, depth: int) -> int:
        """Reads a value, and gives its end."""
        text = self._text
        first = text[start]
        if first == "[":
            return self._elements(start)
        if first == "{" and depth < _DEPTH:
            return members(text, start, lambda _name, _begin, inner: self.value(inner, depth + 1))
        end = read(text, start)[1]
        self.cuts += long_strings(text, start, end)
        return end

    def _elements(self, start: int) -> int:
        array = _Array()
        end = elements(self._text, start + 1, array.adder(self._text), first=True)
        cuts = array.cuts()
        if array.ends:
            self.arrays.append((len(self.cuts), len(cuts), array))
        self.cuts += cuts
        return end + 1


def long_strings(text: str, start: int, end: int) -> list[Cut]:
    """The long strings of a value, quotes and all, from ``start`` to ``end`` of a text that is valid JSON there."""
    found: list[Cut] = []
    begin = start
    while end - begin >= _PIECE and (begin := text.find('"', begin, end)) >= 0:
        stop = text.find('"', begin + 1, end) + 1
        if text[stop - 2] == "\\":  # a quote in the string, as a rule
            stop = _end_of_string(text, begin)
        if stop - begin >= _PIECE:
            found += _leaves(text, begin, stop)
        begin = stop
    return found


def _leaves(text: str, start: int, end: int) -> list[Cut]:
    """One piece as a rule, several of what is longer than a piece may be."""
    return [Cut(begin, stop, _leaf(text[begin:stop])) for begin in range(start, end, LONGEST) for stop in (min(begin + LONGEST, end),)]


def _bounded(text: str, start: int, end: int, cuts: list[Cut]) -> list[Cut]:
    """The cuts of a text from ``start`` to ``end``, and more where it is long and there is much between them."""
    if end - start <= LONGEST:
        return cuts
    found: list[Cut] = []
    place = start
    for cut in cuts:
        if cut.start - place > _LITERAL:
            found += _leaves(text, place, cut.start)
        found.append(cut)
        place = cut.end
    if end - place > _LITERAL:
        found += _leaves(text, place, end)
    return found


def _end_of_string(text: str, begin: int) -> int:
    found = _string(text, begin)
    end: int = found.end() if found is not None else scanstring(text, begin + 1, False)[1]
    return end


def _few(text: str) -> list[Cut] | None:
    """The long strings of a text that has an array, which are none where it has no array; ``None`` if there is more in it than a few.

    Whether it is JSON is found out by reading it, and makes no difference: it is what its parts are together.
    """
    found: list[tuple[int, int]] = []
    place, around, has_array = 0, 0, False
    while (begin := text.find('"', place)) >= 0:
        end = text.find('"', begin + 1) + 1
        if end and text[end - 2] == "\\":
            try:
                end = _end_of_string(text, begin)
            except ValueError:
                return []
        if not end:
            return []
        has_array = has_array or "[" in text[place:begin]
        if end - begin >= _PIECE:
            found.append((begin, end))
        else:
            around += end - begin
        around += begin - place
        if len(found) > _FEW or around > _AROUND:
            return None
        place = end
    if around + len(text) - place > _AROUND:
        return None
    if not has_array and "[" not in text[place:]:
        return []
    return [cut for begin, end in found for cut in _leaves(text, begin, end)]


def _leaf(text: str) -> Piece:
    data = text.encode()
    return Piece("sha256:" + sha256(data).hexdigest(), len(data), text)


def _composed(text: str, start: int, end: int, cuts: list[Cut]) -> Piece:
    whole = _leaf(text[start:end])
    cuts = _bounded(text, start, end, cuts)
    if not cuts:
        return whole
    return Piece(whole.digest, whole.size, None, parts_of(text, start, end, cuts), [cut.piece for cut in cuts])


def parts_of(text: str, start: int, end: int, cuts: Sequence[Cut]) -> list[str]:
    """Literal text and digests by turns, of the text from ``start`` to ``end``."""
    parts: list[str] = []
    place = start
    for cut in cuts:
        parts += text[place : cut.start], cut.piece.digest
        place = cut.end
    parts.append(text[place:end])
    return parts
