"""What Jaeger's JSON has lost of a span: words for the report, and what to do about it."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from spanreplay.replay.inputs.formats.notes import Notes, Table
from spanreplay.replay.inputs.formats.plain import shown
from spanreplay.replay.inputs.report import ReadReport

_OTLP: Final = "import OTLP instead: the Collector's file exporter, or Jaeger's /api/v3/traces/ID?raw_traces=true"
_RAW: Final = "ask with ?raw=true, which the UI calls Trace JSON (unadjusted)"

_TABLE: Final[Table] = {
    "time-us": ("has times cut to microseconds", _OTLP),
    "dropped-counts-lost": (
        "is without its flags and the counts that its links and resource had of what limits left out, and has empty values as empty texts",
        _OTLP,
    ),
    "values-flattened": ("has lists or maps as JSON text, which no longer differ from a text that was one", _OTLP),
    "values-text": ("comes from Elasticsearch's form, where numbers are texts and have 10 digits", _OTLP),
    "scope-attributes-lost": ("is without the attributes and the schema url of its scope, if there were any", _OTLP),
    "link-attributes-lost": ("has links without their attributes and trace state", _OTLP),
    "events-sorted": ("had events in another order than that of time, and has them in that of time again", _RAW),
    "backend-attributes": ("had attributes that Jaeger added, which were taken out", ""),
    "parent-follows": ("follows from its parent (FOLLOWS_FROM), which is a link in OpenTelemetry", ""),
    "parent-elsewhere": ("is the child of a span in another trace, and has a link to it instead", ""),
    "process-missing": ("names a process that the file does not have, so nothing is known of what produced it", ""),
    "clock-adjusted": ("has times that Jaeger moved", _RAW),
    "jaeger-warning": ("has a warning of Jaeger", ""),
}
_ADJUSTED: Final = "comes from an answer that Jaeger adjusted: attributes are sorted, ids that client and server share are replaced"
_MOVED: Final = re.compile(r"timestamps? (?:were|was) adjusted", re.IGNORECASE)

_FEW: Final = 3
"""Attributes that may lie sorted by chance."""


class Losses(Notes):
    """What was lost of one span after the other; whether the answer was adjusted is known at the end."""

    def __init__(self, report: ReadReport, words: Table | None = None) -> None:
        """Begins with no span.

        Args:
            report: Gets the notes.
            words: For codes that mean something else in a form that is read as Jaeger's.
        """
        super().__init__(report, {**_TABLE, **(words or {})}, ("time-us", "dropped-counts-lost"))
        self._sorted = 0
        self._unsorted = False

    def warned(self, text: str) -> None:
        """A warning that Jaeger wrote to the span."""
        code = "clock-adjusted" if _MOVED.search(text) else "jaeger-warning"
        self.of(code, detail=f"{_TABLE[code][0]} ({shown(text)})")

    def tags(self, keys: Sequence[str]) -> None:
        """The keys of a span in their order: adjusted answers have them sorted."""
        if len(keys) > _FEW and len(set(keys)) > 1:
            self._sorted += 1
            self._unsorted = self._unsorted or any(one > other for one, other in pairwise(keys))

    def end(self) -> None:
        """All spans of the document are read."""
        if self._sorted and not self._unsorted:
            self._report.note("adjusted", _ADJUSTED, advice=_RAW, spans=self.spans)
