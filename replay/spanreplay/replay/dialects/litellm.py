"""LiteLLM's own tracing (``callbacks=["otel"]``, and the proxy's), as far as it differs from the GenAI conventions that it follows.

One call is two spans: ``litellm_request`` has the messages, but not what an answer asks for, save names and arguments without ids
(``gen_ai.completion.N.function_call.*``); ``raw_gen_ai_request`` inside it has the members of the provider's request and response, each as
``llm.PROVIDER.MEMBER``, in the text that Python shows of it. Inside a span of the application the first is left out, and what it would have
is written on that span, each call over the one before. Other spans of the proxy (authentication, its database) are no steps.
Source: <https://github.com/BerriAI/litellm>, ``litellm/integrations/opentelemetry.py`` (1.110.2).
"""

from collections.abc import Sequence
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import literal
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json, jsonable, whole
from spanreplay.replay.reading.flattened import inner, leaf, listed, unflattened
from spanreplay.replay.reading.messages import body_answered, body_asked, definitions, model_input, model_output
from spanreplay.replay.reading.parts import part
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "litellm"
RAW: Final = "raw_gen_ai_request"
MEMBERS: Final = "llm."
FUNCTIONS: Final = "llm.request.functions"
COMPLETIONS: Final = "gen_ai.completion"
OPERATIONS: Final = frozenset({"chat", "completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses"})
_ANSWERED: Final = frozenset(
    {"id", "choices", "created", "object", "usage", "system_fingerprint", "service_tier"}
    | {"content", "stop_reason", "stop_sequence", "role", "type", "candidates", "usageMetadata", "modelVersion", "responseId"}
    | {"output", "status", "error", "created_at", "metrics", "stopReason"}
)
"""Members of responses; those of requests stand beside them."""
_USAGE: Final = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "total_tokens": "total_tokens",
}


class LiteLlmDialect:
    """Reads LiteLLM's spans of calls of models."""

    NAME = "litellm"
    PRIORITY = 110

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, and a name or an operation of its own."""
        if span.scope.name != SCOPE:
            return False
        return span.name == RAW or (a.GEN_AI_REQUEST_MODEL in span.attributes and a.GEN_AI_OPERATION_NAME in span.attributes)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for what asks no model for an answer."""
        del logs
        fields = Fields(span.attributes)
        if span.name == RAW:
            found = _raw(span, fields)
        else:
            found = _model(span, fields) if fields.text(a.GEN_AI_OPERATION_NAME) in OPERATIONS else None
        return None if found is None else drafted(span, fields, found)


def _model(span: SpanRecord, fields: Fields) -> Found:
    flat = unflattened(fields.attributes, FUNCTIONS, COMPLETIONS)
    tools: list[Json] = []
    for function in listed(flat[FUNCTIONS]):
        told: dict[str, Json] = {"name": leaf(function, "name"), "description": leaf(function, "description") or None}
        tools.append({"type": "function", **told, "parameters": decoded_json(leaf(function, "parameters"))[0]})
    asked, answered = model_input(fields), model_output(fields)
    if asked is not None and not asked["tools"]:
        asked["tools"] = definitions(tools)
    calls = [inner(completion, "function_call") for completion in listed(flat[COMPLETIONS])]
    made: list[Json] = [
        part({"type": "tool_call", "id": None, "name": leaf(call, "name"), "arguments": leaf(call, "arguments")}) for call in calls if call
    ]
    if answered is not None and answered["messages"] and made and not any(message["parts"] for message in answered["messages"]):
        answered["messages"][0]["parts"] = made
    return Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or span.name,
        asked=asked,
        answered=answered,
        versions={"tools": known} if (known := offered(tools)) else {},
    )


def _raw(span: SpanRecord, fields: Fields) -> Found | None:
    """The provider's request and response, member by member."""
    body: dict[str, Json] = {}
    for name in fields.attributes:
        provider, dot, member = name.removeprefix(MEMBERS).partition(".")
        if name.startswith(MEMBERS) and provider and dot and member:
            value = fields.attributes[name]
            if value != "":  # None is written so
                body[member] = literal(value) if isinstance(value, str) else jsonable(value)
    asked = body_asked({name: value for name, value in body.items() if name not in _ANSWERED})
    answered = body_answered(body)
    if asked is None and answered is None:
        return None
    model, response_id = body.get("model"), body.get("id")
    return Found(
        kind="model_call",
        name=model if isinstance(model, str) and model else span.name,
        asked=asked,
        answered=answered,
        usage=_usage(body.get("usage")),
        response_id=response_id if isinstance(response_id, str) else None,
    )


def _usage(told: Json) -> dict[str, int]:
    counted = told if isinstance(told, dict) else {}
    return {new: number for old, new in _USAGE.items() if (number := whole(counted.get(old))) is not None and number >= 0}


DIALECT: Final = LiteLlmDialect()
