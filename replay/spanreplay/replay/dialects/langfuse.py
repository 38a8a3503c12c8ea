"""Observations of Langfuse: spans of its SDK, and spans of anybody's that came back from its server.

The SDK writes ``langfuse.observation.*`` and ``langfuse.trace.*``; the source of Langfuse's exports gives the same names to what the server
kept. An observation may be another instrumentation's span, which that one's dialect then reads first; the server takes most content out of
its attributes and keeps it as input and output only. Source: ``langfuse/_client/attributes.py`` and ``langfuse/langchain`` (5.0.4).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import called_with, question
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, whole
from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.reading.operations import operation_kind
from spanreplay.replay.reading.python_text import python_value
from spanreplay.replay.reading.rebuilt import chat_messages
from spanreplay.replay.reading.spoken import CHOICE, EVENT_NAME, spoken
from spanreplay.replay.shapes.langchain import ToolAnswer, tool_answer
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

TYPE: Final = "langfuse.observation.type"
INPUT: Final = "langfuse.observation.input"
OUTPUT: Final = "langfuse.observation.output"
LEVEL: Final = "langfuse.observation.level"
STATUS_MESSAGE: Final = "langfuse.observation.status_message"
MODEL: Final = "langfuse.observation.model.name"
PARAMETERS: Final = "langfuse.observation.model.parameters"
USAGE: Final = "langfuse.observation.usage_details"
PROMPT_NAME: Final = "langfuse.observation.prompt.name"
PROMPT_VERSION: Final = "langfuse.observation.prompt.version"
METADATA_INPUTS: Final = "langfuse.observation.metadata.inputs"
"""The arguments that LangChain gave the handler beside their text."""
CALL_ID: Final = "langfuse.observation.metadata.tool_call_id"
THREAD: Final = "langfuse.observation.metadata.thread_id"
TRACE_NAME: Final = "langfuse.trace.name"
TRACE_INPUT: Final = "langfuse.trace.input"
TRACE_OUTPUT: Final = "langfuse.trace.output"
SESSIONS: Final = ("langfuse.session.id", "langfuse.trace.session_id")

_UNSET: Final = "Infinity"
"""What the wrapper of the openai client writes for a limit that was not given."""
_RAISED: Final = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Timeout)): (.*)", re.DOTALL)
_KINDS: Final[Mapping[str, Kind]] = {
    "generation": "model_call",
    "embedding": "retrieval",
    "retriever": "retrieval",
    "agent": "agent",
    "tool": "tool_call",
}
_USAGE: Final[Mapping[str, str]] = {
    "input": "input_tokens",
    "prompt_tokens": "input_tokens",
    "promptTokens": "input_tokens",
    "output": "output_tokens",
    "completion_tokens": "output_tokens",
    "completionTokens": "output_tokens",
    "total": "total_tokens",
    "totalTokens": "total_tokens",
    "input_cached_tokens": "cache_read_input_tokens",
    "input_cache_read": "cache_read_input_tokens",
    "cache_creation_input_tokens": "cache_write_input_tokens",
    "input_cache_creation": "cache_write_input_tokens",
    "output_reasoning_tokens": "reasoning_output_tokens",
    "output_reasoning": "reasoning_output_tokens",
}


class LangfuseDialect:
    """Reads spans with ``langfuse.observation.*`` attributes."""

    NAME = "langfuse"
    # Every span that Langfuse kept has these names: whoever wrote the span knows it better, but for the general conventions.
    PRIORITY = 890

    def claims(self, span: SpanRecord) -> bool:
        """An observation's type, input or output."""
        names = span.attributes
        return TYPE in names or INPUT in names or OUTPUT in names

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; a span or chain without a kind of its own is at most the frame of a run."""
        del logs
        fields = Fields(span.attributes)
        answer = tool_answer(fields.json(OUTPUT))
        kind = operation_kind(span) or _KINDS.get((fields.text(TYPE) or "").lower())
        if kind is None and answer is not None and answer.name == span.name:
            kind = "tool_call"
        if kind == "model_call":
            return drafted(span, fields, _model(span, fields))
        if kind == "tool_call":
            return drafted(span, fields, _tool(span, fields, answer))
        if kind in ("retrieval", "memory", "mcp", "handoff"):
            return drafted(span, fields, _call(span, fields, kind))
        draft = drafted(span, fields, _agent(span, fields, frame=kind != "agent"))
        if kind is None and (fields.text(TYPE) or "span").lower() == "span":
            return replace(draft, if_asked=drafted(span, fields, _tool(span, fields, answer)))
        return draft


def _model(span: SpanRecord, fields: Fields) -> Found:
    asked, answered = _views(fields.json(INPUT), fields.json(OUTPUT))
    parameters = fields.json(PARAMETERS)
    settings: dict[str, Any] = {}
    if isinstance(parameters, dict):
        settings = {name: value for name, value in parameters.items() if value not in (None, _UNSET)}
    model = fields.text(MODEL)
    if asked is not None:
        asked["params"] = {**({"model": model} if model else {}), **asked["params"], **settings}
    versions: dict[str, Json] = {}
    if model is not None and fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) is None:
        versions["model"] = {"request": model, **({"params": settings} if settings else {})}
    prompt = {"name": fields.text(PROMPT_NAME), "version": fields.identifier(PROMPT_VERSION)}
    if prompt["name"] is not None:
        versions["prompt"] = {key: value for key, value in prompt.items() if value is not None}
    name = fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or model or span.name
    return Found(
        kind="model_call",
        name=name,
        asked=asked,
        answered=answered,
        session_id=_session(fields),
        usage=_usage(fields.json(USAGE)),
        versions=versions,
        error=_error(fields),
    )


def _tool(span: SpanRecord, fields: Fields, answer: ToolAnswer | None) -> Found:
    asked = fields.json(INPUT)
    if isinstance(asked, str):
        given = fields.json(METADATA_INPUTS)
        asked = given if isinstance(given, dict) else python_value(asked) or asked
    asked = called_with(asked)
    named = fields.json(CALL_ID)
    return Found(
        kind="tool_call",
        name=fields.text(a.GEN_AI_TOOL_NAME) or (answer and answer.name) or span.name,
        asked=None if asked is None else {"arguments": asked},
        answered=None if OUTPUT not in fields else {"result": answer.content if answer else fields.json(OUTPUT)},
        call_id=(answer and answer.call_id) or (named if isinstance(named, str) and named else None),
        session_id=_session(fields),
        error=_error(fields),
        outcome="tool_error" if answer and answer.failed else None,
    )


def _call(span: SpanRecord, fields: Fields, kind: Kind) -> Found:
    asked, answered = fields.json(INPUT), fields.json(OUTPUT)
    if kind == "retrieval" and isinstance(asked, str):
        asked = {"query": asked}
    return Found(
        kind=kind,
        name=span.name or kind,
        asked=None if asked is None else {"arguments": asked},
        answered=None if answered is None else {"result": answered},
        session_id=_session(fields),
        error=_error(fields),
    )


def _agent(span: SpanRecord, fields: Fields, *, frame: bool) -> Found:
    given, gave = (INPUT, OUTPUT) if INPUT in fields or OUTPUT in fields else (TRACE_INPUT, TRACE_OUTPUT)
    asked, answered = _views(question(fields.json(given)), fields.json(gave))
    name = fields.text(a.GEN_AI_AGENT_NAME) or span.name or fields.text(TRACE_NAME) or "agent"
    return Found(
        kind="agent",
        name=name,
        asked=asked,
        answered=answered,
        session_id=_session(fields),
        error=_error(fields),
        runs=True,
        frame=frame,
    )


def _views(asked: Json, answered: Json) -> tuple[Json, Json]:
    """Both sides in the parts shape; what the server made of events that hold one message each is read as such events are."""
    asked, answered = chat_messages(asked), chat_messages(answered)
    inputs, outputs = _listed(asked), _listed(answered)
    if any(_is_choice(item) for item in outputs):
        events = [{EVENT_NAME: f"gen_ai.{item.get('role')}.message", **item} for item in inputs if isinstance(item, dict)]
        choices = [{EVENT_NAME: CHOICE, **item} for item in outputs if isinstance(item, dict)]
        said = spoken([*events, *choices], encoded=True)
        return input_view(said.asked), output_view(said.answered)
    messages, tools = _without_tools(asked)
    view = input_view(messages)
    if view is not None and tools:
        view["tools"] = [*view["tools"], *input_view({"messages": [], "tools": tools})["tools"]]
    return view, output_view(answered)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _is_choice(item: Json) -> bool:
    """Whether the server made this of the event of an answer: its message lies inside it, or it names itself."""
    if not isinstance(item, dict):
        return False
    return item.get(EVENT_NAME) == CHOICE or ("message" in item and "role" not in item and ("finish_reason" in item or "index" in item))


def _without_tools(asked: Json) -> tuple[Json, list[Json]]:
    """The messages apart from the tools, which the handler for LangChain lists behind them as messages of the role ``tool``."""
    if not isinstance(asked, list):
        return asked, []
    tools = [item["content"] for item in asked if _is_tool(item)]
    return ([item for item in asked if not _is_tool(item)] if tools else asked), tools


def _is_tool(item: Json) -> bool:
    if not isinstance(item, dict) or item.get("role") != "tool" or "tool_call_id" in item or not isinstance(item.get("content"), dict):
        return False
    content = item["content"]
    return isinstance(content.get("function"), dict) or ("name" in content and ("parameters" in content or "input_schema" in content))


def _usage(given: Json) -> dict[str, int]:
    told: dict[str, Json] = given if isinstance(given, dict) else {}
    return {_USAGE.get(name, name): number for name, value in told.items() if (number := whole(value)) is not None}


def _session(fields: Fields) -> str | None:
    """The session; of an agent of LangGraph, which has threads, the thread."""
    known = fields.identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID, *SESSIONS)
    thread = fields.json(THREAD)
    return known or (thread if isinstance(thread, str) and thread else None)


def _error(fields: Fields) -> Json:
    """A level of ERROR is a failure, whatever the status of the span; OpenTelemetry's SDKs put the exception's name before its text."""
    if fields.text(LEVEL) != "ERROR":
        return None
    kind, message = fields.text(a.ERROR_TYPE), fields.text(STATUS_MESSAGE)
    told = _RAISED.match(message) if message is not None else None
    if told is not None and kind in (None, told[1]):
        kind, message = told[1], told[2]
    return {"type": kind, "message": message}


DIALECT: Final = LangfuseDialect()
