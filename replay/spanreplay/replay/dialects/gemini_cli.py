"""Gemini CLI: names of the GenAI conventions around contents of the Gemini API, each request and each batch of tools a trace of its own.

Spans are ``llm_call``, ``tool_call`` inside ``schedule_tool_calls``, and ``agent_call``; all of a session have its
``gen_ai.conversation.id``. With ``telemetry.traces`` on, input and output stand in ``gen_ai.input.messages`` and
``gen_ai.output.messages``, whatever they are (contents, the request and the state of a tool call), cut at 10,000 characters; without, the
request is in a log record of the span only, and the arguments of a tool in one of the span around it. What the model answered is also in
log records that are in no span and name none. Seen in what ``@google/gemini-cli`` 0.61.0 exports.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay.model import Json
from spanreplay.replay.reading.cut_json import whole_members
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.events import event_name
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.messages import input_view, output_view, params
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "gemini-cli"
CALL_ID: Final = "gen_ai.tool.call_id"
REQUEST_TEXT: Final = "request_text"
"""Of the log record ``gemini_cli.api_request``: the contents of the request."""

TOOL_CALL: Final = "gemini_cli.tool_call"
"""The log record of a tool call."""
FUNCTION_NAME: Final = "function_name"
FUNCTION_ARGS: Final = "function_args"
SUCCESS: Final = "success"
ERROR: Final = "error"
ERROR_TYPE: Final = "error_type"
API_REQUEST: Final = "gemini_cli.api_request"

_KINDS: Final[Mapping[str, Kind | None]] = {
    "llm_call": "model_call",
    "tool_call": "tool_call",
    "agent_call": "agent",
    "schedule_tool_calls": None,
    "user_prompt": None,
    "system_prompt": None,
}
_CUT: Final = re.compile(r"\.\.\.\[TRUNCATED: original length (\d+)\]\Z")
_STATES: Final[Mapping[str, OutcomeName]] = {"cancelled": "cancelled"}
_REPORTED: Final = "mcp_tool_error"
"""``errorType`` of a tool whose server answered that it failed."""


class GeminiCliDialect:
    """Reads requests to the model, calls of tools and subagents."""

    NAME = "gemini_cli"
    PRIORITY = 130

    def claims(self, span: SpanRecord) -> bool:
        """By the operation, which no other has, and the scope or the agent's name."""
        operation = span.attributes.get(a.GEN_AI_OPERATION_NAME, span.name)
        return (
            isinstance(operation, str)
            and operation in _KINDS
            and (span.scope.name == SCOPE or span.attributes.get(a.GEN_AI_AGENT_NAME) == SCOPE)
        )

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """What is logged of a tool call in the batch around it names the tool only: it is about the only call of that tool."""
        del around
        if isinstance(told, SpanRecord) or event_name(told) != TOOL_CALL:
            return None
        name = told.attributes.get(FUNCTION_NAME)
        calls = [span for span in inside if name is not None and span.attributes.get(a.GEN_AI_TOOL_NAME) == name]
        return calls[0] if len(calls) == 1 else None

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for what is around a batch of tool calls."""
        # What the conventions call the name of a prompt is the id of what the user said here.
        span = replace(span, attributes={name: value for name, value in span.attributes.items() if name != a.GEN_AI_PROMPT_NAME})
        fields = Fields(span.attributes)
        kind = _KINDS.get(_operation(span))
        if kind == "model_call":
            return _model(span, fields, logs)
        if kind == "tool_call":
            return _tool(span, fields, {event_name(log): log.attributes for log in logs})
        return _agent(span, fields) if kind == "agent" else None


DIALECT: Final = GeminiCliDialect()


def _operation(span: SpanRecord) -> str:
    operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
    return operation if isinstance(operation, str) and operation else span.name


def _value(fields: Fields, name: str) -> Json:
    """A value that may be cut: the whole members of what was an object, the text of what was something else."""
    given = fields.text(name) or ""
    cut = _CUT.search(given)
    if cut is None:
        return fields.json(name)
    fields.cut(name, f"{name} is cut at {cut.start()} of {cut[1]} characters")
    return whole_members(given[: cut.start()]) or None


# ---- requests to the model ---------------------------------------------------------------------------------------


def _model(span: SpanRecord, fields: Fields, logs: Sequence[LogRecord]) -> StepDraft:
    told = _asked(fields, logs)
    asked: Json = None
    if told is not None:
        body = {
            "contents": [],
            "systemInstruction": _instruction(fields.json(a.GEN_AI_SYSTEM_INSTRUCTIONS)),
            "tools": fields.json(a.GEN_AI_TOOL_DEFINITIONS),
        }
        asked = {**input_view(told), **{key: view for key, view in (input_view(body) or {}).items() if key in ("system", "tools")}}
        asked["params"] = params(fields)
    found = Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL) or span.name,
        asked=_with_plain_ids(asked),
        answered=_with_plain_ids(_answered(_value(fields, a.GEN_AI_OUTPUT_MESSAGES))),
        agent_version=_version(span),
    )
    return drafted(span, fields, found)


def _asked(fields: Fields, logs: Sequence[LogRecord]) -> Json:
    """The messages of a request: from the span where they are whole, else from the log records written in it."""
    given = fields.attributes.get(a.GEN_AI_INPUT_MESSAGES)
    if isinstance(given, str) and _CUT.search(given) is None and given:
        return fields.json(a.GEN_AI_INPUT_MESSAGES)
    events = {event_name(log): log.attributes for log in logs}
    for event, name in ((a.GEN_AI_INFERENCE_DETAILS_EVENT, a.GEN_AI_INPUT_MESSAGES), (API_REQUEST, REQUEST_TEXT)):
        value, whole = decoded_json(events.get(event, {}).get(name))
        if isinstance(value, list) and whole:
            return value
    _value(fields, a.GEN_AI_INPUT_MESSAGES)  # says that it is cut
    return None


def _instruction(value: Json) -> Json:
    return {"parts": [{"text": value}]} if isinstance(value, str) else value if isinstance(value, dict) else None


def _answered(value: Json) -> Json:
    """One content, or one for each piece of a stream: put together again."""
    contents = value if isinstance(value, list) else [value]
    joined: list[dict[str, Any]] = []
    for content in contents:
        pieces = content.get("parts") if isinstance(content, dict) else None
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            before = joined[-1] if joined else {}
            if _is_text(piece) and _is_text(before) and before.get("thought") == piece.get("thought"):
                joined[-1] = {**before, **piece, "text": before["text"] + piece["text"]}
            else:
                joined.append(piece)
    return output_view({"candidates": [{"content": {"role": "model", "parts": joined}}]}) if joined else None


def _with_plain_ids(view: Json) -> Json:
    """A view with the ids that the API gave to calls; the tool writes the function's name before them."""
    parts = [part for message in (view or {}).get("messages") or () for part in message["parts"] if isinstance(part.get("id"), str)]
    names = {part["name"] for part in parts if isinstance(part.get("name"), str)}
    for part in parts:
        name = next((name for name in names if part["id"].startswith(f"{name}__")), None)
        if name is not None:
            part["id"] = part["id"].removeprefix(f"{name}__")
    return view


