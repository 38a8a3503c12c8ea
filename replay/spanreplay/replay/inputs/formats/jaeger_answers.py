"""What Jaeger's third API makes of OTLP (``/api/v3/traces``, seen in 2.13): it is all there but for schema urls.

Once somebody has asked for a trace adjusted, which is the default, the adjustments are in every later answer too, since Jaeger makes them
in its memory: warnings as an attribute, and events in the order of their names.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.record import Record, SpanRecord

OF_JAEGER: Final = "@jaeger@"
"""Begins the names of attributes that Jaeger adds."""


def is_of_jaeger(document: Any) -> bool:
    """Whether this is an answer of that API: the OTLP is in ``result``."""
    return isinstance(document, dict) and "result" in document


def restored(record: Record, report: ReadReport) -> Record:
    """The record without what Jaeger added to it; notes what it lost."""
    report.note("schema-urls-lost", "is without the schema urls of its resource and scope, if there were any")
    if not isinstance(record, SpanRecord):
        return record
    kept = {name: value for name, value in record.attributes.items() if not name.startswith(OF_JAEGER)}
    if len(kept) < len(record.attributes):
        report.note("backend-attributes", "had attributes that Jaeger added, which were taken out")
        record = replace(record, attributes=kept)
    if any(one.time_ns > other.time_ns for one, other in pairwise(record.events)):
        report.note("events-sorted", "had events in another order than that of time, and has them in that of time again")
        record = replace(record, events=tuple(sorted(record.events, key=lambda event: event.time_ns)))
    return record
