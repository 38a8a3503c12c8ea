"""OpenInference: Arize's conventions, written by its instrumentations of some forty frameworks, by Phoenix and by Amazon's distribution.

Source: <https://github.com/Arize-ai/openinference/tree/main/spec>.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.content.canonical import digest
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.calls import called_with, is_schema, literal, parameter_names, returned
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json, json_value, whole
from spanreplay.replay.reading.flattened import Node, inner, leaf, listed, unflattened
from spanreplay.replay.reading.messages import input_view, is_talk, output_view
from spanreplay.replay.reading.openinference_messages import INPUT, OUTPUT, PARAMETERS, exchange
from spanreplay.replay.reading.shown_haystack import OF_HAYSTACK, tokens_of_haystack
from spanreplay.replay.reading.versions import offered
from spanreplay.replay.reasons import MESSAGE_ABSENT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, SpanRecord

KIND: Final = "openinference.span.kind"
AGENT: Final = ("agent.name", "graph.node.name", "graph.node.id")
TOOL: Final = "tool.name"
TOOL_CALL: Final = "tool.id"
OUTPUT_FORM: Final = "output.mime_type"
TOOL_PARAMETERS: Final = "tool.parameters"
METADATA: Final = "metadata"
REQUESTED: Final = "llm.request.model_name"
MODEL: Final = "llm.model_name"
ANSWERED: Final = "llm.response.model_name"
PROVIDER: Final = ("llm.provider", "llm.system")
TEMPLATE: Final = "llm.prompt_template.template"
TEMPLATE_VERSION: Final = "llm.prompt_template.version"
PROMPT: Final = ("prompt.id", "prompt.url")

_WHOLE_IN_LANGCHAIN: Final = ("openai", "azure-openai", "anthropic")
_SCOPE: Final = "openinference.instrumentation"
_OPENAI_AGENTS: Final = "openinference.instrumentation.openai_agents"
"""It calls a text JSON that looks like an object or a list."""
_HAYSTACK: Final = "openinference.instrumentation.haystack"
_MESSAGES: Final = f'{{"messages": ["{OF_HAYSTACK}'
_HANDOFF: Final = "handoff to "
_SESSIONS: Final = ("session_id", "conversation_id", "thread_id")
_USAGE: Final[Mapping[str, str]] = {
    "llm.token_count.prompt": "input_tokens",
    "llm.token_count.completion": "output_tokens",
    "llm.token_count.prompt_details.cache_read": "cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_write": "cache_write_input_tokens",
    "llm.token_count.prompt_details.audio": "audio_input_tokens",
    "llm.token_count.completion_details.reasoning": "reasoning_output_tokens",
    "llm.token_count.completion_details.audio": "audio_output_tokens",
}


_METHOD: Final = ".__call__"
"""How the instrumentation of DSPy names the method of a tool."""
_FUNCTION_RESPONSE: Final = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})
"""Members of the type ``FunctionResponse`` of ``google-genai``."""


class OpenInferenceDialect:
    """Reads spans that have an ``openinference.span.kind``."""

    NAME = "openinference"
    PRIORITY = 100

    def claims(self, span: SpanRecord) -> bool:
        """The kind; or, where an SDK limit dropped the oldest attributes, the scope."""
        return KIND in span.attributes or (span.dropped_attributes > 0 and span.scope.name.startswith(_SCOPE))

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for guardrails, evaluators, prompts and whatever else asks nobody outside."""
        del logs
        fields = Fields(span.attributes)
        reader = _READERS.get(_kind(span, fields))
        if reader is None:
            return None
        found = reader(span, fields)
        draft = drafted(span, fields, replace(found, error=_raised(span), session_id=_session(fields)))
        return (
            replace(draft, perhaps_text=fields.text(OUTPUT)) if draft.kind == "tool_call" and span.scope.name == _OPENAI_AGENTS else draft
        )


def _kind(span: SpanRecord, fields: Fields) -> str:
    """The kind, unless the attributes say otherwise.

    The instrumentation of LangChain takes everything for an agent that has the word in its name, that of the OpenAI Agents SDK a hand-off
    for a tool.
    """
    kind = (fields.text(KIND) or "UNKNOWN").upper()
    if kind in ("AGENT", "UNKNOWN"):
        if TOOL in fields:
            return "TOOL"
        if PARAMETERS in fields or (kind == "UNKNOWN" and MODEL in fields):
            return "LLM"
        if kind == "AGENT" and not any(name in fields for name in (*AGENT, INPUT, OUTPUT, MODEL)):
            return "CHAIN"  # a trace of the OpenAI Agents SDK: what is around its agents
        if kind == "AGENT" and _is_node(span, fields):
            return "CHAIN"
    if kind == "CHAIN" and span.scope.name == _HAYSTACK and _is_haystack_agent(fields):
        return "AGENT"
    if kind == "TOOL" and TOOL not in fields and span.name.startswith(_HANDOFF):
        return "HANDOFF"
    return "CHAIN" if kind == "LLM" and not _asks(span, fields) else kind


