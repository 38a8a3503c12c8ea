"""What is said about a span in its events and in the log records written inside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanreplay.replay.fields import Fields, jsonable
from spanreplay.replay.model import Json
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord, Value

EVENT_NAME: Final = "event.name"
"""Where the name of an event was before log records had a field for it."""


def event_name(log: LogRecord) -> str:
    """The name of the event that a log record is, or the empty text."""
    return log.event_name or Fields(log.attributes).text(EVENT_NAME) or ""


def with_content(span: SpanRecord, logs: Sequence[LogRecord]) -> SpanRecord:
    """The span with the content that its ``gen_ai.client.inference.operation.details`` events hold, where it lacks it itself.

    Some write these as log records, some as span events; the latest of several wins, as it knows the most.
    """
    told: dict[str, Value] = {}
    for event in span.events:
        if event.name == a.GEN_AI_INFERENCE_DETAILS_EVENT:
            told.update(event.attributes)
    for log in logs:
        if event_name(log) == a.GEN_AI_INFERENCE_DETAILS_EVENT:
            if isinstance(log.body, Mapping):
                told.update(log.body)
            told.update(log.attributes)
    missing = {
        name: value
        for name, value in told.items()
        if span.attributes.get(name) is None and value is not None and name.startswith("gen_ai.")
    }
    return replace(span, attributes={**span.attributes, **missing}) if missing else span


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A ``gen_ai.tool.call.decision`` event: somebody or something allowed or refused a tool call."""

    trace_id: str
    span_id: str
    time_ns: int
    outcome: str | None
    """``allow``, ``deny`` or ``require_approval``."""
    call_id: str | None
    tool: str | None
    record: Json
    """All that the event says, by attribute; the outcome as ``outcome``."""


def decisions(span: SpanRecord | None, logs: Sequence[LogRecord]) -> list[Decided]:
    """The decisions told in one span, in order of time.

    Args:
        span: the span, if it is present.
        logs: the log records written in it.
    """
    found: list[Decided] = []
    if span is not None:
        found += [
            _decided(span.trace_id, span.span_id, event.time_ns, event.attributes)
            for event in span.events
            if event.name == a.GEN_AI_TOOL_CALL_DECISION_EVENT
        ]
    for log in logs:
        if event_name(log) == a.GEN_AI_TOOL_CALL_DECISION_EVENT:
            said = {**(log.body if isinstance(log.body, Mapping) else {}), **log.attributes}
            found.append(_decided(log.trace_id or "", log.span_id or "", log.time_ns or log.observed_ns, said))
    return sorted(found, key=lambda decided: decided.time_ns)


def _decided(trace_id: str, span_id: str, time_ns: int, attributes: Mapping[str, Value]) -> Decided:
    fields = Fields(attributes)
    outcome = fields.text(a.GEN_AI_TOOL_CALL_DECISION_OUTCOME)
    rest = {
        name: jsonable(value)
        for name, value in attributes.items()
        if name not in (a.GEN_AI_TOOL_CALL_DECISION_OUTCOME, EVENT_NAME, a.DECISION)
    }
    own = fields.json(a.DECISION)
    return Decided(
        trace_id=trace_id,
        span_id=span_id,
        time_ns=time_ns,
        outcome=outcome,
        call_id=fields.identifier(a.GEN_AI_TOOL_CALL_ID),
        tool=fields.text(a.GEN_AI_TOOL_NAME),
        record={"outcome": outcome, **rest, **(own if isinstance(own, dict) else {})},
    )
