"""Claude Code: the traces of its beta telemetry, with the content that its log events have.

A prompt is a span ``claude_code.interaction``, with a ``claude_code.llm_request`` for each request to the model and a ``claude_code.tool``
for each call of a tool in it; a tool's spans ``tool.blocked_on_user`` and ``tool.execution`` are parts of the call. Content is in log
records that are written in the span around: bodies of requests and responses (``OTEL_LOG_RAW_API_BODIES``, cut at 60 KB), arguments of
tools (``OTEL_LOG_TOOL_DETAILS``, abbreviated); and in the span event ``tool.output`` (``OTEL_LOG_TOOL_CONTENT``, built-in tools only). With
``ENABLE_BETA_TRACING_DETAILED`` the spans have it, without the tool calls of an answer. Seen in what Claude Code 2.1.197 exports.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.cut_json import whole_members
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.events import event_name
from spanreplay.replay.reading.fields import NOT_CAPTURED, Fields, decoded_json
from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.reasons import CONTENT_ELSEWHERE, INPUT_ABSENT, LOSSY, OUTPUT_ABSENT
from spanreplay.replay.rebuilding.gathering import FAILED
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, SpanRecord

SCOPE: Final = "com.anthropic.claude_code.tracing"
EVENTS_SCOPE: Final = "com.anthropic.claude_code.events"
SPAN_TYPE: Final = "span.type"
AGENT: Final = "claude-code"
USER_PROMPT: Final = "user_prompt"
MODEL: Final = "model"
STATUS_CODE: Final = "status_code"
ERROR: Final = "error"
ERROR_TYPE: Final = "error_type"
SUCCESS: Final = "success"
STOP_REASON: Final = "stop_reason"
MODEL_OUTPUT: Final = "response.model_output"
HAS_TOOL_CALL: Final = "response.has_tool_call"
NEW_CONTEXT: Final = "new_context"
REQUEST_ID: Final = "request_id"
TOOL_NAME: Final = "tool_name"
TOOL_USE_ID: Final = "tool_use_id"
TOOL_INPUT: Final = "tool_input"
FULL_COMMAND: Final = "full_command"
FILE_PATH: Final = "file_path"
BODY: Final = "body"
BODY_REF: Final = "body_ref"
RESPONSE: Final = "response"
DECISION: Final = "decision"
SOURCE: Final = "source"

_TYPES: Final = frozenset({"interaction", "llm_request", "tool", "tool.execution", "tool.blocked_on_user"})
_PARTS: Final = frozenset({"tool.execution", "tool.blocked_on_user"})
_ASKING: Final = frozenset({"api_request_body"})
_ANSWERING: Final = frozenset({"api_request", "api_response_body", "assistant_response", "api_error", "api_refusal"})
_OF_TOOLS: Final = frozenset({"tool_result", "tool_decision"})
_MS: Final = 1_000_000
"""Log records have times of whole milliseconds."""
_USAGE: Final[Mapping[str, str]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_write_input_tokens",
}
_CUT: Final = "[TRUNCATED - Content exceeds 60KB limit]"
_LABEL: Final = re.compile(r"\A\[TOOL (?:INPUT|RESULT): [^\]\n]*\]\n")
"""What the detailed traces put before the input and the result of a tool."""
_NEWS: Final = re.compile(
    r"^\[(USER|TOOL RESULT: ([^\]\n]*))\]\n(.*?)(?=\n\n---\n\n\[(?:USER|TOOL RESULT: [^\]\n]*)\]\n|\Z)", re.DOTALL | re.MULTILINE
)
_ABBREVIATED: Final = re.compile(r"…\[(?:\d+ (?:chars|items)|truncated)\]|\"<nested>\"|\"…\":\"\d+ keys\"")
_ASKED_FOR: Final = frozenset({"tool_use", "tool_calls"})
_DECISIONS: Final[Mapping[str, str]] = {"accept": "allow", "reject": "deny"}


class ClaudeCodeDialect:
    """Reads prompts, requests to the model and calls of tools."""

    NAME = "claude_code"
    PRIORITY = 120

    def claims(self, span: SpanRecord) -> bool:
        """By the scope and the type of the span; by the name, where a back end lost the scope."""
        return _type(span) in _TYPES and (span.scope.name == SCOPE or span.name.startswith("claude_code."))

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """A tool's parts are about the tool; a log record is about the request that it was written in, or the tool that it names."""
        if isinstance(told, SpanRecord):
            return around if _type(told) in _PARTS and _type(around) == "tool" else None
        event = event_name(told)
        if event in _OF_TOOLS:
            call = told.attributes.get(TOOL_USE_ID)
            return next((span for span in inside if call is not None and span.attributes.get(TOOL_USE_ID) == call), None)
        return _request(told, event, inside) if event in _ASKING or event in _ANSWERING else None

    def unspanned(self, log: LogRecord) -> str | None:
        """Without the beta traces there are log events alone."""
        told = log.scope.name == EVENTS_SCOPE and event_name(log) in ("api_request", "tool_result")
        return "set CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1 and OTEL_TRACES_EXPORTER=otlp for Claude Code" if told else None

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for a part of a tool's call whose span is not here."""
        fields = Fields(span.attributes)
        said = {event_name(log): log.attributes for log in logs}
        kind = fields.text(SPAN_TYPE)
        if kind == "interaction":
            return _interaction(span, fields)
        if kind == "llm_request":
            return _model(span, fields, said)
        return _tool(span, fields, said) if kind == "tool" else None