def _is_haystack_agent(fields: Fields) -> bool:
    """Whether a component of Haystack takes messages and gives messages, as its agents do; a generator gives replies."""
    sides = (fields.attributes.get(side) for side in (INPUT, OUTPUT))
    return all(isinstance(text, str) and text.startswith(_MESSAGES) for text in sides)


_INSIDE_GRAPH: Final = ("ChannelWrite<", "ChannelRead<", "Branch<")
"""How the names begin of what LangGraph runs itself; the names of nodes stand in them."""


def _is_node(span: SpanRecord, fields: Fields) -> bool:
    """Whether the span is one visit of a node of a LangGraph graph, or what the graph does between two."""
    metadata = _metadata(fields)
    node = metadata.get("langgraph_node")
    return node == span.name or (node is not None and span.name.startswith(_INSIDE_GRAPH))


def _metadata(fields: Fields) -> Mapping[str, Json]:
    metadata, _ = decoded_json(fields.attributes.get(METADATA))
    return metadata if isinstance(metadata, dict) else {}


def _session(fields: Fields) -> str | None:
    return fields.identifier(a.SESSION_ID) or Fields(_metadata(fields)).identifier(*_SESSIONS)


def _raised(span: SpanRecord) -> Json:
    """The exception that ended the span: its event is exact, the status message may hold a traceback as well."""
    raised = next((event for event in reversed(span.events) if event.name == a.EXCEPTION_EVENT), None)
    if raised is None or span.status != STATUS_ERROR:
        return None
    told = Fields(raised.attributes)
    return {"type": told.text(a.EXCEPTION_TYPE), "message": told.text(a.EXCEPTION_MESSAGE)}


# ---- models ------------------------------------------------------------------------------------------------------


def _asks(span: SpanRecord, fields: Fields) -> bool:
    """Whether the span is a call of a model; the instrumentation of LlamaIndex has spans of what a model's class does for itself too."""
    of_class = span.name.partition(".")[2]
    return not of_class.startswith("_") or any(name.startswith("llm.output_messages.") for name in fields.attributes)


def _model(span: SpanRecord, fields: Fields) -> Found:
    told = exchange(fields)
    model = fields.text(REQUESTED) or told.model or fields.text(MODEL)
    versions = {
        "model": _present(provider=fields.text(*PROVIDER), request=model, response=fields.text(ANSWERED, MODEL)),
        "prompt": _prompt(fields),
        "tools": offered(told.asked["tools"]) if told.asked is not None else [],
    }
    places = ", ".join(map(str, told.missing[:5])) + ("…" if len(told.missing) > 5 else "")
    return Found(
        kind="model_call",
        name=model or span.name,
        asked=told.asked,
        answered=told.answered,
        usage={name: count for key, name in _USAGE.items() if (count := whole(fields.attributes.get(key))) is not None},
        versions={name: value for name, value in versions.items() if value},
        response_id=told.response_id,
        every_setting=_every_setting(fields, told.asked),
        reasons=(Reason(code=MESSAGE_ABSENT, detail=f"the input has later messages, but none at {places}"),) if told.missing else (),
        grade="incomplete" if told.missing else "exact",
    )


def _every_setting(fields: Fields, asked: Json) -> bool:
    """Whether the parameters are all that the call had.

    Its own instrumentations keep what they see of the request. What makes OpenInference of spans in the GenAI conventions has only what
    these say, and of LangChain's models those of other makers than OpenAI and Anthropic do not name all that they send.
    """
    params = asked.get("params") if isinstance(asked, dict) else None
    if not isinstance(params, dict) or any(name.startswith("gen_ai.") for name in fields.attributes):
        return False
    kind = params.get("_type")
    return not isinstance(kind, str) or kind.startswith(_WHOLE_IN_LANGCHAIN)


def _prompt(fields: Fields) -> dict[str, Json]:
    template = fields.text(TEMPLATE)
    return _present(
        name=fields.text(*PROMPT),
        version=fields.text(TEMPLATE_VERSION),
        digest=None if template is None else digest(template),
        template=template,
    )


def _present(**members: Json) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not None}


# ---- tools and hand-offs -----------------------------------------------------------------------------------------


def _tool(span: SpanRecord, fields: Fields) -> Found:
    schema = fields.json(TOOL_PARAMETERS)
    given = fields.json(INPUT) if INPUT in fields else None if is_schema(schema) else schema
    shown = literal(given) if isinstance(given, str) else None
    given = shown if isinstance(shown, dict) else given  # LangChain hands its callbacks the arguments as Python shows them
    name = fields.text(TOOL, a.GEN_AI_TOOL_NAME) or span.name.removesuffix(_METHOD)
    made = returned(_response(_gave(fields), name))
    return Found(
        kind="tool_call",
        name=name,
        asked=None if given is None and INPUT not in fields else {"arguments": called_with(given, parameter_names(schema))},
        answered=None if OUTPUT not in fields else {"result": made.value},
        call_id=fields.identifier(TOOL_CALL, a.GEN_AI_TOOL_CALL_ID) or made.call_id,
        outcome="tool_error" if made.failed and span.status != STATUS_ERROR else None,
    )


