"""OpenLLMetry, also called Traceloop: numbered attributes up to 0.53, messages of the GenAI conventions from 0.55 on, decorators in both.

Koog and others write the numbered attributes too. Source: <https://github.com/traceloop/openllmetry>, its instrumentations and
``opentelemetry-semantic-conventions-ai``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import called_with, returned
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.flattened import Node, inner, items, leaf, listed, unflattened
from spanreplay.replay.reading.messages import (
    definitions,
    input_view,
    is_talk,
    messages,
    model_input,
    model_output,
    output_view,
    params,
    unpacked,
)
from spanreplay.replay.reading.rejoined import content_of, member
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

KIND: Final = "traceloop.span.kind"
ENTITY: Final = "traceloop.entity.name"
VERSION: Final = "traceloop.entity.version"
INPUT: Final = "traceloop.entity.input"
OUTPUT: Final = "traceloop.entity.output"
WORKFLOW: Final = "traceloop.workflow.name"
TOOL_NAME: Final = "tool.name"
"""Of a task of LlamaIndex that calls a tool."""
TOOL_ARGUMENTS: Final = "tool.arguments"
REQUEST: Final = "llm.request.type"
PROMPTS: Final = "gen_ai.prompt"
COMPLETIONS: Final = "gen_ai.completion"
FUNCTIONS: Final = "llm.request.functions"
FUNCTIONS_TOO: Final = "gen_ai.request.functions"
"""AgentOps calls them so, in an instrumentation of the same form."""
HANDOFF_FROM: Final = "gen_ai.handoff.from_agent"
HANDOFF_TO: Final = "gen_ai.handoff.to_agent"

_MODELS: Final = frozenset({"chat", "completion", "text_completion", "generate_content"})
_LOOKUPS: Final = frozenset({"embedding", "embeddings", "rerank", "retrieval"})
_RETRIEVER: Final = "vector_db_retrieve"
"""The operation of a task that is a retriever of LangChain."""
_PARAMS: Final[Mapping[str, str]] = {
    "llm.frequency_penalty": "frequency_penalty",
    "llm.presence_penalty": "presence_penalty",
    "llm.top_k": "top_k",
    "llm.chat.stop_sequences": "stop_sequences",
}
_PROMPT: Final[Mapping[str, str]] = {
    "name": "traceloop.prompt.key",
    "version": "traceloop.prompt.version",
    "version_name": "traceloop.prompt.version_name",
    "digest": "traceloop.prompt.version_hash",
    "template": "traceloop.prompt.template",
}


class OpenLLMetryDialect:
    """Reads spans that have a ``traceloop.span.kind``, an ``llm.request.type`` or numbered prompts and completions."""

    NAME = "openllmetry"
    PRIORITY = 200

    def claims(self, span: SpanRecord) -> bool:
        """By these names; other spans may have ``traceloop.*`` attributes as well, put there by its processor."""
        return KIND in span.attributes or REQUEST in span.attributes or any(map(_is_numbered, span.attributes))

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for sessions, servers and what is of unknown kind."""
        del logs
        fields = Fields(span.attributes)
        reader = _READERS.get(_kind(fields))
        return None if reader is None else drafted(span, fields, reader(span, fields))


def _is_numbered(name: str) -> bool:
    return name.startswith((PROMPTS, COMPLETIONS)) and name.count(".") > 2 and name.split(".", 3)[2].isdecimal()


def _kind(fields: Fields) -> str:
    kind = fields.text(KIND)
    if kind == "task" and TOOL_NAME in fields:
        return "tool"
    if kind == "task" and fields.text(a.GEN_AI_OPERATION_NAME) == _RETRIEVER:
        return "retriever"
    if kind is not None and kind not in ("unknown", "session", "server"):
        return kind
    operation = fields.text(REQUEST, a.GEN_AI_OPERATION_NAME)
    if kind is None and (operation in _MODELS or (operation is None and any(map(_is_numbered, fields.attributes)))):
        return "model"
    return "lookup" if operation in _LOOKUPS else "none"