def _is_text(piece: Mapping[str, Json]) -> bool:
    return isinstance(piece.get("text"), str)


# ---- tools and subagents -----------------------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    told = said.get(TOOL_CALL, {})
    request = _object(_value(fields, a.GEN_AI_INPUT_MESSAGES))
    state = _object(_value(fields, a.GEN_AI_OUTPUT_MESSAGES))
    response = _object(state.get("response"))
    parts = response.get("responseParts")
    results = [
        _object(part["functionResponse"]).get("response")
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and "functionResponse" in part
    ]
    error, outcome = _ended(state, response, results) if state else _logged(told)
    answered: Json = None
    if results and (error is None or outcome == "tool_error"):
        answered = {"result": results[0] if len(results) == 1 else results}
    asked: Json = None
    if "args" in request or FUNCTION_ARGS in told:
        asked = {"arguments": request["args"] if "args" in request else decoded_json(told[FUNCTION_ARGS])[0]}
    name = fields.text(a.GEN_AI_TOOL_NAME) or span.name
    call_id = fields.identifier(CALL_ID, a.GEN_AI_TOOL_CALL_ID)
    found = Found(
        kind="tool_call",
        name=name,
        asked=asked,
        answered=answered,
        call_id=None if call_id is None else call_id.removeprefix(f"{name}__"),
        error=error,
        outcome=outcome,
        agent_version=_version(span),
    )
    return drafted(span, fields, found)


def _ended(state: Mapping[str, Any], response: Mapping[str, Any], results: Sequence[Json]) -> tuple[Json, OutcomeName | None]:
    status = state.get("status")
    if status == "error":
        kind = response.get("errorType")
        message = next((one["error"] for one in results if isinstance(one, dict) and isinstance(one.get("error"), str)), None)
        return {"type": kind, "message": message}, "tool_error" if kind == _REPORTED else "error"
    return None, _STATES.get(status) if isinstance(status, str) else None


def _logged(told: Mapping[str, Any]) -> tuple[Json, OutcomeName | None]:
    """How a call ended, from its log record."""
    if told.get(SUCCESS) is not False:
        return None, None
    kind, message = told.get(ERROR_TYPE), told.get(ERROR)
    return {"type": kind, "message": message}, "tool_error" if kind == _REPORTED else "error"


def _agent(span: SpanRecord, fields: Fields) -> StepDraft:
    given, made = _value(fields, a.GEN_AI_INPUT_MESSAGES), _value(fields, a.GEN_AI_OUTPUT_MESSAGES)
    found = Found(
        kind="agent",
        name=fields.text(a.GEN_AI_AGENT_NAME) or span.name,
        asked=None if given is None else {"arguments": given},
        answered=None if made is None else {"result": made},
        agent_version=_version(span),
    )
    return drafted(span, fields, found)


def _object(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _version(span: SpanRecord) -> str | None:
    return Fields(span.resource.attributes).text("service.version")
