"""Spans of pydantic-ai, versions 1 to 6 of its instrumentation (``InstrumentationSettings.version``).

Version 1 (packages 0.x and 1.0) has messages as a list of events in ``events`` and ``all_messages_events``, or as log records; later ones
have the attributes of the GenAI conventions. Up to version 2 spans are called ``agent run``, ``running tool`` and ``running output
function``, and a tool's content is in ``tool_arguments`` and ``tool_response``. Source: ``pydantic_ai/_instrumentation.py``,
``pydantic_ai/capabilities/instrumentation.py`` and ``pydantic_ai/models/instrumented.py`` of 0.4, 1.60 and 2.68.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, whole
from spanreplay.replay.reading.messages import finish_reason, messages, model_input, model_output, params
from spanreplay.replay.reading.spoken import EVENT_NAME, spoken
from spanreplay.replay.reading.versions import offered
from spanreplay.replay.reasons import AS_TOLD
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, SpanRecord, Value

SCOPE: Final = "pydantic-ai"
REQUEST: Final = "model_request_parameters"
TOLD: Final = "spanreplay.told.request"
"""What the agent's history says that a request was, whose own span does not: messages and system instructions."""
AGENT_NAME: Final = "agent_name"
MODEL_NAME: Final = "model_name"
EVENTS: Final = "events"
ALL_EVENTS: Final = "all_messages_events"
ALL_MESSAGES: Final = "pydantic_ai.all_messages"
NEW_MESSAGES: Final = "pydantic_ai.new_message_index"
"""How many messages of the history were there before this run."""
FINAL_RESULT: Final = "final_result"
ARGUMENTS: Final = "tool_arguments"
RESPONSE: Final = "tool_response"
DEFERRAL: Final = "pydantic_ai.tool.deferral.name"
DEFERRAL_METADATA: Final = "pydantic_ai.tool.deferral.metadata"
FAILURE_STAGE: Final = "pydantic_ai.tool.failure_stage"
AGENT_CALL: Final = "gen_ai.agent.call.id"
"""One for each run of an agent."""
AGENT_USAGE: Final = "gen_ai.aggregated_usage."
MESSAGE: Final = "logfire.msg"

_AGENT_RUN: Final = "agent run"
_TOOL_SPANS: Final = ("running tool", "running output function")
_OUTPUT_FUNCTION: Final = "running output function"
_OUTPUT_TOOL: Final = "final_result"
_COUNTED: Final = ("gen_ai.usage.", a.ERROR_TYPE)
_DEFERRED: Final[Mapping[str, str]] = {"ApprovalRequired": "require_approval", "CallDeferred": "deferred"}
"""Why a call was put off, by the name of the exception that does it."""
_TOLD_THE_MODEL: Final = frozenset({"ToolRetryError", "ToolFailedError", "ModelRetry"})
"""Exceptions whose text goes back to the model as the tool's answer."""
_KINDS: Final[Mapping[str, Kind]] = {"chat": "model_call", "execute_tool": "tool_call", "invoke_agent": "agent"}
_CONTENT: Final[Mapping[str, str]] = {
    "text": "content",
    "reasoning": "content",
    "tool_call": "arguments",
    "tool_call_response": "response",
    "uri": "uri",
    "blob": "content",
}
"""The field of a part that is left out where content is (``include_content=False``)."""


