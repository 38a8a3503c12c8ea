"""The GenAI conventions as they are now (October 2026, stability: development), and what their official instrumentations write.

Source: <https://github.com/open-telemetry/semantic-conventions-genai>. Content comes as JSON text, as structured values, or encoded twice;
call ids come with words that stand for none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.content.codec import encode
from spanreplay.replay.dialect import RunDraft, StepDraft
from spanreplay.replay.fields import Fields
from spanreplay.replay.messages import finish_reason, model_input, model_output, usage
from spanreplay.replay.model import Grade, Json, Reason
from spanreplay.replay.outcomes import failure, outcome
from spanreplay.replay.reasons import (
    CONTENT_ELSEWHERE,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    INPUT_ABSENT,
    NEVER_ENDED,
    OUTPUT_ABSENT,
    worst,
)
from spanreplay.replay.versions import step_versions
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

_LOGFIRE_SPAN_TYPE: Final = "logfire.span_type"
MCP_METHOD: Final = "mcp.method.name"
MCP_RESOURCE: Final = "mcp.resource.uri"
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
EXIT_CODE: Final = "process.exit.code"

_KINDS: Final[Mapping[str, Kind]] = {
    "chat": "model_call",
    "generate_content": "model_call",
    "text_completion": "model_call",
    "execute_tool": "tool_call",
    "load_skill": "tool_call",
    "read_skill_resource": "tool_call",
    "command": "tool_call",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "agent",
    "handle_conversation_turn": "agent",
    "plan": "agent",
    "retrieval": "retrieval",
    "embeddings": "retrieval",
    "create_memory_store": "memory",
    "delete_memory_store": "memory",
    "search_memory": "memory",
    "create_memory": "memory",
    "update_memory": "memory",
    "upsert_memory": "memory",
    "delete_memory": "memory",
    "handoff": "handoff",
}
_RUNS: Final = frozenset({"invoke_agent", "invoke_workflow", "handle_conversation_turn"})
_STATUSES: Final[Mapping[str, OutcomeName]] = {"failed": "error", "cancelled": "cancelled"}
_TOOLS_CALL: Final = "tools/call"


class GenAiDialect:
    """Reads spans of the current ``gen_ai.*`` and ``mcp.*`` conventions."""

    NAME = "gen_ai"
    PRIORITY = 900

    def claims(self, span: SpanRecord) -> bool:
        """An operation name or an MCP method; or, where an SDK limit dropped the oldest attribute, the operation in the span's name."""
        names = span.attributes
        if names.get(_LOGFIRE_SPAN_TYPE) == "log":  # Logfire's remark on a call, such as "streaming response from …": no call of its own
            return False
        if a.GEN_AI_OPERATION_NAME in names or MCP_METHOD in names:
            return True
        return span.name.partition(" ")[0] in _KINDS and any(name.startswith("gen_ai.") for name in names)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` for an operation that is none, such as fetching an answer made before."""
        del logs
        fields = Fields(span.attributes)
        method = fields.text(MCP_METHOD)
        operation = fields.text(a.GEN_AI_OPERATION_NAME)
        if method is not None:
            return _step(span, fields, "tool_call" if method == _TOOLS_CALL else "mcp", method)
        kind = _KINDS.get(operation or span.name.partition(" ")[0])
        if kind is None:
            return None
        if HANDOFF_TO in fields:
            kind = "handoff"
        return _step(span, fields, kind, operation or span.name.partition(" ")[0])


def _step(span: SpanRecord, fields: Fields, kind: Kind, operation: str) -> StepDraft:
    asked, answered = _VIEWS[kind](fields)
    error = failure(span, fields)
    result = answered.get("result") if isinstance(answered, dict) else None
    ended: OutcomeName = outcome(span, error, result)
    if ended == "ok" and kind == "model_call":
        told = _STATUSES.get(fields.text(a.GEN_AI_RESPONSE_STATUS) or "")
        ended = told if told is not None else "error" if finish_reason(fields) == "error" else "ok"
    versions = step_versions(span, fields)
    grade, reasons = _grade(span, fields, kind, asked, answered, ended)
    return StepDraft(
        kind=kind,
        name=_name(span, fields, kind, operation),
        grade=grade,
        reasons=reasons,
        outcome=ended,
        call_id=fields.identifier(a.GEN_AI_TOOL_CALL_ID),
        agent=fields.text(a.GEN_AI_AGENT_NAME, a.GEN_AI_AGENT_ID),
        session_id=fields.identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID),
        input=asked,
        output=answered,
        error=error,
        usage=usage(fields),
        versions=versions,
        typed_input=_typed(asked, "arguments"),
        typed_result=_typed(answered, "result"),
        response_id=fields.identifier(a.GEN_AI_RESPONSE_ID),
        transport=operation == _TOOLS_CALL,
        run=_run(fields, asked, answered, ended, error, versions) if operation in _RUNS else None,
    )


def _run(fields: Fields, asked: Json, answered: Json, ended: OutcomeName, error: Json, versions: Mapping[str, Json]) -> RunDraft:
    return RunDraft(
        agent_name=fields.text(a.GEN_AI_AGENT_NAME, a.GEN_AI_WORKFLOW_NAME, a.GEN_AI_AGENT_ID),
        agent_version=fields.text(a.GEN_AI_AGENT_VERSION),
        session_id=fields.identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID),
        outcome=ended,
        error=error,
        input=asked,
        output=answered,
        versions=versions,
        grade="semantic",
    )


def _name(span: SpanRecord, fields: Fields, kind: Kind, operation: str) -> str:
    wanted = {
        "model_call": (a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL),
        "tool_call": (a.GEN_AI_TOOL_NAME,),
        "agent": (a.GEN_AI_AGENT_NAME, a.GEN_AI_WORKFLOW_NAME, a.GEN_AI_AGENT_ID),
        "handoff": (HANDOFF_TO, a.GEN_AI_AGENT_NAME),
        "retrieval": (DATA_SOURCE, a.GEN_AI_REQUEST_MODEL),
        "mcp": (MCP_METHOD,),
    }.get(kind, ())
    return fields.text(*wanted) or span.name.removeprefix(f"{operation} ") or operation


def _typed(view: Json, key: str) -> str | None:
    return encode(view[key]).text if isinstance(view, dict) and key in view else None


# ---- what went in and what came out, by kind ---------------------------------------------------------------------


def _model(fields: Fields) -> tuple[Json, Json]:
    return model_input(fields), model_output(fields)


def _tool(fields: Fields) -> tuple[Json, Json]:
    return _value(fields, "arguments", a.GEN_AI_TOOL_CALL_ARGUMENTS), _value(fields, "result", a.GEN_AI_TOOL_CALL_RESULT)


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


def _mcp(fields: Fields) -> tuple[Json, Json]:
    asked, answered = _tool(fields)
    return asked or _object(fields, {"uri": MCP_RESOURCE, "prompt": a.GEN_AI_PROMPT_NAME}), answered


def _handoff(fields: Fields) -> tuple[Json, Json]:
    asked, answered = _tool(fields)
    return asked or _object(fields, {"from": HANDOFF_FROM, "to": HANDOFF_TO}), answered


def _value(fields: Fields, key: str, name: str) -> Json:
    return {key: fields.json(name)} if name in fields else None


def _object(fields: Fields, named: Mapping[str, str], needs: str | None = None) -> Json:
    found = {key: fields.json(name) for key, name in named.items() if name in fields}
    return {"arguments": found} if found and (needs is None or needs in found) else None


_VIEWS: Final[Mapping[Kind, Callable[[Fields], tuple[Json, Json]]]] = {
    "model_call": _model,
    "tool_call": _tool,
    "agent": _model,
    "retrieval": _retrieval,
    "memory": _memory,
    "mcp": _mcp,
    "handoff": _handoff,
}


# ---- grades ------------------------------------------------------------------------------------------------------


def _grade(
    span: SpanRecord, fields: Fields, kind: Kind, asked: Json, answered: Json, ended: OutcomeName
) -> tuple[Grade, tuple[Reason, ...]]:
    reasons: list[Reason] = []
    held: list[Grade] = ["semantic"]
    if asked is None:
        reasons.append(_absent(fields, INPUT_ABSENT, "input"))
    if answered is None and ended in ("ok", "unknown"):
        reasons.append(_absent(fields, OUTPUT_ABSENT, "output"))
    if reasons and kind != "agent":  # an agent is passed through, never answered: its content is not needed
        held.append("structure")
    if span.end_ns is None:
        held.append("incomplete")
        reasons.append(Reason(code=NEVER_ENDED, detail="started, and no end was recorded"))
    for code, count in ((DROPPED_ATTRIBUTES, span.dropped_attributes), (DROPPED_EVENTS, span.dropped_events)):
        if count:
            held.append("incomplete")
            reasons.append(Reason(code=code, detail=f"{count} dropped by the recording SDK's limits"))
    if fields.reasons:
        held.append("incomplete")
        reasons += fields.reasons.values()
    return worst(held), tuple(reasons)


def _absent(fields: Fields, code: str, side: str) -> Reason:
    elsewhere = fields.text(f"gen_ai.{side}.messages_ref")
    if elsewhere is not None:
        return Reason(code=CONTENT_ELSEWHERE, detail=f"the {side} was uploaded to {elsewhere}")
    return Reason(code=code, detail=f"no {side} was captured")


DIALECT: Final = GenAiDialect()
