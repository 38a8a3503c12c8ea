"""Spans of MLflow's own tracing, sent by OTLP or out of its JSON: every attribute is JSON text by itself.

A span's inputs and outputs are whatever the traced function, or the client or framework that MLflow logs by itself, takes and gives.
Source: ``mlflow/tracing/constant.py``, ``mlflow/entities/span.py`` (3.17.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.calls import called_with, question
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, whole
from spanreplay.replay.reading.messages import definitions, input_view, output_view
from spanreplay.replay.reading.outcomes import failure
from spanreplay.replay.reading.python_text import python_value
from spanreplay.replay.reasons import CONTENT_ELSEWHERE
from spanreplay.replay.shapes.langchain import tool_answer
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

TYPE: Final = "mlflow.spanType"
INPUTS: Final = "mlflow.spanInputs"
OUTPUTS: Final = "mlflow.spanOutputs"
TOOLS: Final = "mlflow.chat.tools"
USAGE: Final = "mlflow.chat.tokenUsage"
MODEL: Final = "mlflow.llm.model"
PROVIDER: Final = "mlflow.llm.provider"
PROMPTS: Final = "mlflow.linkedPrompts"
SETTINGS: Final = "invocation_params"
_NO_SETTINGS: Final = frozenset({"tools", "functions", "stream", "model", "model_name", "_type"})
_ATTACHMENT: Final = "mlflow-attachment://"
"""How the address begins of what MLflow kept as a file of the trace."""

_KINDS: Final[Mapping[str, Kind]] = {
    "LLM": "model_call",
    "CHAT_MODEL": "model_call",
    "TOOL": "tool_call",
    "AGENT": "agent",
    "RETRIEVER": "retrieval",
    "RERANKER": "retrieval",
    "EMBEDDING": "retrieval",
    "MEMORY": "memory",
}
_NO_STEPS: Final = frozenset({"PARSER", "GUARDRAIL", "EVALUATOR"})
_USAGE: Final[Mapping[str, str]] = {"cache_creation_input_tokens": "cache_write_input_tokens"}


class MlflowDialect:
    """Reads spans with ``mlflow.span*`` attributes."""

    NAME = "mlflow"
    PRIORITY = 60

    def claims(self, span: SpanRecord) -> bool:
        """A span type, inputs or outputs."""
        names = span.attributes
        return TYPE in names or INPUTS in names or OUTPUTS in names

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for a parser, guardrail or evaluator, and at most the frame of a run for a chain, task or workflow."""
        del logs
        fields = Fields(span.attributes)
        span_type = str(fields.json(TYPE) or "").upper()
        if span_type in _NO_STEPS:
            return None
        kind = _KINDS.get(span_type)
        if kind == "model_call":
            return drafted(span, fields, _model(span, fields))
        if kind == "tool_call":
            return drafted(span, fields, _tool(span, fields))
        if kind in ("retrieval", "memory"):
            return drafted(span, fields, _call(span, fields, kind))
        return drafted(span, fields, _agent(span, fields, frame=kind is None))


def _model(span: SpanRecord, fields: Fields) -> Found:
    given, gave = fields.json(INPUTS), fields.json(OUTPUTS)
    nested = isinstance(given, list) and bool(given) and all(isinstance(inner, list) for inner in given)
    asked, answered = input_view({"messages": given} if nested else given), output_view(gave)
    model, provider = _word(fields, MODEL), _word(fields, PROVIDER)
    if asked is not None:
        asked["tools"] = asked["tools"] or definitions(fields.json(TOOLS))
        if model is not None:
            asked["params"] = {"model": model, **asked["params"]}
        asked["params"] = {**_settings(fields), **asked["params"]}
    versions: dict[str, Any] = {}
    if model is not None:
        versions["model"] = {"request": model, **({"provider": provider} if provider else {})}
    prompts = fields.json(PROMPTS)
    if isinstance(prompts, list) and prompts and isinstance(prompts[0], dict) and prompts[0].get("name"):
        versions["prompt"] = {key: str(prompts[0][key]) for key in ("name", "version") if prompts[0].get(key) is not None}
    response_id = gave.get("id") if isinstance(gave, dict) else None
    return Found(
        kind="model_call",
        name=model or span.name,
        asked=asked,
        answered=answered,
        session_id=_word(fields, a.SESSION_ID),
        usage=_usage(fields.json(USAGE)),
        versions=versions,
        error=_error(span, fields),
        response_id=response_id if isinstance(response_id, str) else None,
        reasons=_attached(fields, INPUTS, OUTPUTS),
        grade="structure" if _attached(fields, OUTPUTS) else "exact",
    )