class PydanticAiDialect:
    """Reads agents, model requests and tools of pydantic-ai."""

    NAME = "pydantic_ai"
    PRIORITY = 30

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, or, where a format has none, by names that only pydantic-ai has."""
        names = span.attributes
        own = span.scope.name == SCOPE or any(
            name in names for name in (REQUEST, ALL_EVENTS, ALL_MESSAGES, ARGUMENTS, RESPONSE, FAILURE_STAGE)
        )
        return (own or _is_tool(names)) and _kind(span) is not None

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for an output function, which makes the agent's answer and is no tool."""
        del logs
        fields = Fields(span.attributes)
        kind = _kind(span)
        if kind == "tool_call":
            return None if _is_output(span, fields) else _tool(span, fields)
        return _agent(span, fields) if kind == "agent" else _model(span, fields)

    def told(self, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """The last request of an agent, where its span has no messages: those of one that failed stand in the agent's history only."""
        last = next((span for span in reversed(inside) if _kind(span) == "model_call"), None)
        if last is None or _kind(around) != "agent" or any(name in last.attributes for name in (a.GEN_AI_INPUT_MESSAGES, EVENTS)):
            return None
        fields = Fields(around.attributes)
        said = _history(fields)
        if not said or said[-1]["role"] == "assistant":
            return None
        asked = {a.GEN_AI_INPUT_MESSAGES: said, a.GEN_AI_SYSTEM_INSTRUCTIONS: fields.json(a.GEN_AI_SYSTEM_INSTRUCTIONS)}
        return replace(last, attributes={**last.attributes, TOLD: json.dumps(asked)})


DIALECT: Final = PydanticAiDialect()


def _is_tool(names: Mapping[str, Value]) -> bool:
    """Whether a span says in words what pydantic-ai says of its tools and output functions."""
    told = names.get(MESSAGE)
    return isinstance(told, str) and told.partition(": ")[0] in _TOOL_SPANS and a.GEN_AI_TOOL_NAME in names


def _kind(span: SpanRecord) -> Kind | None:
    operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
    if isinstance(operation, str):
        return _KINDS.get(operation)
    names = span.attributes
    if a.GEN_AI_TOOL_NAME in names or ARGUMENTS in names or span.name in _TOOL_SPANS:
        return "tool_call"
    if AGENT_NAME in names or ALL_EVENTS in names or ALL_MESSAGES in names or span.name == _AGENT_RUN:
        return "agent"
    return "model_call" if REQUEST in names else None


# ---- model requests ----------------------------------------------------------------------------------------------


def _model(span: SpanRecord, fields: Fields) -> StepDraft:
    asked, answered = model_input(fields), model_output(fields)
    told = _events(fields, EVENTS)
    if told is not None:
        said, replied = told
        asked = asked or (None if said is None else {"messages": said, "system": [], "tools": [], "params": params(fields)})
        answered = answered or (None if replied is None else {"messages": replied, "finish": finish_reason(fields) or _finish(replied)})
    if asked is not None and _withheld(asked["messages"]):
        asked, answered = None, None
    reasons: tuple[Reason, ...] = ()
    if asked is None and isinstance(history := fields.json(TOLD), dict):
        asked = {**model_input(Fields(history)), "params": params(fields)}
        reasons = (Reason(code=AS_TOLD, detail="the record has no input; this is what the history of the agent ends with"),)
    tools = _tools(fields)
    if asked is not None and not asked["tools"]:
        asked["tools"] = tools
    found = Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL, MODEL_NAME) or span.name.removeprefix("chat "),
        asked=asked,
        answered=answered,
        versions={"tools": offered(tools)} if tools else {},
        outcome="unknown" if _is_unanswered(span, answered) else None,
        reasons=reasons,
    )
    return drafted(span, fields, found)


def _is_unanswered(span: SpanRecord, answered: Json) -> bool:
    """Whether a request ended before the model said anything: the span of a stream that fails at once ends well, with an empty message."""
    if answered is None or not answered["messages"] or answered["finish"] or any(message["parts"] for message in answered["messages"]):
        return False
    names = span.attributes
    return span.end_ns is not None and span.status != STATUS_ERROR and not any(name.startswith(_COUNTED) for name in names)


def _tools(fields: Fields) -> list[dict[str, Json]]:
    """The tools offered, output tools among them, from the parameters of the request."""
    request = fields.json(REQUEST)
    if not isinstance(request, dict):
        return []
    kinds = [request.get(name) for name in ("function_tools", "output_tools")]
    listed = [tool for kind in kinds if isinstance(kind, list) for tool in kind if isinstance(tool, dict)]
    return [
        {
            "type": "function",
            "name": tool.get("name"),
            **({"description": tool["description"]} if tool.get("description") else {}),
            **({"parameters": tool["parameters_json_schema"]} if "parameters_json_schema" in tool else {}),
        }
        for tool in listed
    ]


# ---- tools -------------------------------------------------------------------------------------------------------


def _is_output(span: SpanRecord, fields: Fields) -> bool:
    message = fields.text(MESSAGE) or ""
    return _OUTPUT_FUNCTION in (span.name, message.partition(":")[0]) or fields.text(a.GEN_AI_TOOL_NAME) == _OUTPUT_TOOL


