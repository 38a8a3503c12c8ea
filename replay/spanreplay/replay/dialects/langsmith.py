"""Runs of LangSmith: what its OpenTelemetry exporter writes, and what the source of its own exports makes of them.

A run's inputs and outputs are JSON text in ``gen_ai.prompt`` and ``gen_ai.completion``, in whatever shape the traced function, the wrapped
client or LangChain has them. Source: ``langsmith/_internal/otel/_otel_exporter.py`` (0.15.1).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import question
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, whole
from spanreplay.replay.reading.messages import definitions, finish_reason, input_view, output_view, params, usage
from spanreplay.replay.reading.outcomes import failure, named_outcome
from spanreplay.replay.reading.python_text import python_value
from spanreplay.replay.shapes.langchain import tool_answer
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "langsmith"
RUN_TYPE: Final = "langsmith.span.kind"
RUN_NAME: Final = "langsmith.trace.name"
INPUTS: Final = "gen_ai.prompt"
OUTPUTS: Final = "gen_ai.completion"
METADATA: Final = "langsmith.metadata."
USAGE: Final = f"{METADATA}usage_metadata"
METHOD: Final = f"{METADATA}ls_method"
PROVIDER: Final = f"{METADATA}ls_provider"
HUB: Final = tuple(f"{METADATA}lc_hub_{name}" for name in ("owner", "repo", "commit_hash"))
"""The prompt of LangChain's hub that a run used."""

_KINDS: Final[Mapping[str, Kind]] = {"llm": "model_call", "tool": "tool_call", "retriever": "retrieval", "embedding": "retrieval"}
_OPERATIONS: Final[Mapping[str, str]] = {"chat": "llm", "execute_tool": "tool", "embeddings": "embedding"}
_NO_STEPS: Final = frozenset({"prompt", "parser"})
_DETAILS: Final[Mapping[str, Mapping[str, str]]] = {
    "input_token_details": {"cache_read": "cache_read_input_tokens", "cache_creation": "cache_write_input_tokens"},
    "output_token_details": {"reasoning": "reasoning_output_tokens"},
}
_TRACEABLE: Final = "traceable"
_RAISED: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\((.*?)\)\s*(?:Traceback \(most recent call last\)|$)", re.DOTALL)
"""How a run's error begins: the exception as ``repr`` has it, then its traceback."""


class LangSmithDialect:
    """Reads spans with ``langsmith.*`` attributes."""

    NAME = "langsmith"
    PRIORITY = 50

    def claims(self, span: SpanRecord) -> bool:
        """A run type, or the scope of the exporter."""
        return RUN_TYPE in span.attributes or span.scope.name == SCOPE

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for a prompt or a parser, and only the frame of a run for a chain."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or ""
        run_type = (fields.text(RUN_TYPE) or _OPERATIONS.get(operation, operation)).lower()
        if run_type in _NO_STEPS:
            return None
        kind = _KINDS.get(run_type)
        if kind == "model_call":
            found = _model(span, fields)
        elif kind == "tool_call":
            found = _tool(span, fields)
        elif kind is not None:
            found = _call(span, fields, kind)
        else:
            found = _chain(span, fields)
        return drafted(span, fields, found)