def _response(value: Json, name: str) -> Json:
    """What a tool gave, out of the part of Gemini's contents that tells the model of it, which the instrumentation of ADK writes."""
    whole = isinstance(value, dict) and {"name", "response"} <= value.keys() <= _FUNCTION_RESPONSE
    return value["response"] if isinstance(value, dict) and whole and value["name"] == name else value


def _gave(fields: Fields) -> Json:
    """What a tool gave, of the type that its media type says: a text as it is, else JSON, once."""
    if OUTPUT not in fields:
        return None
    text, decoded = fields.attributes[OUTPUT], fields.json(OUTPUT)  # which notices what is cut
    form = (fields.text(OUTPUT_FORM) or "").partition(";")[0]
    if not isinstance(text, str) or OUTPUT in fields.reasons:
        return decoded
    if form == "application/json":
        return json_value(text, decoded)
    return text if form == "text/plain" else decoded


def _handoff(span: SpanRecord, fields: Fields) -> Found:
    to = fields.text(OUTPUT) or span.name.removeprefix(_HANDOFF)
    return Found(kind="handoff", name=to, asked={"arguments": _present(**{"from": fields.text(INPUT), "to": to})}, answered={"result": to})


# ---- agents, chains and retrievals -------------------------------------------------------------------------------


def _agent(span: SpanRecord, fields: Fields) -> Found:
    name = fields.text(*AGENT)
    given, made = (fields.json(side) if side in fields else None for side in (INPUT, OUTPUT))
    return Found(
        kind="agent",
        name=name or span.name.removesuffix(".run").removesuffix(".arun"),
        agent=name,
        asked=None if given is None else input_view(given) if isinstance(given, str) or is_talk(given) else {"arguments": given},
        answered=None if made is None else output_view(made) if isinstance(made, str) or is_talk(made) else {"result": made},
        usage=tokens_of_haystack(given, made) if span.scope.name == _HAYSTACK else {},
        runs=True,
    )


def _chain(span: SpanRecord, fields: Fields) -> Found:
    return replace(_agent(span, fields), frame=True)


def _retriever(span: SpanRecord, fields: Fields) -> Found:
    found = _documents(fields, "retrieval.documents")
    given = fields.json(INPUT) if INPUT in fields else None
    asked = given if isinstance(given, dict) and "query" in given else {} if given is None else {"query": given}
    return _retrieval(span, fields, asked, found)


def _reranker(span: SpanRecord, fields: Fields) -> Found:
    asked = _present(query=fields.json("reranker.query"), top_k=fields.integer("reranker.top_k"))
    given = _documents(fields, "reranker.input_documents")
    return _retrieval(span, fields, {**asked, "documents": given} if given else asked, _documents(fields, "reranker.output_documents"))


def _embedding(span: SpanRecord, fields: Fields) -> Found:
    made = [
        inner(item, "embedding") or item for item in listed(unflattened(fields.attributes, "embedding.embeddings")["embedding.embeddings"])
    ]
    texts = [text for item in made if (text := leaf(item, "text")) is not None]
    vectors = [vector for item in made if (vector := leaf(item, "vector")) is not None]
    found = _retrieval(span, fields, {"input": texts} if texts else {}, vectors)
    return replace(found, name=fields.text("embedding.model_name") or span.name)


def _retrieval(span: SpanRecord, fields: Fields, asked: dict[str, Json], made: list[Json]) -> Found:
    given = {"input": fields.json(INPUT)} if not asked and INPUT in fields else asked
    result = made or (fields.json(OUTPUT) if OUTPUT in fields else None)
    return Found(
        kind="retrieval",
        name=fields.text("reranker.model_name") or span.name,
        asked={"arguments": given} if given else None,
        answered=None if result is None else {"result": result},
    )


def _documents(fields: Fields, prefix: str) -> list[Json]:
    return [_document(inner(item, "document") or item) for item in listed(unflattened(fields.attributes, prefix)[prefix])]


def _document(node: Node) -> dict[str, Json]:
    found = {name: leaf(node, name) for name in node}
    return _present(**{**found, "metadata": decoded_json(found.get("metadata"))[0]})


_READERS: Final[Mapping[str, Callable[[SpanRecord, Fields], Found]]] = {
    "LLM": _model,
    "TOOL": _tool,
    "HANDOFF": _handoff,
    "AGENT": _agent,
    "CHAIN": _chain,
    "RETRIEVER": _retriever,
    "RERANKER": _reranker,
    "EMBEDDING": _embedding,
}


DIALECT: Final = OpenInferenceDialect()