def _tool(span: SpanRecord, fields: Fields) -> StepDraft:
    raised = _raised(span)
    deferral = fields.text(DEFERRAL) or (raised if raised in _DEFERRED else None)
    outcome: OutcomeName | None = None
    if deferral is not None:
        outcome = "deferred"
    elif fields.text(FAILURE_STAGE) == "validation":
        outcome = "malformed"
    elif raised in _TOLD_THE_MODEL:
        outcome = "tool_error"
    asked, answered = (
        {key: fields.json(*names)} if any(name in fields for name in names) else None
        for key, names in (
            ("arguments", (a.GEN_AI_TOOL_CALL_ARGUMENTS, ARGUMENTS)),
            ("result", (a.GEN_AI_TOOL_CALL_RESULT, RESPONSE)),
        )
    )
    found = Found(
        kind="tool_call",
        name=fields.text(a.GEN_AI_TOOL_NAME) or span.name.removeprefix("execute_tool "),
        asked=asked,
        answered=answered,
        outcome=outcome,
    )
    draft = drafted(span, fields, found)
    if outcome == "tool_error" and answered is not None and isinstance(answered["result"], str):
        draft = replace(draft, error={"type": draft.error and draft.error["type"], "message": answered["result"]})
    if deferral is None:
        return draft
    metadata = fields.json(DEFERRAL_METADATA)
    decision = {"outcome": _DEFERRED.get(deferral, deferral), **({} if metadata is None else {"metadata": metadata})}
    return replace(draft, error=None, decision=decision)


def _raised(span: SpanRecord) -> str | None:
    """The name of the class of the exception that left the span."""
    for event in reversed(span.events):
        if event.name == a.EXCEPTION_EVENT:
            return (Fields(event.attributes).text(a.EXCEPTION_TYPE) or "").rpartition(".")[2]
    return None


# ---- agents ------------------------------------------------------------------------------------------------------


def _agent(span: SpanRecord, fields: Fields) -> StepDraft:
    name = fields.text(a.GEN_AI_AGENT_NAME, AGENT_NAME)
    asked, answered = _turn(fields, _history(fields))
    usage = {
        key.removeprefix(AGENT_USAGE).replace(".", "_"): count
        for key, value in fields.attributes.items()
        if key.startswith(AGENT_USAGE) and (count := whole(value)) is not None
    }
    found = Found(
        kind="agent",
        name=name or span.name.removesuffix(" run"),
        agent=name,
        asked=asked,
        answered=answered,
        usage=usage,
        versions={"model": {"request": model}} if (model := fields.text(MODEL_NAME)) is not None else {},
        runs=True,
    )
    draft = drafted(span, fields, found)
    return draft if draft.run is None else replace(draft, run=replace(draft.run, run_id=fields.identifier(AGENT_CALL)))


def _history(fields: Fields) -> list[dict[str, Any]]:
    """All messages of an agent; none where they are not there with what they say."""
    said = messages(fields.json(ALL_MESSAGES, strict=True), "user")
    if said is None:
        said = (_events(fields, ALL_EVENTS) or (None, None))[0]
    return [] if said is None or _withheld(said) else said


def _turn(fields: Fields, said: Sequence[dict[str, Any]]) -> tuple[Json, Json]:
    """What the agent was asked in this run, the conversation before it included, and what it answered."""
    before = (fields.integer(NEW_MESSAGES) or 0) // 2  # a request and a response are two messages of the history
    replies = [number for number, message in enumerate(said) if message["role"] == "assistant"]
    first = replies[before] if before < len(replies) else len(said)
    system = fields.json(a.GEN_AI_SYSTEM_INSTRUCTIONS)
    asked: Json = None
    if said[:first]:
        read = model_input(Fields({a.GEN_AI_INPUT_MESSAGES: list(said[:first]), a.GEN_AI_SYSTEM_INSTRUCTIONS: system}))
        asked = {**read, "params": params(fields)}
    final = fields.attributes.get(FINAL_RESULT)
    if isinstance(final, str):
        return asked, {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": final}]}], "finish": None}
    if said and said[-1]["role"] == "assistant" and len(said) > first:
        return asked, {"messages": [said[-1]], "finish": said[-1].get("finish_reason")}
    return asked, None


# ---- messages ----------------------------------------------------------------------------------------------------


def _events(fields: Fields, name: str) -> tuple[list[dict[str, Json]] | None, list[dict[str, Json]] | None] | None:
    """Both sides of what a list of events says; ``None`` where there is no such list."""
    listed = fields.json(name, strict=True)
    if not isinstance(listed, list):
        return None
    said = spoken(event for event in listed if isinstance(event, dict) and EVENT_NAME in event)
    for reason in said.cut:
        fields.cut(name, reason.detail)
    return said.asked, said.answered


def _withheld(said: Json) -> bool:
    """Whether the messages stand there without what they say."""
    parts = [part for message in said or () for part in message["parts"]]
    return bool(parts) and not any(_CONTENT.get(part["type"], "type") in part for part in parts)


def _finish(said: Sequence[Mapping[str, Json]]) -> str | None:
    return next((reason for message in said if isinstance(reason := message.get("finish_reason"), str)), None)
