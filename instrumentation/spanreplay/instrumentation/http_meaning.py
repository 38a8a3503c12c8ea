"""What a model answered, as JSON without its wire form: kept where the bytes must not be, and enough to make a body again.

``{"messages": [gen_ai.output.messages], "model": gen_ai.response.model, "response_id": gen_ai.response.id, "usage": {name: tokens}}``;
all but the messages may be absent or ``null``.
"""

import json
from collections.abc import Mapping
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation.provider import AttributeValue, Provider
from spanreplay.semconv import attributes as names

_USAGE: Final = "gen_ai.usage."


def of(view: Mapping[str, AttributeValue]) -> str:
    """The meaning of a response, from its ``gen_ai.*`` view."""
    messages = view.get(names.GEN_AI_OUTPUT_MESSAGES)
    return canonical_json(
        {
            "messages": json.loads(messages) if isinstance(messages, str) else [],
            "model": view.get(names.GEN_AI_RESPONSE_MODEL),
            "response_id": view.get(names.GEN_AI_RESPONSE_ID),
            "usage": {name: value for name, value in view.items() if name.startswith(_USAGE)},
        }
    )


def render(text: str, provider: Provider | None, request: object) -> tuple[str, bytes]:
    """A response body, and its content type, of a meaning.

    Args:
        text: the meaning; for a request that is no model call, the body itself: a JSON string as it is, anything else as JSON.
        provider: the codec of the request's API.
        request: the parsed request body.
    """
    told = json.loads(text)
    if provider is None:
        return ("text/plain; charset=utf-8", told.encode()) if isinstance(told, str) else ("application/json", text.encode())
    given = told if isinstance(told, dict) else {}
    usage = given.get("usage")
    return provider.render(
        given.get("messages") or [],
        request=request,
        response_id=given.get("response_id"),
        model=given.get("model"),
        usage=usage if isinstance(usage, dict) else {},
    )
