"""Codex: the spans of its inner workings, of which a few are calls, with the content that its log events have.

A turn is a span ``session_task.turn``; each request to the model is a ``try_run_sampling_request``, in which the answer is received and the
tools are run that it asks for, each in a span of the tool's name. What was asked, and arguments and output of tools, stand in log events
(``codex.user_prompt``, ``codex.tool_result``) that are written in spans deeper inside; neither spans nor events have what the model was
asked and answered. Seen in what ``@openai/codex`` 0.171.0 exports, and in its source (``codex-rs/otel``).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json, whole
from spanreplay.replay.reading.messages import input_view
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "codex"
AGENT: Final = "codex"
TURN: Final = "session_task.turn"
REQUEST: Final = "try_run_sampling_request"
TOOL: Final = "tool_source"
"""What only the span of a tool call has, beside its name and id."""
EVENT_NAME: Final = "event.name"
USER_PROMPT: Final = "codex.user_prompt"
PROMPT: Final = "prompt"
AGENT_RESPONSE: Final = "codex.agent_response"
RESPONSE: Final = "response"
API_REQUEST: Final = "codex.api_request"
STATUS_CODE: Final = "http.response.status_code"
ERROR_MESSAGE: Final = "error.message"
TOOL_RESULT: Final = "codex.tool_result"
TOOL_NAME: Final = "tool_name"
CALL_ID: Final = "call_id"
ARGUMENTS: Final = "arguments"
OUTPUT: Final = "output"
OUTPUT_TRUNCATED: Final = "output_truncated"
SUCCESS: Final = "success"
ABORTED: Final = "aborted"
CONVERSATION: Final = "conversation.id"
THREAD: Final = "thread.id"
"""Of a turn the id of the conversation; of other spans the number of an operating system's thread."""
MODEL: Final = "model"

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    TURN: ("session_task.run",),
    "session_task.run": ("run_turn",),
    "run_turn": ("run_hooks_and_record_inputs",),
    REQUEST: ("stream_request", "receiving_stream"),
    "stream_request": ("model_client.",),
    "model_client.": ("responses.", "endpoint_session."),
    "responses.": ("endpoint_session.",),
    "receiving_stream": ("handle_responses",),
    TOOL: ("dispatch_tool_call",),
}
"""What is a part of what, by the beginnings of the names of spans; other spans inside are none, or calls of their own."""
_TURN_USAGE: Final = "codex.turn.token_usage."
_USAGE: Final[Mapping[str, str]] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "cache_write_input_tokens": "cache_write_input_tokens",
    "reasoning_output_tokens": "reasoning_output_tokens",
}
_REQUEST_USAGE: Final = "gen_ai.usage."


