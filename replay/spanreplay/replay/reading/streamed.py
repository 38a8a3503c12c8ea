"""Logfire's remarks on streams: the answer of a streamed model call, written beside its span when the stream ends.

The span of the call ends when the stream begins. The remark is a span of no length with the same parent and the same request, and with the
answer. Source: ``logfire/_internal/integrations/llm_providers/llm_provider.py`` of 5.4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from spanreplay.replay.reading.pending import SPAN_TYPE
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord, Value

REMARK: Final = "log"
REQUEST: Final = "request_data"
RESPONSE: Final = "response_data"
DURATION: Final = "duration"
_LOGFIRE: Final = "logfire."
_ASKED: Final = (REQUEST, a.GEN_AI_INPUT_MESSAGES)
_ANSWERED: Final = (RESPONSE, a.GEN_AI_OUTPUT_MESSAGES)

Key = TypeVar("Key")


def completed(spans: Mapping[Key, SpanRecord]) -> Iterator[tuple[Key, SpanRecord]]:
    """The spans of streamed calls, each with the answer and the end that a remark tells; of equal calls the earliest gets the earliest."""
    remarks = sorted((span for span in spans.values() if _is_remark(span)), key=lambda span: (span.start_ns, span.span_id))
    if not remarks:
        return
    wanted = {_call(span) for span in remarks}
    waiting: dict[tuple[Value, ...], list[tuple[Key, SpanRecord]]] = {}
    for key, span in sorted(spans.items(), key=lambda item: (item[1].start_ns, item[1].span_id)):
        if REQUEST in span.attributes and span.attributes.get(SPAN_TYPE) != REMARK and not any(n in span.attributes for n in _ANSWERED):
            call = _call(span)
            if call in wanted:
                waiting.setdefault(call, []).append((key, span))
    for remark in remarks:
        calls = waiting.get(_call(remark), [])
        if calls and calls[0][1].start_ns <= remark.start_ns:
            key, span = calls.pop(0)
            told = {name: value for name, value in remark.attributes.items() if not name.startswith(_LOGFIRE) and name != DURATION}
            whole = replace(
                span,
                end_ns=max(span.end_ns or 0, remark.start_ns),
                attributes={**span.attributes, **told},
                events=(*span.events, *remark.events),
                status=remark.status or span.status,
                status_message=remark.status_message or span.status_message,
            )
            yield key, whole


def _is_remark(span: SpanRecord) -> bool:
    names = span.attributes
    return names.get(SPAN_TYPE) == REMARK and REQUEST in names and DURATION in names


def _call(span: SpanRecord) -> tuple[Value, ...]:
    """What a call and the remark on it have in common."""
    return (span.trace_id, span.parent_span_id, span.scope.name, *(repr(span.attributes.get(name)) for name in _ASKED))
