"""What Jaeger's JSON has lost of a span: words for the report, and what to do about it."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from spanreplay.replay.source import ReadReport
from spanreplay.replay.sources._plain import shown

_OTLP: Final = "import OTLP instead: the Collector's file exporter, or Jaeger's /api/v3/traces/ID?raw_traces=true"
_RAW: Final = "ask with ?raw=true, which the UI calls Trace JSON (unadjusted)"

_NOTES: Final[Mapping[str, tuple[str, str]]] = {
    "time-us": ("has times cut to microseconds", _OTLP),
    "values-flattened": ("has lists or maps as JSON text, which no longer differ from a text that was one", _OTLP),
    "scope-attributes-lost": ("is without the attributes and the schema url of its scope, if there were any", _OTLP),
    "link-attributes-lost": ("has links without their attributes and trace state", _OTLP),
    "dropped-counts-lost": ("is without the counts of what the limits of the SDK left out", _OTLP),
    "events-sorted": ("had events in another order than that of time, and has them in that of time again", _RAW),
    "backend-attributes": ("had attributes that Jaeger added, which were taken out", ""),
    "parent-follows": ("follows from its parent (FOLLOWS_FROM), which is a link in OpenTelemetry", ""),
    "parent-elsewhere": ("is the child of a span in another trace, and has a link to it instead", ""),
    "process-missing": ("names a process that the file does not have, so nothing is known of what produced it", ""),
    "values-text": ("comes from Elasticsearch's form, where numbers are texts and have 10 digits", _OTLP),
}
_ADJUSTED: Final = "comes from an answer that Jaeger adjusted: attributes are sorted, ids that client and server share are replaced"
_MOVED: Final = re.compile(r"timestamps? (?:were|was) adjusted", re.IGNORECASE)

_FEW: Final = 3
"""Attributes that may lie sorted by chance."""


class Losses:
    """What was lost of one span after the other; whether the answer was adjusted is known at the end."""

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._found: dict[str, str] = {}
        self._spans = 0
        self._sorted = 0
        self._unsorted = False

    def of(self, code: str, is_so: bool) -> None:
        """One of the losses of the table."""
        if is_so:
            self._found[code] = ""

    def warned(self, text: str) -> None:
        """A warning that Jaeger wrote to the span."""
        self._found["clock-adjusted" if _MOVED.search(text) else "jaeger-warning"] = text

    def tags(self, keys: Sequence[str]) -> None:
        """The keys of a span in their order: adjusted answers have them sorted."""
        if len(keys) > _FEW and len(set(keys)) > 1:
            self._sorted += 1
            self._unsorted = self._unsorted or any(one > other for one, other in pairwise(keys))

    def forget(self) -> None:
        """The span was left out."""
        self._found.clear()

    def kept(self) -> None:
        """The span was kept: what it lost goes into the report."""
        self._spans += 1
        for code in ("time-us", "dropped-counts-lost", *self._found):
            text = self._found.get(code, "")
            if code == "clock-adjusted":
                self._report.note(code, f"has times that Jaeger moved ({shown(text)})", advice=_RAW)
            elif code == "jaeger-warning":
                self._report.note(code, f"has a warning of Jaeger ({shown(text)})")
            else:
                detail, advice = _NOTES[code]
                self._report.note(code, detail, advice=advice)
        self._found.clear()

    def end(self) -> None:
        """All spans of the document are read."""
        if self._sorted and not self._unsorted:
            self._report.note("adjusted", _ADJUSTED, advice=_RAW, spans=self._spans)
