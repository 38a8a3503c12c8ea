"""Spans of Google's Agent Development Kit, both schemas of its telemetry.

Schema 1 (packages 1.x): ``invocation`` > ``invoke_agent`` (before: ``agent_run [NAME]``) > ``call_llm`` (> ``generate_content``) >
``execute_tool``, with content in ``gcp.vertex.agent.*``. Schema 2 (the default of 2.x): ``invoke_workflow`` > ``invoke_agent`` >
``generate_content`` > ``execute_tool``, with content by the GenAI conventions, in attributes or events. Source:
``google/adk/telemetry/tracing.py`` and ``node_tracing.py`` of 1.20 and 2.13.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, whole
from spanreplay.replay.reading.messages import input_view, model_input, model_output, output_view, params
from spanreplay.replay.reading.outcomes import TOOL_ERROR
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "gcp.vertex.agent"
PREFIX: Final = "gcp.vertex.agent."
REQUEST: Final = "gcp.vertex.agent.llm_request"
RESPONSE: Final = "gcp.vertex.agent.llm_response"
ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
RESULT: Final = "gcp.vertex.agent.tool_response"
SESSION: Final = "gcp.vertex.agent.session_id"
INVOCATION: Final = "gcp.vertex.agent.invocation_id"
INVOCATION_SPAN: Final = "invocation"
CALL_LLM: Final = "call_llm"
TRANSFER: Final = "transfer_to_agent"
"""The tool by which a model hands over to another agent."""
LONG_RUNNING: Final = "LongRunningFunctionTool"

_KINDS: Final[Mapping[str, Kind]] = {
    "chat": "model_call",
    "generate_content": "model_call",
    CALL_LLM: "model_call",
    "execute_tool": "tool_call",
    "load_skill": "tool_call",
    "read_skill_resource": "tool_call",
    "command": "tool_call",
    "invoke_agent": "agent",
    "agent_run": "agent",
    "invoke_workflow": "agent",
    INVOCATION_SPAN: "agent",
}
"""By operation, or by the first word of the name of a span that has none."""
_MERGED: Final = "(merged"
_NO_RESULT: Final = {"result": "<not specified>"}
_USAGE: Final[Mapping[str, str]] = {
    "prompt_token_count": "input_tokens",
    "candidates_token_count": "output_tokens",
    "cached_content_token_count": "cache_read_input_tokens",
    "thoughts_token_count": "reasoning_output_tokens",
}


class AdkDialect:
    """Reads agents, model calls and tools of ADK."""

    NAME = "adk"
    PRIORITY = 70

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, or by an attribute of ADK's own, as spans that others open for it have."""
        return span.scope.name == SCOPE or any(name.startswith(PREFIX) for name in span.attributes)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for several results sent back as one, for compaction, caching and nodes that are no agents."""
        del logs
        fields = Fields(span.attributes)
        word = span.name.partition(" ")[0]
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or word
        kind = _KINDS.get(operation)
        if kind == "tool_call":
            return None if _is_merged(span, fields) else _tool(span, fields)
        if kind == "agent":
            return _agent(span, fields, operation)
        return _model(span, fields) if kind == "model_call" else None


DIALECT: Final = AdkDialect()


def _is_merged(span: SpanRecord, fields: Fields) -> bool:
    return _MERGED in span.name or (fields.text(a.GEN_AI_TOOL_NAME) or "").startswith(_MERGED)


def _captured(fields: Fields, name: str) -> Json:
    """The object that an attribute holds; an empty one stands where content was left out."""
    value = fields.json(name, strict=True)
    return value if isinstance(value, dict) and value else None


def _session(fields: Fields) -> str | None:
    return fields.identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID, SESSION)


# ---- model calls -------------------------------------------------------------------------------------------------


def _model(span: SpanRecord, fields: Fields) -> StepDraft:
    request, response = _captured(fields, REQUEST), _captured(fields, RESPONSE)
    asked, answered = model_input(fields), model_output(fields)
    if asked is None and request is not None:
        asked = input_view(request)
        asked["params"] = {**asked["params"], **params(fields)}
    error: Json = None
    usage: dict[str, int] = {}
    model: dict[str, Json] = {}
    if response is not None:
        if response.get("content") is not None:
            answered = answered or output_view(response)
        elif response.get("error_code") is not None:
            error = {"type": str(response["error_code"]), "message": response.get("error_message")}
        counts = response.get("usage_metadata")
        usage = {name: count for key, name in _USAGE.items() if isinstance(counts, dict) and (count := whole(counts.get(key))) is not None}
        version = response.get("model_version")
        model = {"response": version} if isinstance(version, str) else {}
    found = Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL) or _text(request, "model") or span.name,
        asked=asked,
        answered=answered,
        session_id=_session(fields),
        usage=_untold(fields, usage),
        versions=_versions(fields, request, asked, model),
        error=error,
    )
    return drafted(span, fields, found)


def _versions(fields: Fields, request: Json, asked: Json, model: Mapping[str, Json]) -> dict[str, Json]:
    listed = offered(asked["tools"]) if asked is not None else []
    found: dict[str, Json] = {"tools": listed} if listed else {}
    name = _text(request, "model")
    if model or (name is not None and a.GEN_AI_REQUEST_MODEL not in fields):
        found["model"] = {**({"request": name} if name is not None else {}), **model}
    return found


def _untold(fields: Fields, usage: Mapping[str, int]) -> dict[str, int]:
    """Counts that the span has no attribute for."""
    told = {name for name in fields.attributes if name.startswith("gen_ai.usage.")}
    return {} if told else dict(usage)


def _text(value: Json, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None


# ---- tools -------------------------------------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields) -> StepDraft:
    name = fields.text(a.GEN_AI_TOOL_NAME) or span.name.removeprefix("execute_tool ")
    answered = _result(fields)
    asked = _arguments(fields, answered)
    outcome: OutcomeName | None = None
    error: Json = None
    if answered is None and fields.text(a.GEN_AI_TOOL_TYPE) == LONG_RUNNING:
        outcome = "deferred"
    elif not any(event.name == a.EXCEPTION_EVENT for event in span.events):  # nothing was raised
        kind_of_error, told = fields.text(a.ERROR_TYPE), _told(answered)
        if kind_of_error is not None or told is not None:
            outcome, error = "tool_error", {"type": kind_of_error or TOOL_ERROR, "message": told or span.status_message or None}
    kind: Kind = "tool_call"
    if name == TRANSFER:
        kind, name = "handoff", _text(asked and asked["arguments"], "agent_name") or name
    found = Found(kind=kind, name=name, asked=asked, answered=answered, session_id=_session(fields), outcome=outcome, error=error)
    return drafted(span, fields, found)


def _told(answered: Json) -> str | None:
    """What a tool gave back as ``error``: that is how ADK's tools say that they failed, and what its later versions take for a failure."""
    return _text(answered["result"], "error") if answered is not None else None


