"""The GenAI conventions as they are now (October 2026, stability: development), and what their official instrumentations write.

Source: <https://github.com/open-telemetry/semantic-conventions-genai>. Content comes as JSON text, as structured values, or encoded twice;
call ids come with words that stand for none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import definitions, finish_reason, input_view, model_input, model_output, output_view, params
from spanreplay.replay.reading.operations import KINDS, operation_kind
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

_LOGFIRE_SPAN_TYPE: Final = "logfire.span_type"
DATA_SOURCE: Final = "gen_ai.data_source.id"
RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"
RETRIEVAL_TOP_K: Final = "gen_ai.retrieval.top_k"
RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
MEMORY_STORE: Final = "gen_ai.memory.store.id"
MEMORY_RECORD: Final = "gen_ai.memory.record.id"
MEMORY_QUERY: Final = "gen_ai.memory.query.text"
MEMORY_RECORDS: Final = "gen_ai.memory.records"
HANDOFF_FROM: Final = "gen_ai.handoff.from_agent"
HANDOFF_TO: Final = "gen_ai.handoff.to_agent"
ARGUMENTS: Final = (a.GEN_AI_TOOL_CALL_ARGUMENTS, "gen_ai.tool.arguments", "gen_ai.tool.input", "input.value", "input")
RESULT: Final = (a.GEN_AI_TOOL_CALL_RESULT, "gen_ai.tool.result", "gen_ai.tool.output", "output.value", "output")
"""Where those who name a tool by the conventions put its arguments and result; the first that is there counts."""
PROMPT: Final = ("gen_ai.prompt", "input.value", "input")
COMPLETION: Final = ("gen_ai.completion", "output.value", "output")
"""Where messages are in spans that do not have them by the present names."""

_NO_ARGUMENTS: Final = {"arguments": "None"}
"""Of a call without any, as Microsoft's Agent Framework writes it."""
_RUNS: Final = frozenset({"invoke_agent", "invoke_workflow", "handle_conversation_turn"})


RESULT_TRUNCATED: Final = "ag2.tool.result.truncated"
"""AG2's own, which keeps to the conventions."""


class GenAiDialect:
    """Reads spans of the current ``gen_ai.*`` conventions."""

    NAME = "gen_ai"
    PRIORITY = 900

    def claims(self, span: SpanRecord) -> bool:
        """An operation or a tool; or, where an SDK limit dropped the oldest attribute, an operation in the span's name."""
        names = span.attributes
        if names.get(_LOGFIRE_SPAN_TYPE) == "log":  # Logfire's remark on a call, such as "streaming response from …": no call of its own
            return False
        if span.name == "tool failure" and span.scope.name == "crewai":  # CrewAI's remark on the call whose span it follows
            return False
        if a.GEN_AI_OPERATION_NAME in names or operation_kind(span) is not None:
            return True
        return span.name.partition(" ")[0] in KINDS and any(name.startswith("gen_ai.") for name in names)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` for an operation that is none, such as fetching an answer made before."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME)
        kind = KINDS.get(operation or span.name.partition(" ")[0]) or operation_kind(span)
        if kind is None:
            return None
        if HANDOFF_TO in fields:
            kind = "handoff"
        return _step(span, fields, kind, operation or span.name.partition(" ")[0])


def _step(span: SpanRecord, fields: Fields, kind: Kind, operation: str) -> StepDraft:
    asked, answered = _VIEWS[kind](fields)
    found = Found(
        kind=kind,
        name=_name(span, fields, kind, operation),
        asked=asked,
        answered=answered,
        runs=operation in _RUNS,
    )
    return drafted(span, fields, found)


def _name(span: SpanRecord, fields: Fields, kind: Kind, operation: str) -> str:
    wanted = {
        "model_call": (a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL),
        "tool_call": (a.GEN_AI_TOOL_NAME,),
        "agent": (a.GEN_AI_AGENT_NAME, a.GEN_AI_WORKFLOW_NAME, a.GEN_AI_AGENT_ID),
        "handoff": (HANDOFF_TO, a.GEN_AI_AGENT_NAME),
        "retrieval": (DATA_SOURCE, a.GEN_AI_REQUEST_MODEL),
    }.get(kind, ())
    return fields.text(*wanted) or span.name.removeprefix(f"{operation} ") or operation


# ---- what went in and what came out, by kind ---------------------------------------------------------------------


def _model(fields: Fields) -> tuple[Json, Json]:
    asked, answered = model_input(fields), model_output(fields)
    if asked is None and (given := input_view(_first(fields, PROMPT))) is not None:
        tools = definitions(fields.json(a.GEN_AI_TOOL_DEFINITIONS, strict=True))
        asked = {**given, "tools": given["tools"] or tools, "params": given["params"] or params(fields)}
    if answered is None and (made := output_view(_first(fields, COMPLETION))) is not None:
        answered = {**made, "finish": made["finish"] or finish_reason(fields)}
    return asked, answered


def _tool(fields: Fields) -> tuple[Json, Json]:
    if fields.attributes.get(RESULT_TRUNCATED) is True:
        fields.cut(a.GEN_AI_TOOL_CALL_RESULT, "the result was cut where it was recorded: max_tool_result_chars of AG2's telemetry")
    asked = _value(fields, "arguments", *ARGUMENTS)
    return {"arguments": {}} if asked == _NO_ARGUMENTS else asked, _value(fields, "result", *RESULT)


def _retrieval(fields: Fields) -> tuple[Json, Json]:
    asked = _object(fields, {"query": RETRIEVAL_QUERY, "top_k": RETRIEVAL_TOP_K, "data_source": DATA_SOURCE}, needs="query")
    return asked, _value(fields, "result", RETRIEVAL_DOCUMENTS)


def _memory(fields: Fields) -> tuple[Json, Json]:
    asked = _object(fields, {"store": MEMORY_STORE, "record": MEMORY_RECORD, "query": MEMORY_QUERY})
    records = _value(fields, "result", MEMORY_RECORDS)
    if fields.text(a.GEN_AI_OPERATION_NAME) == "search_memory":
        return asked, records
    if records is not None:
        asked = {"arguments": {**(asked or {"arguments": {}})["arguments"], "records": records["result"]}}
    return asked, None


def _handoff(fields: Fields) -> tuple[Json, Json]:
    asked, answered = _tool(fields)
    return asked or _object(fields, {"from": HANDOFF_FROM, "to": HANDOFF_TO}), answered


def _value(fields: Fields, key: str, *names: str) -> Json:
    return {key: _first(fields, names)} if any(name in fields for name in names) else None


def _first(fields: Fields, names: Sequence[str]) -> Json:
    return next((fields.json(name) for name in names if name in fields), None)


def _object(fields: Fields, named: Mapping[str, str], needs: str | None = None) -> Json:
    found = {key: fields.json(name) for key, name in named.items() if name in fields}
    return {"arguments": found} if found and (needs is None or needs in found) else None


_VIEWS: Final[Mapping[Kind, Callable[[Fields], tuple[Json, Json]]]] = {
    "model_call": _model,
    "tool_call": _tool,
    "agent": _model,
    "retrieval": _retrieval,
    "memory": _memory,
    "handoff": _handoff,
}


DIALECT: Final = GenAiDialect()