def _usage(fields: Fields) -> dict[str, int]:
    """Tokens as LangChain counts them, which LangSmith keeps of every model run."""
    told = fields.json(USAGE)
    if not isinstance(told, dict):
        return {}
    counted = {name: told.get(name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    for group, names in _DETAILS.items():
        details = told.get(group)
        counted |= {to: details.get(name) for name, to in names.items()} if isinstance(details, dict) else {}
    return {name: number for name, value in counted.items() if (number := whole(value)) is not None}


def _model(span: SpanRecord, fields: Fields) -> Found:
    asked, answered = input_view(fields.json(INPUTS)), output_view(_unwrapped(fields.json(OUTPUTS)))
    if asked is not None:
        asked["tools"] = asked["tools"] or definitions(fields.json(a.GEN_AI_TOOL_DEFINITIONS, strict=True))
        asked["params"] = {**params(fields), **asked["params"]}
    if answered is not None:
        answered["finish"] = answered["finish"] or finish_reason(fields)
    model = fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL)
    provider = fields.text(PROVIDER)
    versions: dict[str, Any] = {"model": {"provider": provider}} if model and provider else {}
    owner, repository, commit = (fields.text(name) for name in HUB)
    if repository:
        name = f"{owner}/{repository}" if owner and owner != "-" else repository
        versions["prompt"] = {"name": name, **({"version": commit} if commit else {})}
    found = _found(span, fields, "model_call", model or _name(span, fields), asked, answered, versions)
    return replace(found, usage={**_usage(fields), **usage(fields)})


def _tool(span: SpanRecord, fields: Fields) -> Found:
    asked = fields.json(INPUTS)
    # LangChain has a tool's arguments as a text under this name where they came to it as one.
    if isinstance(asked, dict) and asked.keys() == {"input"} and fields.text(METHOD) != _TRACEABLE:
        given = asked["input"]
        shown = python_value(given) if isinstance(given, str) else None
        asked = given if shown is None else shown
    value = _unwrapped(fields.json(OUTPUTS))
    answer = tool_answer(value)
    found = _found(
        span,
        fields,
        "tool_call",
        fields.text(a.GEN_AI_TOOL_NAME) or _name(span, fields),
        None if asked is None else {"arguments": asked},
        _result(fields, answer.content if answer else value),
    )
    if answer is None:
        return found
    call_id = fields.identifier(a.GEN_AI_TOOL_CALL_ID) or answer.call_id
    return replace(found, call_id=call_id, outcome="tool_error" if answer.failed and found.error is None else found.outcome)


def _call(span: SpanRecord, fields: Fields, kind: Kind) -> Found:
    asked = fields.json(INPUTS)
    return _found(
        span,
        fields,
        kind,
        _name(span, fields),
        None if asked is None else {"arguments": asked},
        _result(fields, _unwrapped(fields.json(OUTPUTS))),
    )


def _chain(span: SpanRecord, fields: Fields) -> Found:
    asked, answered = input_view(question(fields.json(INPUTS))), output_view(_unwrapped(fields.json(OUTPUTS)))
    return replace(_found(span, fields, "agent", _name(span, fields), asked, answered), runs=True, frame=True)


def _found(
    span: SpanRecord, fields: Fields, kind: Kind, name: str, asked: Json, answered: Json, versions: Mapping[str, Json] | None = None
) -> Found:
    error = _error(span, fields)
    return Found(
        kind=kind,
        name=name or kind,
        asked=asked,
        answered=answered if error is None else None,
        versions=versions or {},
        error=error,
        outcome=named_outcome(error["type"]) if error and error["type"] else None,
    )


def _name(span: SpanRecord, fields: Fields) -> str:
    return fields.text(RUN_NAME) or span.name


def _unwrapped(outputs: Json) -> Json:
    """What a function gave: anything but an object is kept under the name ``output``."""
    return outputs["output"] if isinstance(outputs, dict) and outputs.keys() == {"output"} else outputs


def _result(fields: Fields, value: Json) -> Json:
    return {"result": value} if OUTPUTS in fields else None


def _error(span: SpanRecord, fields: Fields) -> dict[str, str | None] | None:
    """What went wrong, by the name and text of the exception; the exporter has the whole traceback as the message of an ``Exception``."""
    told = failure(span, fields)
    message = told["message"] if told else None
    raised = _RAISED.match(message) if message else None
    if told is None or raised is None:
        return told if told is None or told["type"] != "Exception" else {**told, "type": None}
    text = raised[2].strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    return {"type": raised[1], "message": text}


DIALECT: Final = LangSmithDialect()