DIALECT: Final = ClaudeCodeDialect()


def _type(span: SpanRecord) -> str | None:
    kind = span.attributes.get(SPAN_TYPE)
    return kind if isinstance(kind, str) else None


def _request(log: LogRecord, event: str, inside: Sequence[SpanRecord]) -> SpanRecord | None:
    """The request that a record was written in: of several at once the one with its id, else the one that just began or ended."""
    time = log.time_ns or log.observed_ns
    open_then = [
        span
        for span in inside
        if _type(span) == "llm_request" and span.start_ns - _MS <= time and (span.end_ns is None or time <= span.end_ns + _MS)
    ]
    named = log.attributes.get(REQUEST_ID)
    same = [span for span in open_then if named is not None and span.attributes.get(REQUEST_ID) == named]
    if event in _ASKING:
        return min(open_then, key=lambda span: abs(time - span.start_ns), default=None)
    return min(same or open_then, key=lambda span: abs(time - (span.end_ns or time)), default=None)


# ---- a prompt ----------------------------------------------------------------------------------------------------


def _interaction(span: SpanRecord, fields: Fields) -> StepDraft:
    prompt = fields.text(USER_PROMPT) if USER_PROMPT in fields else None
    found = Found(
        kind="agent",
        name=AGENT,
        agent=AGENT,
        agent_version=Fields(span.resource.attributes).text("service.version"),
        asked=input_view(prompt),
        runs=True,
    )
    return drafted(span, fields, found)


# ---- a request to the model --------------------------------------------------------------------------------------


def _model(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    reasons: list[Reason] = []
    whole = True
    asked = _body(fields, said.get("api_request_body", {}), "request", reasons)
    given = input_view(asked)
    if given is None and NEW_CONTEXT in fields:
        given = input_view(_news(_text(fields, NEW_CONTEXT) or ""))
        reasons.append(Reason(code=INPUT_ABSENT, detail="of the request only what was new in it is recorded"))
        whole = False
    answered = output_view(_body(fields, said.get("api_response_body", {}), "response", reasons))
    if answered is None:
        answered, lacks_calls = _spoken(fields, said.get("assistant_response", {}))
        if lacks_calls and answered is not None:
            reasons.append(Reason(code=OUTPUT_ABSENT, detail="of the answer only the text is recorded, not the calls of tools"))
            whole = False
    failed = span.status == STATUS_ERROR or fields.attributes.get(SUCCESS) is False
    status = fields.integer(STATUS_CODE)
    found = Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, MODEL) or span.name,
        asked=given,
        answered=answered,
        usage={kind: number for name, kind in _USAGE.items() if (number := fields.integer(name)) is not None},
        error={"type": None if status is None else str(status), "message": fields.text(ERROR)} if failed else None,
        response_id=fields.identifier(a.GEN_AI_RESPONSE_ID),
        grade="exact" if whole else "structure",
        reasons=tuple(reasons),
    )
    return drafted(span, fields, found)


def _news(text: str) -> list[dict[str, Json]]:
    """What the detailed traces say was new in a request: what the user said and the results of tools, each under a label."""
    said: list[dict[str, Json]] = []
    for label, call, content in _NEWS.findall(text):
        if label == "USER":
            said.append({"role": "user", "content": content})
        else:
            said.append({"role": "user", "content": [{"type": "tool_result", TOOL_USE_ID: call, "content": decoded_json(content)[0]}]})
    return said or [{"role": "user", "content": text}]


def _body(fields: Fields, told: Mapping[str, Any], what: str, reasons: list[Reason]) -> Json:
    """A body as it was logged: whole, cut, or only the name of the file that it was written to."""
    elsewhere = told.get(BODY_REF)
    if isinstance(elsewhere, str):
        reasons.append(Reason(code=CONTENT_ELSEWHERE, detail=f"the body of the {what} was written to {elsewhere}"))
    body = told.get(BODY)
    if not isinstance(body, str):
        return None
    value, _ = decoded_json(body)
    if isinstance(value, dict):
        return value
    fields.cut(f"api_{what}_body", f"the body of the {what} stops after {len(body)} of {told.get('body_length')} characters")
    return whole_members(body) or None


