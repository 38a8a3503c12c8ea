"""What is said about a span in its events and in the log records written inside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.fields import Fields, decoded_json, jsonable
from spanreplay.replay.reading.moved import restored
from spanreplay.replay.reading.spoken import EVENT_NAME, NAMES, NOTHING, spoken
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord, Value


class Content(NamedTuple):
    """A span and what was said in it."""

    span: SpanRecord
    """With the content of its events among its attributes, by the present names."""
    cut: tuple[Reason, ...]
    """What of the content that was added is not whole."""


def event_name(log: LogRecord) -> str:
    """The name of the event that a log record is, or the empty text."""
    return log.event_name or Fields(log.attributes).text(EVENT_NAME) or ""


def with_content(span: SpanRecord, logs: Sequence[LogRecord]) -> Content:
    """The span with the content that its events hold, where it lacks it itself.

    Some write these as log records, some as span events. Of several ``gen_ai.client.inference.operation.details`` the latest wins, as it
    knows the most; events of one message each, the older form, count where there is none, and what :mod:`spanreplay.replay.reading.moved`
    finds where nothing else is.
    """
    before = restored(span, logs) if logs else None
    if before is not None and before.attributes:
        span = replace(span, attributes={**span.attributes, **before.attributes})
    told: dict[str, Value] = {}
    for event in span.events:
        if event.name == a.GEN_AI_INFERENCE_DETAILS_EVENT:
            told.update(event.attributes)
    for log in logs:
        if event_name(log) == a.GEN_AI_INFERENCE_DETAILS_EVENT:
            told.update(said_in(log))
    cut: tuple[Reason, ...] = ()
    for name, messages, faults in _spoken(span, logs, before.events if before is not None else ()):
        if span.attributes.get(name) is None and told.get(name) is None:
            told[name] = messages
            cut = tuple(dict.fromkeys((*cut, *faults)))
    missing = {
        name: value
        for name, value in told.items()
        if span.attributes.get(name) is None and value is not None and name.startswith("gen_ai.")
    }
    return Content(replace(span, attributes={**span.attributes, **missing}) if missing else span, cut)


def said_in(log: LogRecord) -> dict[str, Value]:
    """The fields of a log record's body and its attributes in one; a body that is no object is the ``content``."""
    body = decoded_json(log.body)[0] if isinstance(log.body, str) else log.body
    fields = dict(body) if isinstance(body, Mapping) else {} if log.body is None else {"content": log.body}
    return {**fields, **log.attributes, EVENT_NAME: event_name(log)}


def _spoken(
    span: SpanRecord, logs: Sequence[LogRecord], moved: Sequence[Mapping[str, Value]]
) -> list[tuple[str, Value, tuple[Reason, ...]]]:
    """What events of one message each say: the attribute that would hold it, the messages, what of them is cut."""
    here = [{**event.attributes, EVENT_NAME: event.name} for event in span.events if event.name in NAMES]
    beside = [said_in(log) for log in logs if event_name(log) in NAMES]
    found: list[tuple[str, Value, tuple[Reason, ...]]] = []
    for events, encoded in ((here, True), (beside, False), (moved, True)):
        asked, answered, cut = spoken(events, encoded=encoded) if events else NOTHING
        if asked is not None:
            found.append((a.GEN_AI_INPUT_MESSAGES, asked, cut))
        if answered is not None:
            found.append((a.GEN_AI_OUTPUT_MESSAGES, answered, cut))
    return found


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