def _settings(fields: Fields) -> dict[str, Json]:
    """What a model of LangChain was called with beside its messages and tools."""
    told = fields.json(SETTINGS)
    held = told.items() if isinstance(told, dict) else ()
    return {name: value for name, value in held if value is not None and name not in _NO_SETTINGS}


def _attached(fields: Fields, *names: str) -> tuple[Reason, ...]:
    """Says which images and other data MLflow kept as files of the trace, and not in it."""
    count = sum(text.count(_ATTACHMENT) for name in names if isinstance(text := fields.attributes.get(name), str))
    what = "1 attachment is" if count == 1 else f"{count} attachments are"
    return (Reason(code=CONTENT_ELSEWHERE, detail=f"{what} in MLflow's store of artifacts and not in the trace"),) if count else ()


def _tool(span: SpanRecord, fields: Fields) -> Found:
    asked, value = fields.json(INPUTS), fields.encoded(OUTPUTS)
    if isinstance(asked, str):
        asked = python_value(asked) or asked
    answer = tool_answer(fields.json(OUTPUTS))
    return Found(
        kind="tool_call",
        name=span.name or "tool",
        asked=None if INPUTS not in fields else {"arguments": called_with(asked)},
        answered=None if OUTPUTS not in fields else {"result": answer.content if answer else value},
        call_id=answer.call_id if answer else None,
        session_id=_word(fields, a.SESSION_ID),
        error=_error(span, fields),
        outcome="tool_error" if answer and answer.failed else None,
        reasons=_attached(fields, INPUTS, OUTPUTS),
        grade="structure" if _attached(fields, OUTPUTS) else "exact",
    )


def _call(span: SpanRecord, fields: Fields, kind: Kind) -> Found:
    return Found(
        kind=kind,
        name=span.name or kind,
        asked={"arguments": fields.json(INPUTS)} if INPUTS in fields else None,
        answered={"result": fields.json(OUTPUTS)} if OUTPUTS in fields else None,
        session_id=_word(fields, a.SESSION_ID),
        error=_error(span, fields),
    )


def _agent(span: SpanRecord, fields: Fields, *, frame: bool) -> Found:
    return Found(
        kind="agent",
        name=span.name or "agent",
        asked=input_view(question(fields.json(INPUTS))),
        answered=output_view(fields.json(OUTPUTS)),
        session_id=_word(fields, a.SESSION_ID),
        error=_error(span, fields),
        runs=True,
        frame=frame,
    )


def _word(fields: Fields, name: str) -> str | None:
    """A text, whether it is JSON text, as MLflow writes it, or was given to the span as it is."""
    value = fields.json(name)
    return value if isinstance(value, str) and value else None


def _usage(given: Json) -> dict[str, int]:
    told: dict[str, Json] = given if isinstance(given, dict) else {}
    return {_USAGE.get(name, name): number for name, value in told.items() if (number := whole(value)) is not None}


def _error(span: SpanRecord, fields: Fields) -> dict[str, str | None] | None:
    """What went wrong; the status has the exception's name before its text."""
    told = failure(span, fields)
    if told is not None and told["type"] and told["message"]:
        told["message"] = told["message"].removeprefix(f"{told['type']}: ")
    return told


DIALECT: Final = MlflowDialect()
