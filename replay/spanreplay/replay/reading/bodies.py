"""Request and response bodies of model APIs, read by the providers that record and answer them.

What a trace of somebody else's holds of a body then reads the same as the body of a live call.
"""

import json
from collections.abc import Mapping
from typing import Final

from spanreplay.instrumentation.provider import AttributeValue, by_name
from spanreplay.replay.model import Json
from spanreplay.semconv import attributes as a

_NOT_PARAMS: Final = frozenset({"model", "messages", "input", "system", "instructions", "tools", "functions", "stream", "contents"})


def request_view(provider: str, body: Mapping[str, Json]) -> Json:
    """``{"messages", "system", "tools", "params"}`` of a request body.

    Args:
        provider: name of the provider whose API the body is of.
        body: the body; it may lack what a trace leaves out.
    """
    known = by_name(provider)
    if known is None:
        return None
    view = known.request(dict(body)).attributes
    return {
        "messages": _value(view, a.GEN_AI_INPUT_MESSAGES),
        "system": _value(view, a.GEN_AI_SYSTEM_INSTRUCTIONS),
        "tools": _value(view, a.GEN_AI_TOOL_DEFINITIONS),
        "params": {key: value for key, value in body.items() if key not in _NOT_PARAMS and value is not None},
    }


def response_view(provider: str, body: Mapping[str, Json]) -> Json:
    """``{"messages", "finish"}`` of a response body; ``None`` where it is none.

    Args:
        provider: name of the provider whose API the body is of.
        body: the body.
    """
    known = by_name(provider)
    if known is None:
        return None
    answer = known.response(200, "application/json", json.dumps(body).encode("utf-8", "surrogatepass"), {})
    if answer.outcome == "malformed" or a.GEN_AI_OUTPUT_MESSAGES not in answer.attributes:
        return None
    reasons = answer.attributes.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    return {
        "messages": _value(answer.attributes, a.GEN_AI_OUTPUT_MESSAGES),
        "finish": reasons[0] if isinstance(reasons, tuple) and reasons else None,
    }


def _value(view: Mapping[str, AttributeValue], name: str) -> list[Json]:
    text = view.get(name)
    value = json.loads(text) if isinstance(text, str) else []
    return value if isinstance(value, list) else []