class CodexDialect:
    """Reads turns, requests to the model and calls of tools."""

    NAME = "codex"
    PRIORITY = 121

    def claims(self, span: SpanRecord) -> bool:
        """By the scope: the name of the program, such as ``codex_cli_rs`` or ``codex_exec``."""
        return span.scope.name.startswith(SCOPE) and (
            span.name in (TURN, REQUEST) or TOOL in span.attributes or _part_of(span.name) is not None
        )

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """The spans between a call and what is logged of it are parts of the call."""
        del inside
        if isinstance(told, LogRecord):
            return None
        kind = TOOL if TOOL in around.attributes else around.name if around.name in (TURN, REQUEST) else _part_of(around.name)
        return around if kind is not None and told.name.startswith(_PARTS[kind]) and TOOL not in told.attributes else None

    def unspanned(self, log: LogRecord) -> str | None:
        """Without an exporter of traces there are log events alone."""
        told = log.attributes.get(EVENT_NAME) in (API_REQUEST, TOOL_RESULT)
        return "configure otel.trace_exporter for Codex, beside otel.exporter" if told else None

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for what is between calls."""
        fields = Fields(span.attributes)
        said = _said(span, logs)
        if span.name == TURN:
            return _turn(span, fields, said)
        if span.name == REQUEST:
            return _request(span, fields, said)
        return _tool(span, fields, said) if TOOL in span.attributes else None


DIALECT: Final = CodexDialect()


def _part_of(name: str) -> str | None:
    """The beginning of a name by which parts of it are known."""
    return next((start for start in _PARTS if start not in (TURN, REQUEST, TOOL) and name.startswith(start)), None)


def _said(span: SpanRecord, logs: Sequence[LogRecord]) -> dict[str, dict[str, Any]]:
    """What is said by events of each name, the log record's and the span event's in one; attributes of parts under their names."""
    said: dict[str, dict[str, Any]] = {}
    for told in (*(event.attributes for event in span.events), *(log.attributes for log in logs)):
        name = told.get(EVENT_NAME)
        if isinstance(name, str):
            said.setdefault(name, {}).update(told)
    for event in span.events:
        if EVENT_NAME not in event.attributes:
            said.setdefault(event.name, {}).update(event.attributes)
    return said


def _session(said: Mapping[str, Mapping[str, Any]]) -> str | None:
    return next((told[CONVERSATION] for told in said.values() if isinstance(told.get(CONVERSATION), str)), None)


def _turn(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    prompt = said.get(USER_PROMPT, {}).get(PROMPT)
    answer = said.get(AGENT_RESPONSE, {}).get(RESPONSE)
    model = fields.text(MODEL)
    found = Found(
        kind="agent",
        name=AGENT,
        agent=AGENT,
        agent_version=Fields(span.resource.attributes).text("service.version"),
        session_id=_session(said) or fields.text(THREAD),
        asked=input_view(prompt) if isinstance(prompt, str) and prompt != "[REDACTED]" else None,
        answered={"messages": [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}], "finish": None}
        if isinstance(answer, str)
        else None,
        usage={kind: number for name, kind in _USAGE.items() if (number := fields.integer(f"{_TURN_USAGE}{name}")) is not None},
        versions={"model": {"request": model}} if model is not None else {},
        runs=True,
    )
    return drafted(span, fields, found)


def _request(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    model = fields.text(MODEL)
    counted = {
        name.removeprefix(_REQUEST_USAGE).replace(".", "_"): number
        for name, value in said.get("handle_responses", {}).items()
        if name.startswith(_REQUEST_USAGE) and (number := whole(value)) is not None
    }
    found = Found(
        kind="model_call",
        name=model or span.name,
        session_id=_session(said),
        usage=counted,
        error=_failure(said.get(API_REQUEST, {})),
        versions={"model": {"request": model}} if model is not None else {},
    )
    return drafted(span, fields, found)


def _failure(told: Mapping[str, Any]) -> Json:
    """How the last attempt at a request failed, if it did."""
    status, message = whole(told.get(STATUS_CODE)), told.get(ERROR_MESSAGE)
    if message is None and (status is None or status < 400):
        return None
    return {"type": None if status is None else str(status), "message": message if isinstance(message, str) else None}


def _tool(span: SpanRecord, fields: Fields, said: Mapping[str, Mapping[str, Any]]) -> StepDraft:
    told = said.get(TOOL_RESULT, {})
    failed = told.get(SUCCESS) == "false"
    output = told.get(OUTPUT)
    if told.get(OUTPUT_TRUNCATED) is True:
        fields.cut(TOOL_RESULT, "the output of the tool was cut where it was logged")
    message = output if isinstance(output, str) else told.get(ERROR_MESSAGE)
    found = Found(
        kind="tool_call",
        name=fields.text(TOOL_NAME) or span.name,
        asked={"arguments": decoded_json(told[ARGUMENTS])[0]} if ARGUMENTS in told else None,
        answered={"result": output} if isinstance(output, str) and not failed else None,
        call_id=fields.identifier(CALL_ID, a.GEN_AI_TOOL_CALL_ID),
        session_id=fields.identifier(CONVERSATION),
        error={"type": None, "message": message if isinstance(message, str) else None} if failed else None,
        outcome="cancelled" if fields.attributes.get(ABORTED) is True else None,
    )
    return drafted(span, fields, found)
