"""The Vercel AI SDK: versions 4 to 6 by ``ai.operationId``, version 7 by the scope ``gen_ai`` of ``@ai-sdk/otel``.

Versions 4 to 6 have a span around the whole call (``ai.generateText``, ``ai.streamText``, …), one for each request to the model
(``….doGenerate``, ``….doStream``) and one for each tool (``ai.toolCall``). Version 7 writes the GenAI conventions, with a span
``agent_step`` around each request and its tools, and attributes ``ai.*`` on demand; its class ``LegacyOpenTelemetry`` still writes the
former. Seen in what ``ai`` 4.3.19, 5.0.277, 6.0.326 and 7.0.173 with ``@ai-sdk/otel`` 1.0.173 export.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.messages import definitions, finish_reason, messages, model_input, model_output, params
from spanreplay.replay.reading.parts import parts
from spanreplay.replay.reading.versions import offered
from spanreplay.replay.reasons import INPUT_ABSENT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_INTERNAL, STATUS_ERROR, STATUS_UNSET, LogRecord, SpanRecord

SCOPE: Final = "gen_ai"
"""Of version 7."""
OPERATION: Final = "ai.operationId"
FUNCTION: Final = "ai.telemetry.functionId"
METADATA: Final = "ai.telemetry.metadata."
CONTEXT: Final = "ai.settings.context."
"""Of version 7, with ``runtimeContext``."""
MODEL: Final = "ai.model.id"
MODEL_PROVIDER: Final = "ai.model.provider"
PROMPT: Final = "ai.prompt"
MESSAGES: Final = "ai.prompt.messages"
TOOLS: Final = "ai.prompt.tools"
TOOL_CHOICE: Final = "ai.prompt.toolChoice"
TEXT: Final = "ai.response.text"
REASONING: Final = "ai.response.reasoning"
CALLS: Final = "ai.response.toolCalls"
FILES: Final = "ai.response.files"
OBJECT: Final = "ai.response.object"
FINISH: Final = "ai.response.finishReason"
RESPONSE_ID: Final = "ai.response.id"
RESPONSE_MODEL: Final = "ai.response.model"
TOOL_NAME: Final = "ai.toolCall.name"
TOOL_ID: Final = "ai.toolCall.id"
TOOL_ARGS: Final = "ai.toolCall.args"
TOOL_RESULT: Final = "ai.toolCall.result"
VALUE: Final = "ai.value"
VALUES: Final = "ai.values"
EMBEDDING: Final = "ai.embedding"
EMBEDDINGS: Final = "ai.embeddings"
DOCUMENTS: Final = "ai.documents"
RANKING: Final = "ai.ranking"

_SESSIONS: Final = ("sessionId", "session_id", "chatId", "threadId", "conversationId")
"""Members of the metadata that applications keep the id of a conversation in; the SDK has no name for it."""
_USAGE: Final[Mapping[str, str]] = {
    "ai.usage.inputTokens": "input_tokens",
    "ai.usage.promptTokens": "input_tokens",
    "ai.usage.tokens": "input_tokens",
    "ai.usage.outputTokens": "output_tokens",
    "ai.usage.completionTokens": "output_tokens",
    "ai.usage.cachedInputTokens": "cache_read_input_tokens",
    "ai.usage.inputTokenDetails.cacheWriteTokens": "cache_write_input_tokens",
    "ai.usage.reasoningTokens": "reasoning_output_tokens",
}
_ROOTS: Final = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject", "ai.workflowAgent.stream"})
_SEARCHES: Final = frozenset({"ai.embed.doEmbed", "ai.embedMany.doEmbed", "ai.rerank.doRerank"})
_AROUND: Final = frozenset({"embeddings", "rerank", "decide"})
"""Operations of version 7 that have an inner span of the same operation for each request."""
_LATEST: Final[Mapping[str, Kind]] = {
    "invoke_agent": "agent",
    "chat": "model_call",
    "execute_tool": "tool_call",
    "embeddings": "retrieval",
    "rerank": "retrieval",
    "decide": "model_call",
    "ai.generateSpeech": "model_call",
    "ai.transcribe": "model_call",
    "ai.streamTranscribe": "model_call",
}
_NAMES: Final[Mapping[Kind, str]] = {"agent": a.GEN_AI_AGENT_NAME, "tool_call": a.GEN_AI_TOOL_NAME, "model_call": a.GEN_AI_REQUEST_MODEL}
_STEP: Final = "agent_step"
_TALKS: Final = frozenset({"chat", "invoke_agent"})
_STREAM: Final = "ai.streamText"
_ANSWERED: Final = ("ai.response.", "gen_ai.response.", "gen_ai.usage.", a.GEN_AI_OUTPUT_MESSAGES)
"""How begin the names of what is known once a model has answered."""


CONVERTED: Final = "openinference.span.kind"
"""Of a span that OpenInference's processor has added its own attributes to."""


