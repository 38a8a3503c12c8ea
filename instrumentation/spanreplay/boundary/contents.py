"""Which attributes hold what was said, as against names, numbers and places, and their digests."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import Session

_EXACT: Final = frozenset({names.STEP_INPUT, names.STEP_RESULT, names.STEP_ITEMS})
_CONTENT: Final = _EXACT | {
    names.GEN_AI_INPUT_MESSAGES,
    names.GEN_AI_OUTPUT_MESSAGES,
    names.GEN_AI_SYSTEM_INSTRUCTIONS,
    names.GEN_AI_TOOL_DEFINITIONS,
    names.GEN_AI_TOOL_CALL_ARGUMENTS,
    names.GEN_AI_TOOL_CALL_RESULT,
    names.RUN_INPUT,
    names.RUN_OUTPUT,
    names.PROMPT_TEMPLATE,
    names.STEP_ERROR,
}


def is_content(name: str) -> bool:
    """True for attributes that hold what was said."""
    return name in _CONTENT or name.startswith(names.WIRE_PREFIX)


@lru_cache(maxsize=512)
def _digest(text: str) -> tuple[str, int]:
    data = text.encode("utf-8", "surrogatepass")
    return sha256(data).hexdigest(), len(data)


def content_digests(attributes: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Attribute name to ``[sha256 hex, bytes]`` of every content attribute, so that a cut value is provable."""
    return {name: list(_digest(value)) for name, value in attributes.items() if isinstance(value, str) and is_content(name)}


def for_span(attributes: Mapping[str, Any], session: "Session") -> dict[str, Any]:
    """What of a step's attributes its OpenTelemetry span carries, by the session's settings."""
    content, limit = session.content, session.span_limit
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        if is_content(name):
            if content == "none" or (content == "view" and (name in _EXACT or name.startswith(names.WIRE_PREFIX))):
                continue
            if isinstance(value, str) and len(value) > limit:
                continue
        kept[name] = value
    return kept
