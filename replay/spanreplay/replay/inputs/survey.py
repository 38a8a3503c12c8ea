"""What a whole input tells about where its values were cut.

One cut value tells its limit, and the limit tells of others: a text of exactly as many bytes as the longest piece of broken JSON was cut
there too, although a plain text cannot show it. Where all texts are plain, several of a usual limit's size, and none longer, tell it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

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
_SEVERAL: Final = 3
"""Different texts of just that size, and none longer, that are no chance."""
_ONE_WORD: Final = re.compile(r"(?:data:[\w/+.-]*;base64,)?[A-Za-z0-9+/=_:.-]*")
"""Ids, digests and base64: these have the size that they have."""
LENGTHS_KEPT: Final = 20_000
_NEAR: Final = 16
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
    return value.endswith(REPLACED) or (value.startswith(_OPENS) and not value.rstrip().endswith(_CLOSES) and not decoded_json(value)[1])


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
        self._sizes: Counter[int] = Counter()
        self._broken: Counter[int] = Counter()
        self._plain: dict[int, set[int]] = {}
        self._longest = 0
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
        sizes: set[int] = set()
        broken: set[int] = set()
        # What :func:`texts_of` gives, without making anything of each: this sees all that is read.
        for attributes in (record.attributes, *(event.attributes for event in record.events)):
            for value in attributes.values():
                if not isinstance(value, str):
                    continue
                if len(value) >= SHORTEST:
                    size = cut_size(value)
                    sizes.add(size)
                    if _is_broken(value):
                        broken.add(size)
                    elif size in _USUAL:
                        self._see_plain(value, size)
                elif len(value) >= _TINY and value.startswith(_OPENS) and _is_broken(value):
                    broken.add(cut_size(value))
        self._broken.update(broken)
        if not sizes:
            return
        self._longest = max(self._longest, *sizes)
        if len(self._sizes) < LENGTHS_KEPT:
            self._sizes.update(sizes)

    def _see_plain(self, value: str, size: int) -> None:
        seen = self._plain.setdefault(size, set())
        if len(seen) < _SEVERAL and not _is_whole(value) and not _ONE_WORD.fullmatch(value):
            seen.add(hash(value))

    def limits(self) -> dict[int, int]:
        """Sizes in bytes at which values were cut, and in how many spans.

        The known default of Tempo counts once two spans have it, and far more than have any size near it: in a large input each size is
        somebody's. Any other counts only where the same size was cut twice, or a cut value has it and nothing is longer: half a JSON text
        alone may have been written so. A usual limit counts too where several different texts have its size and nothing is longer.
        """
        longest = max(self._sizes, default=0)
        found = {size: max(count, self._sizes[size]) for size, count in self._broken.items() if count > 1 or size == longest}
        if len(self._plain.get(self._longest, ())) >= _SEVERAL:
            found.setdefault(self._longest, self._sizes[self._longest])
        near = max(self._sizes[TEMPO_LIMIT + distance] for distance in range(-_NEAR, _NEAR + 1) if distance)
        if self._sizes[TEMPO_LIMIT] > max(1, 4 * near) or self._broken[TEMPO_LIMIT]:
            found[TEMPO_LIMIT] = max(self._sizes[TEMPO_LIMIT], self._broken[TEMPO_LIMIT])
        return dict(sorted(found.items()))

    def findings(self) -> list[Finding]:
        """What was seen, the worst first."""
        found = [
            Finding(code=CUT_VALUES, detail=f"has values cut at {size} bytes", advice=advice_for(size), spans=count)
            for size, count in self.limits().items()
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