# ---- models ------------------------------------------------------------------------------------------------------


def _model(span: SpanRecord, fields: Fields) -> Found:
    flat = unflattened(fields.attributes, PROMPTS, COMPLETIONS, FUNCTIONS, FUNCTIONS_TOO)
    tools = [_function(function) for function in (*listed(flat[FUNCTIONS]), *listed(flat[FUNCTIONS_TOO]))]
    asked, answered = model_input(fields), model_output(fields)
    said = _messages(fields, flat[PROMPTS], PROMPTS, "user")
    if said and asked is None:
        asked = {"messages": said, "system": [], "tools": definitions(tools), "params": params(fields)}
    if asked is not None:
        more = {new: fields.json(old) for old, new in _PARAMS.items() if old in fields}
        asked["params"] = {name: value for name, value in {**more, **asked["params"]}.items() if value not in ([], ())}
    made = _messages(fields, flat[COMPLETIONS], COMPLETIONS, "assistant")
    if made and answered is None:
        answered = {"messages": made, "finish": next((m["finish_reason"] for m in made if m.get("finish_reason")), None)}
    versions = {"prompt": _prompt(fields), "tools": offered(tools)}
    return Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or span.name,
        asked=asked,
        answered=answered,
        versions={name: value for name, value in versions.items() if value},
    )


def _messages(fields: Fields, node: Node, prefix: str, role: str) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = []
    for place, item in items(node):
        if not isinstance(item, dict):
            continue
        message = {name: content_of(item, name) for name in item if name not in ("tool_calls", "function_call")}
        content = message.get("content")
        if isinstance(content, str):  # blocks were written as JSON text
            message["content"], whole = unpacked(content)
            if not whole:
                name = f"{prefix}.{place}.content"
                fields.cut(name, f"{name} stops in the middle of its JSON")
        calls = [*listed(inner(item, "tool_calls")), *filter(None, (inner(item, "function_call"),))]
        made = [{name: member(call, name) for name in call} for call in calls]
        message["tool_calls"] = [{"type": "tool_call", "id": None, "arguments": None, **call} for call in made]
        found += messages([message], role) or []
    return found


def _function(node: Node) -> dict[str, Json]:
    parameters, _ = decoded_json(member(node, "parameters") or member(node, "arguments") or member(node, "input_schema"))
    found = {"name": leaf(node, "name"), "description": leaf(node, "description"), "parameters": parameters}
    return {"type": "function", **{name: value for name, value in found.items() if value is not None}}


def _prompt(fields: Fields) -> dict[str, Json]:
    return {name: fields.json(key) for name, key in _PROMPT.items() if key in fields}


def _lookup(span: SpanRecord, fields: Fields) -> Found:
    found = _model(span, fields)
    asked = found.asked["messages"] if found.asked is not None else None
    texts = [part.get("content") for message in asked or () for part in message["parts"]]
    return replace(found, kind="retrieval", asked={"arguments": {"input": texts}} if texts else None, answered=None, versions={})


def _retriever(span: SpanRecord, fields: Fields) -> Found:
    given, made = _first(fields, INPUT), _first(fields, OUTPUT)
    asked = {"query": given["query"]} if isinstance(given, dict) and "query" in given else given
    found = made["documents"] if isinstance(made, dict) and "documents" in made else made
    return Found(
        kind="retrieval",
        name=fields.text(ENTITY) or span.name,
        asked={"arguments": asked} if _has(fields, INPUT) else None,
        answered={"result": found} if _has(fields, OUTPUT) else None,
    )


