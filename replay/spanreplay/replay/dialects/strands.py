"""Spans of Strands Agents, in the three modes of its telemetry (``OTEL_SEMCONV_STABILITY_OPT_IN``).

``invoke_agent`` > ``execute_event_loop_cycle`` > ``chat``, ``execute_tool``; around several agents ``invoke_swarm`` or ``invoke_graph``.
By default content is in span events of one message each, whose content is JSON text of Bedrock's blocks; with
``gen_ai_latest_experimental`` in span events of the present conventions, and with ``gen_ai_span_attributes_only`` too in attributes.
Source: ``strands/telemetry/tracer.py`` of 1.62.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import OLD_SYSTEM, messages, model_input, model_output
from spanreplay.replay.reading.outcomes import TOOL_ERROR
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, SpanRecord

SCOPE: Final = "strands.telemetry.tracer"
PROVIDER: Final = "strands-agents"
TOOL_STATUS: Final = "gen_ai.tool.status"
OLD_TOOL_STATUS: Final = "tool.status"
"""Up to 1.25."""
TOOL_SCHEMA: Final = "gen_ai.tool.json_schema"
CANCELLED: Final = "strands.cancellation.type"
HANDOFF: Final = "handoff_to_agent"
"""The tool by which an agent of a swarm hands over to another."""
TOOL_EVENT: Final = "gen_ai.tool.message"
CHOICE_EVENT: Final = "gen_ai.choice"

MEMORY_QUERY: Final = "memory.query"
MEMORY_RESULTS: Final = "memory.results"
MEMORY_CONTENT: Final = "memory.content"
MEMORY_STORES: Final = ("memory.store.names", "memory.store.name")
MEMORY_COUNT: Final = "memory.result.count"
CONTENT: Final = "content"
"""The one attribute of the memory events; in the attributes-only mode, of the span, where the last one written stays."""

_KINDS: Final[Mapping[str, Kind]] = {
    "chat": "model_call",
    "execute_tool": "tool_call",
    "invoke_agent": "agent",
    "invoke_swarm": "agent",
    "invoke_graph": "agent",
    "memory.search": "memory",
    "memory.add": "memory",
    "memory.extract": "memory",
}
"""Event loop cycles only frame calls, and ``memory.inject`` the search inside it."""

_NAMED: Final = frozenset({"chat", "execute_tool", "invoke_agent"})
"""Operations with which the names of spans begin."""


class StrandsDialect:
    """Reads agents, model calls, tools and memory of Strands."""

    NAME = "strands"
    PRIORITY = 80

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, or by the provider, which Strands says it is itself, and an operation, lost to a limit or not."""
        names = span.attributes
        ours = span.scope.name == SCOPE or PROVIDER in (names.get(a.GEN_AI_PROVIDER_NAME), names.get(OLD_SYSTEM))
        return ours and (a.GEN_AI_OPERATION_NAME in names or _of_name(span) in _NAMED)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` for what only frames others."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or _of_name(span)
        kind = _KINDS.get(operation)
        if kind is None:
            return None
        found = _found(span, fields, kind, operation)
        return drafted(span, fields, found)


DIALECT: Final = StrandsDialect()


def _of_name(span: SpanRecord) -> str:
    return span.name.partition(" ")[0]


def _found(span: SpanRecord, fields: Fields, kind: Kind, operation: str) -> Found:
    cancelled: OutcomeName | None = "cancelled" if CANCELLED in fields else None
    if kind == "tool_call":
        return _tool(span, fields, cancelled)
    if kind == "memory":
        asked, answered = _memory(span, fields, operation)
        return Found(kind=kind, name=operation, asked=asked, answered=answered, outcome=cancelled)
    name = fields.text(a.GEN_AI_REQUEST_MODEL if kind == "model_call" else a.GEN_AI_AGENT_NAME)
    return Found(
        kind=kind,
        name=name or span.name.removeprefix(f"{operation} "),
        asked=model_input(fields),
        answered=model_output(fields),
        outcome=cancelled,
        runs=kind == "agent",
    )


# ---- tools -------------------------------------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields, cancelled: OutcomeName | None) -> Found:
    name = fields.text(a.GEN_AI_TOOL_NAME) or span.name.removeprefix("execute_tool ")
    asked, answered = _arguments(span, fields), _result(span, fields)
    status = fields.text(TOOL_STATUS, OLD_TOOL_STATUS)
    error: Json = None
    outcome = cancelled
    if span.status == STATUS_ERROR and status == "error" and not any(event.name == a.EXCEPTION_EVENT for event in span.events):
        error = {"type": TOOL_ERROR, "message": span.status_message or None}
    elif outcome is None and status == "error" and span.status != STATUS_ERROR:
        outcome = "tool_error"
    elif outcome is None and asked is not None and answered is None and status is None and span.end_ns and span.status != STATUS_ERROR:
        outcome = "interrupted"  # an interrupt, or a stream that was left, has no result
    tool: dict[str, Json] = {"name": name}
    schema = fields.json(TOOL_SCHEMA)
    if isinstance(schema, dict):
        defined = {"type": "function", "name": name, "description": fields.text(a.GEN_AI_TOOL_DESCRIPTION), "parameters": schema}
        tool["schema_digest"] = offered([defined])[0]["schema_digest"]
    over = asked["arguments"].get("agent_name") if name == HANDOFF and asked and isinstance(asked["arguments"], dict) else None
    return Found(
        kind="handoff" if name == HANDOFF else "tool_call",
        name=over if isinstance(over, str) and over else name,
        asked=asked,
        answered=answered,
        versions={"tool": tool} if len(tool) > 1 else {},
        error=error,
        outcome=outcome,
    )


def _arguments(span: SpanRecord, fields: Fields) -> Json:
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in fields:
        return {"arguments": fields.json(a.GEN_AI_TOOL_CALL_ARGUMENTS)}
    told = _event(span, fields, TOOL_EVENT, CONTENT)
    if told is not None:
        return {"arguments": told[0]}
    part = _part(fields, a.GEN_AI_INPUT_MESSAGES, "tool_call")
    return {"arguments": part["arguments"]} if part is not None and "arguments" in part else None


def _result(span: SpanRecord, fields: Fields) -> Json:
    if a.GEN_AI_TOOL_CALL_RESULT in fields:
        return {"result": fields.json(a.GEN_AI_TOOL_CALL_RESULT)}
    told = _event(span, fields, CHOICE_EVENT, "message")
    if told is not None:
        return {"result": told[0]}
    part = _part(fields, a.GEN_AI_OUTPUT_MESSAGES, "tool_call_response")
    return {"result": part["response"]} if part is not None and "response" in part else None


def _event(span: SpanRecord, fields: Fields, name: str, attribute: str) -> tuple[Json] | None:
    """What an event says in one attribute, as JSON; ``None`` where there is no such event, or nothing in it."""
    for event in span.events:
        if event.name == name:
            told = Fields(event.attributes)
            value = told.json(attribute, strict=True)
            for reason in told.reasons.values():
                fields.cut(f"{name} {attribute}", reason.detail)
            return (value,) if attribute in told else None
    return None


def _part(fields: Fields, name: str, kind: str) -> dict[str, Any] | None:
    """The first part of a type in the messages that an attribute holds."""
    said = messages(fields.json(name, strict=True), "tool")
    return next((part for message in said or () for part in message["parts"] if part["type"] == kind), None)


# ---- memory ------------------------------------------------------------------------------------------------------


def _memory(span: SpanRecord, fields: Fields, operation: str) -> tuple[Json, Json]:
    stores = fields.json(*MEMORY_STORES)
    asked: dict[str, Json] = {} if stores is None else {"stores": stores}
    results = _event(span, fields, MEMORY_RESULTS, CONTENT)
    given = next((event for event in span.events if event.name in (MEMORY_QUERY, MEMORY_CONTENT)), None)
    told = Fields({} if given is None else given.attributes).text(CONTENT)
    if MEMORY_COUNT in fields and CONTENT in fields:
        results = results or (fields.json(CONTENT, strict=True),)
    elif told is None:
        told = fields.text(CONTENT)
    if told is None:
        return None, None if results is None else {"result": results[0]}
    asked["query" if operation == "memory.search" else CONTENT] = told
    return {"arguments": asked}, None if results is None else {"result": results[0]}