def _result(fields: Fields) -> Json:
    if a.GEN_AI_TOOL_CALL_RESULT in fields:
        return {"result": fields.json(a.GEN_AI_TOOL_CALL_RESULT)}
    value = fields.json(RESULT, strict=True)
    if value is None or value == _NO_RESULT or (value == {} and fields.json(ARGUMENTS) in ({}, None)):
        return None
    return {"result": value}


def _arguments(fields: Fields, result: Json) -> Json:
    """The arguments. A call without any looks like one whose content was left out, unless its result is there."""
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in fields:
        return {"arguments": fields.json(a.GEN_AI_TOOL_CALL_ARGUMENTS)}
    value = fields.json(ARGUMENTS, strict=True)
    return None if value is None or (value == {} and result is None) else {"arguments": value}


# ---- agents ------------------------------------------------------------------------------------------------------


def _agent(span: SpanRecord, fields: Fields, operation: str) -> StepDraft:
    name = fields.text(a.GEN_AI_AGENT_NAME, a.GEN_AI_WORKFLOW_NAME)
    if name is None and operation != INVOCATION_SPAN:
        name = span.name.removeprefix(operation).strip(" []") or None
    frame = operation == INVOCATION_SPAN
    found = Found(
        kind="agent",
        name=name or span.name,
        agent=name,
        asked=model_input(fields),
        answered=model_output(fields),
        session_id=_session(fields),
        runs=True,
        frame=frame,
    )
    draft = drafted(span, fields, found)
    if draft.run is None:
        return draft
    return replace(draft, run=replace(draft.run, agent_name=name, run_id=fields.identifier(INVOCATION)))
