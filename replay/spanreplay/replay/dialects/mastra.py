"""Mastra's own tracing, as its exporter of OpenTelemetry writes it: ``mastra.span.type`` says what a span is.

``invoke_agent`` (``agent_run``) > ``model_generation``, the loop > ``agent_step`` (``model_step``), one turn > ``chat``
(``model_inference``) and ``execute_tool``. The turn has what was asked and answered, the ``chat`` in it the model, its settings and the
tokens. Of a request after the first, calls and results are placeholders. Older versions have no ``model_inference``: the loop is the
``chat``. Source: ``gen-ai-semantics.ts`` and ``gen-ai-messages.ts`` of ``@mastra/otel-exporter`` 1.4, and what ``@mastra/core`` 1.71
exports.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import finish_reason, input_view, is_talk, model_input, model_output, params
from spanreplay.replay.reasons import INPUT_ABSENT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

TYPE: Final = "mastra.span.type"
MODEL: Final = "mastra.metadata.modelMetadata"

_KINDS: Final[Mapping[str, Kind]] = {
    "agent_run": "agent",
    "workflow_run": "agent",
    "model_generation": "model_call",
    "model_step": "model_call",
    "model_inference": "model_call",
    "tool_call": "tool_call",
    "mcp_tool_call": "tool_call",
    "provider_tool_call": "tool_call",
    "rag_embedding": "retrieval",
}
_NAMES: Final[Mapping[Kind, str]] = {"model_call": a.GEN_AI_REQUEST_MODEL, "tool_call": a.GEN_AI_TOOL_NAME, "agent": a.GEN_AI_AGENT_NAME}
_PLACEHOLDER: Final = re.compile(r"\[(?:tool|tool-result|file|image|reasoning): ?[^\]]*\]")


class MastraDialect:
    """Reads agents, workflows, turns of a model and tools."""

    NAME = "mastra"
    PRIORITY = 35
    """Before the AI SDK's, whose name for a turn Mastra uses too."""

    def claims(self, span: SpanRecord) -> bool:
        """By the type."""
        return TYPE in span.attributes

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        """The inference in a turn is the turn; its chunks are a part of it."""
        del inside
        parts = {"model_step": "model_inference", "model_inference": "model_chunk"}
        return around if isinstance(told, SpanRecord) and _type(told) == parts.get(_type(around) or "", "") else None

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for the loop around the turns, the steps of a workflow, chunks and processors."""
        del logs
        fields = Fields(span.attributes)
        kind = _KINDS.get(kind_of_span := _type(span) or "")
        if kind is None:
            return None
        if kind == "model_call":
            return _model(span, fields, kind_of_span)
        asked, answered = _said(fields, kind_of_span, kind)
        name = fields.text(_NAMES.get(kind, a.GEN_AI_REQUEST_MODEL)) or span.name.partition(" ")[2] or span.name
        return drafted(span, fields, Found(kind=kind, name=name, asked=asked, answered=answered, runs=kind == "agent"))


DIALECT: Final = MastraDialect()


def _type(span: SpanRecord) -> str | None:
    kind = span.attributes.get(TYPE)
    return kind.lower() if isinstance(kind, str) else None


def _said(fields: Fields, kind_of_span: str, kind: Kind) -> tuple[Json, Json]:
    """What went in and came out of anything but a model call."""
    if kind == "tool_call":
        return (
            {"arguments": fields.json(a.GEN_AI_TOOL_CALL_ARGUMENTS)} if a.GEN_AI_TOOL_CALL_ARGUMENTS in fields else None,
            {"result": fields.json(a.GEN_AI_TOOL_CALL_RESULT)} if a.GEN_AI_TOOL_CALL_RESULT in fields else None,
        )
    given, made = (fields.json(f"mastra.{kind_of_span}.{side}", strict=True) for side in ("input", "output"))
    if kind == "agent" and kind_of_span == "agent_run":
        return None if given is None else input_view(given), _answered(made, None)
    return None if given is None else {"arguments": given}, None if made is None else {"result": made}


def _model(span: SpanRecord, fields: Fields, kind_of_span: str) -> StepDraft | None:
    if kind_of_span != "model_step":
        if a.GEN_AI_REQUEST_MODEL not in fields:  # the loop
            return None
        name = fields.text(a.GEN_AI_REQUEST_MODEL) or span.name
        return drafted(span, fields, Found(kind="model_call", name=name, asked=model_input(fields), answered=model_output(fields)))
    inner = next((event.attributes for event in span.events if event.attributes.get(TYPE) == "model_inference"), {})
    fields = Fields({**inner, **fields.attributes})
    given, made = (fields.json(f"mastra.model_step.{side}", strict=True) for side in ("input", "output"))
    asked = None if given is None else input_view(given)
    reasons: tuple[Reason, ...] = ()
    if asked is not None:
        asked["params"] = {**asked["params"], **params(fields)}
        if any(_is_placeholder(message) for message in asked["messages"]):
            reasons = (Reason(code=INPUT_ABSENT, detail="of calls, results and files in the request only placeholders are recorded"),)
    described = fields.json(MODEL)
    model = Fields(described).text("modelId") if isinstance(described, dict) else None
    found = Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL) or model or span.name,
        asked=asked,
        answered=_answered(made, finish_reason(fields)),
        versions={"model": {"request": model}} if model is not None and a.GEN_AI_REQUEST_MODEL not in fields else {},
        reasons=reasons,
        grade="structure" if reasons else "exact",
    )
    return drafted(span, fields, found)


def _is_placeholder(message: Mapping[str, Json]) -> bool:
    """Whether a message is made of nothing but what stands for calls and results, which only those that an SDK wrote are."""
    parts = message["parts"]
    held = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    texts = [part.get(name) for part in held for name in ("content", "response")]
    said = "".join(text for text in texts if isinstance(text, str))
    return message.get("role") in ("assistant", "tool") and _PLACEHOLDER.search(said) is not None


def _answered(made: Json, finish: str | None) -> Json:
    """What a model or an agent answered: ``{"text", "toolCalls", "reasoning", "object"}``."""
    if made is None:
        return None
    if not isinstance(made, dict) or not ("text" in made or "toolCalls" in made):
        said: list[Json] = made if isinstance(made, list) and is_talk(made) else [{"role": "assistant", "content": made}]
        view = input_view(said)
        return {"messages": view["messages"], "finish": finish}
    parts: list[Json] = []
    text = made.get("text")
    calls = made.get("toolCalls")
    if isinstance(text, str) and (text or not calls):
        parts.append({"type": "text", "content": text})
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            given = call.get("args", call.get("input"))
            parts.append({"type": "tool_call", "id": call.get("toolCallId"), "name": call.get("toolName"), "arguments": given})
    return {"messages": [{"role": "assistant", "parts": parts}], "finish": finish}