# ---- what decorators and frameworks write ------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields) -> Found:
    given = _first(fields, a.GEN_AI_TOOL_CALL_ARGUMENTS, TOOL_ARGUMENTS, INPUT)
    result = _first(fields, a.GEN_AI_TOOL_CALL_RESULT, OUTPUT)
    made = returned(result)
    arguments, call_id, transport = _arguments(given)
    value, failed = made.value, made.failed
    if transport and isinstance(value, dict) and "result" in value:
        value, failed = value["result"], value.get("is_error") is True
    version = fields.identifier(VERSION)
    name = fields.text(a.GEN_AI_TOOL_NAME, TOOL_NAME, ENTITY) or span.name.removesuffix(".tool")
    return Found(
        kind="tool_call",
        name=name,
        asked={"arguments": arguments} if _has(fields, a.GEN_AI_TOOL_CALL_ARGUMENTS, TOOL_ARGUMENTS, INPUT) else None,
        answered={"result": value} if _has(fields, a.GEN_AI_TOOL_CALL_RESULT, OUTPUT) else None,
        call_id=call_id or made.call_id,
        versions={} if version is None else {"tool": {"name": name, "version": version}},
        outcome="tool_error" if failed else None,
        transport=transport,
    )


def _arguments(given: Json) -> tuple[Json, str | None, bool]:
    """Arguments, call id, and whether the call was carried by MCP, from what a decorator, LangChain's callbacks or MCP's client wrote."""
    if not isinstance(given, dict):
        return given, None, False
    if "tool_name" in given and given.keys() <= {"tool_name", "arguments"}:
        return given.get("arguments") or {}, None, True
    if "input_str" in given:
        kwargs = given.get("kwargs")
        call_id = Fields(kwargs).identifier("tool_call_id") if isinstance(kwargs, dict) else None
        inputs = given.get("inputs")
        return inputs if isinstance(inputs, dict) else given["input_str"], call_id, False
    return called_with(given), None, False


def _agent(span: SpanRecord, fields: Fields) -> Found:
    name = fields.text(a.GEN_AI_AGENT_NAME, ENTITY) or span.name.removesuffix(".agent")
    return replace(_around(span, fields), name=name, agent=name, frame=False)


def _around(span: SpanRecord, fields: Fields) -> Found:
    """A workflow or a task: no step, but the run where all is inside it."""
    asked, answered = model_input(fields), model_output(fields)
    given, made = _first(fields, INPUT), _first(fields, OUTPUT)
    given, made = (
        value[key] if isinstance(value, dict) and key in value else value for key, value in (("inputs", given), ("outputs", made))
    )
    if asked is None and given is not None:
        asked = input_view(given) if is_talk(given) else {"arguments": called_with(given)}
    if answered is None and _has(fields, OUTPUT):
        answered = output_view(made) if isinstance(made, str) or is_talk(made) else {"result": made}
    return Found(
        kind="agent",
        name=fields.text(ENTITY, WORKFLOW) or span.name,
        asked=asked,
        answered=answered,
        agent=fields.text(ENTITY) if fields.text(KIND) == "workflow" else None,
        agent_version=fields.identifier(VERSION),
        runs=True,
        frame=True,
    )


def _handoff(span: SpanRecord, fields: Fields) -> Found:
    to = fields.identifier(HANDOFF_TO)
    told = {"from": fields.identifier(HANDOFF_FROM), "to": to}
    return Found(
        kind="handoff",
        name=to or span.name.removesuffix(".handoff"),
        asked={"arguments": {name: value for name, value in told.items() if value is not None}},
        answered=None if to is None else {"result": to},
    )


def _has(fields: Fields, *names: str) -> bool:
    return any(name in fields for name in names)


def _first(fields: Fields, *names: str) -> Json:
    """The first of these that is there. The ``traceloop.*`` values are JSON, written once."""
    name = next((name for name in names if name in fields), None)
    if name is None:
        return None
    return fields.encoded(name) if name in (INPUT, OUTPUT) else fields.json(name)


_READERS: Final[Mapping[str, Callable[[SpanRecord, Fields], Found]]] = {
    "model": _model,
    "lookup": _lookup,
    "retriever": _retriever,
    "tool": _tool,
    "agent": _agent,
    "workflow": _around,
    "task": _around,
    "handoff": _handoff,
}


DIALECT: Final = OpenLLMetryDialect()
