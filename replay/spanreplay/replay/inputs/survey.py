"""What a whole input tells about where its values were cut.

One cut value tells its limit, and the limit tells of others: a text of exactly as many bytes as the longest piece of broken JSON was cut
there too, although a plain text cannot show it. Where all texts are plain, several of a usual limit's size, and none longer, tell it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreplay.replay.inputs.limits import LENGTHS_KEPT, Limits, Sizes
from spanreplay.replay.inputs.unspanned import advice_on
from spanreplay.replay.reading.fields import REPLACED, TEMPO_LIMIT, cut_size, decoded_json
from spanreplay.spans.record import Record, SpanRecord, Value

SHORTEST: Final = 64
"""Bytes; a shorter limit is believed only where it cut JSON in two spans, and only of texts with more than one word."""
_TINY: Final = 16
"""Bytes; no limit that anybody sets is below."""
_USUAL: Final = frozenset(
    {128, 255, 256, 500, 512, 1000, 1023, 1024, 2000, 2047, 2048, 4000, 4095, 4096, 5000, 8000, 8191, 8192, 10_000, 16_000, 16_383, 16_384}
    | {32_000, 32_766, 32_767, 32_768, 50_000, 64_000, 65_535, 65_536, 100_000, 131_072, 262_144, 500_000, 524_288, 1_000_000, 1_048_576}
)
"""Sizes that people and back ends set as the limit of a text."""
_ONE_WORD: Final = re.compile(r"(?:data:[\w/+.-]*;base64,)?[A-Za-z0-9+/=_:.-]*")
"""Ids, digests and base64: these have the size that they have."""
_MARK: Final = re.compile(r"[\[(<]\s*truncated\b[^\[\](){}<>\"]*[\])>]\s*\Z", re.IGNORECASE)
"""What some put where they cut a text."""
_MARK_SIZE: Final = 64
CUT_VALUES: Final = "cut-values"
DROPPED: Final = "dropped"
UNSPANNED: Final = "log-outside-spans"

_OPENS: Final = ("{", "[")
_CLOSES: Final = ("}", "]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A text that may have been cut."""

    name: str
    """Of the attribute; ``EVENT/NAME`` for one of an event."""
    value: str
    size: int
    """Bytes that are there."""
    broken: bool
    """It is JSON that stops in the middle, or ends in half a character; else only its size speaks for it."""


def texts(attributes: Mapping[str, Value], where: str = "") -> Iterator[Suspect]:
    """The texts of some attributes that are long enough to have been cut, with their sizes."""
    for name, value in attributes.items():
        if not isinstance(value, str) or len(value) < _TINY or (len(value) < SHORTEST and _ONE_WORD.fullmatch(value)):
            continue
        broken = len(value) >= SHORTEST and _is_broken(value)
        if broken or not _is_whole(value):
            yield Suspect(name=f"{where}{name}", value=value, size=cut_size(value), broken=broken)


def _is_whole(value: str) -> bool:
    """Whether a text is an object or a list of JSON that ends: nothing cut it."""
    return value.startswith(_OPENS) and value.rstrip().endswith(_CLOSES) and isinstance(decoded_json(value)[0], dict | list)


def _is_broken(value: str) -> bool:
    if value.endswith(REPLACED):
        return True
    ends = value.rstrip().endswith(_CLOSES) and not _MARK.search(value, max(0, len(value) - _MARK_SIZE))
    return value.startswith(_OPENS) and not ends and not decoded_json(value)[1]


