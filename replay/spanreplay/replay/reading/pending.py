"""Logfire's pending spans: a copy of a span, sent when it starts, that stands for it until it ends.

The copy has an id of its own, the span as its parent, and the parent of the span in an attribute; it begins and ends at once. Where the
span itself came too, the two are records of one span; where it did not, the copy is all that is known of a span that never ended. Source:
``logfire/_internal/tracer.py`` of 5.4.
"""

from dataclasses import replace
from typing import Final

from spanreplay.spans.record import SpanRecord

SPAN_TYPE: Final = "logfire.span_type"
PENDING: Final = "pending_span"
REAL_PARENT: Final = "logfire.pending_parent_id"


def settled(span: SpanRecord) -> SpanRecord:
    """The span as it is; a pending span as the record of the span that it stands for, still open."""
    if span.attributes.get(SPAN_TYPE) != PENDING or not span.parent_span_id:
        return span
    parent = span.attributes.get(REAL_PARENT)
    return replace(
        span,
        span_id=span.parent_span_id,
        parent_span_id=parent if isinstance(parent, str) and parent.strip("0") else None,
        end_ns=None,
        attributes={name: value for name, value in span.attributes.items() if name not in (SPAN_TYPE, REAL_PARENT)},
    )