class VercelDialect:
    """Reads the spans of ``experimental_telemetry`` and of the integration of version 7."""

    NAME = "vercel"
    PRIORITY = 40

    def claims(self, span: SpanRecord) -> bool:
        """An operation of the SDK; of version 7 the scope, unless the application has a tracer of its own, and the conventions' reader."""
        if OPERATION in span.attributes:
            return True
        operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
        return operation == _STEP or (span.scope.name == SCOPE and isinstance(operation, str) and operation in _LATEST)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for what only stands around the steps of embeddings and rankings, and for the rounds of version 7."""
        del logs
        span = _as_it_ended(span)
        fields = Fields(span.attributes)
        operation = fields.text(OPERATION)
        if operation is None:
            return _latest(span, fields)
        if operation == "ai.toolCall":
            return _tool(span, fields)
        if operation in _ROOTS:
            return _agent(span, fields)
        if operation in _SEARCHES:
            return _search(span, fields)
        return _model(span, fields) if operation.endswith((".doGenerate", ".doStream")) else None


DIALECT: Final = VercelDialect()


def _as_it_ended(span: SpanRecord) -> SpanRecord:
    """A span without the failure of another: the processor of ``@arizeai/openinference-vercel`` puts the text of one on all that end later.

    The SDK itself records the exception with the status.
    """
    told = span.status == STATUS_ERROR and span.status_message and CONVERTED in span.attributes and a.ERROR_TYPE not in span.attributes
    if not told or any(event.name == a.EXCEPTION_EVENT for event in span.events):
        return span
    return replace(span, status=STATUS_UNSET, status_message="")


# ---- versions 4 to 6 ---------------------------------------------------------------------------------------------


def _agent(span: SpanRecord, fields: Fields) -> StepDraft:
    name = fields.text(FUNCTION)
    found = Found(
        kind="agent",
        name=name or span.name,
        agent=name,
        asked=_prompt(fields),
        answered=_answer(fields),
        session_id=_session(fields),
        usage=_usage(fields),
        versions=_versions(fields),
        outcome="unknown" if fields.text(OPERATION) == _STREAM and FINISH not in fields and _is_unsaid(span) else None,
        runs=True,
    )
    return drafted(span, fields, found)


def _is_unsaid(span: SpanRecord) -> bool:
    """Whether nothing says that a call failed or was answered: so end the spans of an aborted stream, no error to the SDK."""
    names = span.attributes
    return span.status != STATUS_ERROR and a.ERROR_TYPE not in names and not any(name.startswith(_ANSWERED) for name in names)


def _model(span: SpanRecord, fields: Fields) -> StepDraft:
    said = messages(fields.json(MESSAGES, strict=True), "user")
    tools = definitions([decoded_json(tool)[0] for tool in _list(fields, TOOLS)])
    choice = fields.json(TOOL_CHOICE)
    asked: Json = None
    if said is not None:
        chosen = {} if choice is None else {"tool_choice": choice}
        asked = {"messages": said, "system": [], "tools": tools, "params": {**params(fields), **chosen}}
    found = Found(
        kind="model_call",
        name=fields.text(MODEL, a.GEN_AI_REQUEST_MODEL) or span.name,
        asked=asked,
        answered=_answer(fields),
        session_id=_session(fields),
        usage=_usage(fields),
        versions={**_versions(fields), **({"tools": offered(tools)} if tools else {})},
        response_id=fields.identifier(RESPONSE_ID),
    )
    return drafted(span, fields, found)


def _tool(span: SpanRecord, fields: Fields) -> StepDraft:
    found = Found(
        kind="tool_call",
        name=fields.text(TOOL_NAME) or span.name,
        asked=_value(fields, "arguments", TOOL_ARGS),
        answered=_value(fields, "result", TOOL_RESULT),
        call_id=fields.identifier(TOOL_ID),
        session_id=_session(fields),
    )
    return drafted(span, fields, found)


def _search(span: SpanRecord, fields: Fields) -> StepDraft:
    """One request for embeddings or for a ranking: the texts, each encoded as JSON, and what came of them."""
    asked = {key: _each(fields, name) for key, name in (("values", VALUES), ("value", VALUE), ("documents", DOCUMENTS)) if name in fields}
    result = next((_each(fields, name) for name in (EMBEDDINGS, EMBEDDING, RANKING) if name in fields), None)
    queried = "documents" in asked  # the SDK leaves the query of a ranking out
    found = Found(
        kind="retrieval",
        name=fields.text(MODEL, a.GEN_AI_REQUEST_MODEL) or span.name,
        asked={"arguments": asked} if asked else None,
        answered=None if result is None else {"result": result},
        session_id=_session(fields),
        usage=_usage(fields),
        versions=_versions(fields),
        grade="structure" if queried else "exact",
        reasons=(Reason(code=INPUT_ABSENT, detail="the query of a ranking is not recorded"),) if queried else (),
    )
    return drafted(span, fields, found)


def _prompt(fields: Fields) -> Json:
    """What the whole call was asked: ``{"system", "prompt"}`` or ``{"system", "messages"}``."""
    given = fields.json(PROMPT, strict=True)
    if not isinstance(given, dict):
        return None
    said = given.get("messages", given.get("prompt"))
    system = given.get("system", given.get("instructions"))
    return {
        "messages": messages(said if isinstance(said, list) else [{"role": "user", "content": said}], "user"),
        "system": parts(system) if system else [],
        "tools": [],
        "params": params(fields),
    }


def _answer(fields: Fields) -> Json:
    """The answer, from one attribute for each kind of content; ``None`` where outputs are not recorded."""
    made: list[dict[str, Json]] = []
    for name, kind in ((REASONING, "reasoning"), (TEXT, "text"), (OBJECT, "text")):
        text = fields.text(name)
        if text is not None and name in fields:
            made.append({"type": kind, "content": text})
    content = [{"type": "tool-call", **call} for call in _list(fields, CALLS) if isinstance(call, dict)]
    content += [{"type": "file", **_file(file)} for file in _list(fields, FILES) if isinstance(file, dict)]
    for message in messages([{"role": "assistant", "content": content}], "assistant") or ():
        made += [{key: value for key, value in one.items() if key != "toolCallType"} for one in message["parts"]]
    if not made and TEXT not in fields:
        return None
    finish = finish_reason(fields) or fields.text(FINISH)
    return {"messages": [{"role": "assistant", "parts": made}], "finish": finish}


def _file(file: Mapping[str, Json]) -> dict[str, Json]:
    data = file.get("data", file.get("base64"))
    return {"mediaType": file.get("mediaType", file.get("mimeType", file.get("type"))), "data": data}


def _versions(fields: Fields) -> dict[str, Json]:
    named = {
        "provider": fields.text(a.GEN_AI_PROVIDER_NAME, "gen_ai.system", MODEL_PROVIDER),
        "request": fields.text(MODEL),
        "response": fields.text(RESPONSE_MODEL),
    }
    model = {name: value for name, value in named.items() if value is not None}
    return {"model": model} if "request" in model or "response" in model else {}


def _usage(fields: Fields) -> dict[str, int]:
    counted = {kind: number for name, kind in _USAGE.items() if (number := fields.integer(name)) is not None}
    return {kind: number for kind, number in counted.items() if number or kind in ("input_tokens", "output_tokens")}


def _session(fields: Fields) -> str | None:
    return fields.identifier(*(f"{METADATA}{name}" for name in _SESSIONS))


def _list(fields: Fields, name: str) -> list[Json]:
    value = fields.json(name)
    return value if isinstance(value, list) else []


def _each(fields: Fields, name: str) -> Json:
    value = fields.json(name)
    return [decoded_json(one)[0] for one in value] if isinstance(value, list) else value


# ---- version 7 ---------------------------------------------------------------------------------------------------


def _latest(span: SpanRecord, fields: Fields) -> StepDraft | None:
    operation = fields.text(a.GEN_AI_OPERATION_NAME) or ""
    kind = _LATEST.get(operation)
    if kind is None or (operation in _AROUND and span.kind == KIND_INTERNAL):
        return None
    if kind == "retrieval":
        return _search(span, fields)
    if kind == "tool_call":
        asked, answered = _value(fields, "arguments", a.GEN_AI_TOOL_CALL_ARGUMENTS), _value(fields, "result", a.GEN_AI_TOOL_CALL_RESULT)
    else:
        asked, answered = model_input(fields), model_output(fields)
    found = Found(
        kind=kind,
        name=fields.text(_NAMES[kind], a.GEN_AI_REQUEST_MODEL) or span.name.removeprefix(f"{operation} "),
        asked=asked,
        answered=answered,
        session_id=fields.identifier(*(f"{CONTEXT}{name}" for name in _SESSIONS)),
        outcome="unknown" if operation in _TALKS and _is_unsaid(span) else None,
        runs=kind == "agent",
    )
    return drafted(span, fields, found)


def _value(fields: Fields, key: str, name: str) -> Json:
    return {key: fields.encoded(name)} if name in fields else None