def _spoken(fields: Fields, told: Mapping[str, Any]) -> tuple[Json, bool]:
    """The text of an answer, and whether there were calls of tools that it lacks."""
    text = _text(fields, MODEL_OUTPUT)
    if text is None and isinstance(told.get(RESPONSE), str) and told[RESPONSE] not in NOT_CAPTURED:
        text = told[RESPONSE]
    if text is None:
        return None, False
    finish = fields.text(STOP_REASON)
    calls = fields.attributes.get(HAS_TOOL_CALL) is True or finish in _ASKED_FOR
    return {**output_view(text), "finish": finish}, calls


def _text(fields: Fields, name: str) -> str | None:
    """A text of the detailed traces."""
    text = fields.text(name) if name in fields else None
    if text is not None and text.endswith(_CUT):
        fields.cut(name, f"{name} is cut at 60 KB")
        return text.removesuffix(_CUT).rstrip("\n")
    return text


# ---- a call of a tool --------------------------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    reasons: list[Reason] = []
    told = said.get("tool_result", {})
    parts = {event.name.removeprefix("claude_code."): event.attributes for event in span.events}
    asked = _arguments(fields, told, reasons)
    answered = _result(fields, parts.get("tool.output", {}), reasons)
    error, outcome = _failure(told, parts.get("tool.execution", {}))
    decision = _decision({**parts.get("tool.blocked_on_user", {}), **said.get("tool_decision", {})})
    if decision is not None and decision["outcome"] == "deny" and "tool.execution" not in parts:
        outcome = "rejected"
    found = Found(
        kind="tool_call",
        name=fields.text(TOOL_NAME) or span.name,
        asked=asked,
        answered=answered if error is None else None,
        call_id=fields.identifier(a.GEN_AI_TOOL_CALL_ID, TOOL_USE_ID),
        error=error,
        outcome=outcome,
        grade="structure" if any(reason.code == INPUT_ABSENT for reason in reasons) else "exact",
        reasons=tuple(reasons),
    )
    return replace(drafted(span, fields, found), decision=decision)


def _arguments(fields: Fields, told: Mapping[str, Any], reasons: list[Reason]) -> Json:
    labelled = _text(fields, TOOL_INPUT)
    if labelled is not None:
        return {"arguments": decoded_json(_LABEL.sub("", labelled))[0]}
    given = told.get(TOOL_INPUT)
    if isinstance(given, str):
        if _ABBREVIATED.search(given):
            fields.cut(TOOL_INPUT, "the arguments are recorded abbreviated")
        return {"arguments": decoded_json(given)[0]}
    for name, argument in ((FULL_COMMAND, "command"), (FILE_PATH, "file_path")):
        if name in fields:
            reasons.append(Reason(code=INPUT_ABSENT, detail=f"of the arguments only {argument} is recorded"))
            return {"arguments": {argument: fields.text(name)}}
    return None


def _result(fields: Fields, output: Mapping[str, Any], reasons: list[Reason]) -> Json:
    labelled = _text(fields, NEW_CONTEXT)
    if labelled is not None:
        return {"result": decoded_json(_LABEL.sub("", labelled))[0]}
    # What a Write is said to have as ``content`` is what it was given.
    name = next((n for n in ("output", "diff", "content") if n in output and (n != "content" or fields.text(TOOL_NAME) != "Write")), None)
    if name is None:
        return None
    text = output[name]
    if isinstance(text, str) and text.endswith(_CUT):
        fields.cut("tool.output", f"the {name} of the tool is cut at 60 KB")
        text = text.removesuffix(_CUT).rstrip("\n")
    what = {"output": "standard output", "diff": "difference that was made", "content": "content"}[name]
    reasons.append(Reason(code=LOSSY, detail=f"of the result only the {what} is recorded"))
    return {"result": text}


def _failure(told: Mapping[str, Any], execution: Mapping[str, Any]) -> tuple[Json, OutcomeName | None]:
    failed = told.get(SUCCESS) == "false" or execution.get(SUCCESS) is False or FAILED in execution
    if not failed:
        return None, None
    kind = told.get(ERROR_TYPE)
    message = told.get(ERROR, execution.get(ERROR, execution.get(FAILED)))
    reported = kind == "McpToolCallError"  # the server answered, and what it answered is that it failed
    return {"type": kind if isinstance(kind, str) else None, "message": message if isinstance(message, str) else None}, (
        "tool_error" if reported else None
    )


def _decision(told: Mapping[str, Any]) -> dict[str, Json] | None:
    outcome = _DECISIONS.get(str(told.get(DECISION)))
    return None if outcome is None else {"outcome": outcome, "source": told.get(SOURCE)}