def texts_of(span: SpanRecord) -> Iterator[Suspect]:
    """The same of a span and its events."""
    yield from texts(span.attributes)
    for event in span.events:
        yield from texts(event.attributes, f"{event.name}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with some of the spans of an input."""

    code: str
    detail: str
    advice: str
    spans: int
    """How many records, mostly spans, are concerned."""


class Survey:
    """Sees every record of an input once, keeps counts only, and says at the end what was cut, dropped, or is in no span."""

    def __init__(self) -> None:
        self._bytes = Sizes()
        self._characters: Sizes | None = None
        """The same as in bytes, until a text has more bytes than characters."""
        self._wide: set[int] = set()
        """Characters of the texts that have more bytes."""
        self._dropped: Counter[str] = Counter()
        self._unspanned: Counter[str] = Counter()

    def see(self, record: Record) -> None:
        """Counts one record."""
        if not isinstance(record, SpanRecord):
            advice = advice_on(record)
            if advice is not None:
                self._unspanned[advice] += 1
            return
        if record.dropped_attributes or record.dropped_events or record.dropped_links:
            for kind, count in (
                ("attributes", record.dropped_attributes),
                ("events", record.dropped_events),
                ("links", record.dropped_links),
            ):
                if count:
                    self._dropped[kind] += 1
        self._see_texts(record)

    def _see_texts(self, record: SpanRecord) -> None:
        # What :func:`texts_of` gives, without making anything of each: this sees all that is read, and most texts are short.
        worth: list[str] = []
        for attributes in (record.attributes, *(event.attributes for event in record.events)) if record.events else (record.attributes,):
            worth += [
                value
                for value in attributes.values()
                if isinstance(value, str) and len(value) >= _TINY and (len(value) >= SHORTEST or value[0] in _OPENS)
            ]
        if worth:
            self._see_long(worth)

    def _see_long(self, worth: Sequence[str]) -> None:
        long: list[tuple[int, int]] = []
        broken: list[tuple[int, int]] = []
        plain: list[tuple[int, int, str]] = []
        for value in worth:
            length = len(value)
            if length >= SHORTEST:
                size = length if value.isascii() else cut_size(value)
                long.append((size, length))
                if _is_broken(value):
                    broken.append((size, length))
                elif (size in _USUAL or length in _USUAL) and not _is_whole(value) and not _ONE_WORD.fullmatch(value):
                    plain.append((size, length, value))
            elif _is_broken(value):
                broken.append((cut_size(value), length))
        if not long and not broken:
            return
        self._see_wide(long)
        self._bytes.see({size for size, _ in long}, {size for size, _ in broken})
        if plain:
            self._bytes.see_plain((size, value) for size, _, value in plain if size in _USUAL)
        if self._characters is not None:
            self._characters.see({length for _, length in long}, {length for _, length in broken})
            self._characters.see_plain((length, value) for _, length, value in plain if length in _USUAL)

    def _see_wide(self, long: Sequence[tuple[int, int]]) -> None:
        wide = {length for size, length in long if size != length}
        if wide:
            if self._characters is None:
                self._characters = self._bytes.copy()
            if len(self._wide) < LENGTHS_KEPT:
                self._wide |= wide

    def limits(self) -> Limits:
        """The sizes at which values were cut, as far as they tell."""
        found = self._bytes.limits()
        tempo = self._bytes.tempo()
        if tempo:
            found[TEMPO_LIMIT] = tempo
        counted = {} if self._characters is None else self._characters.limits()
        characters = {size: count for size, count in counted.items() if size in self._wide and size not in found}
        return Limits(bytes=dict(sorted(found.items())), characters=dict(sorted(characters.items())))

    def findings(self) -> list[Finding]:
        """What was seen, the worst first."""
        limits = self.limits()
        units = (("bytes", limits.bytes), ("characters", limits.characters))
        found = [
            Finding(code=CUT_VALUES, detail=f"has values cut at {size} {unit}", advice=advice_for(size), spans=count)
            for unit, sizes in units
            for size, count in sizes.items()
        ]
        found += [
            Finding(
                code=f"{DROPPED}-{kind}",
                detail=f"lost {kind} to a limit of the SDK that recorded it, the oldest first",
                advice=f"raise {_VARIABLES[kind]} where it is recorded (empty means no limit)",
                spans=count,
            )
            for kind, count in self._dropped.items()
        ]
        found += [
            Finding(code=UNSPANNED, detail="tells of a call and is in no span, so no step is made of it", advice=advice, spans=count)
            for advice, count in self._unspanned.items()
        ]
        return found


_VARIABLES: Final = {
    "attributes": "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "events": "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "links": "OTEL_SPAN_LINK_COUNT_LIMIT",
}


def advice_for(size: int) -> str:
    """What to change so that values are no longer cut at a size."""
    if size == TEMPO_LIMIT:
        return "in Tempo set distributor.max_attribute_bytes: 0; it cuts at 2048 bytes by default"
    return (
        "look for a limit of that size: OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where it is recorded, "
        "truncate_all in the Collector's transform processor, the attribute limit of the back end"
    )
