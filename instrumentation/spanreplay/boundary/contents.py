"""Which attributes hold what was said, as against names, numbers and places, and their digests."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from spanreplay.content.digests import text_digest
from spanreplay.content.json_text import quoted
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


_NAMES: Final = 4096


def is_content(name: str) -> bool:
    """True for attributes that hold what was said."""
    return name in _CONTENT or name.startswith(names.WIRE_PREFIX)


def content_digests(attributes: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Attribute name to ``[sha256 hex, bytes]`` of every content attribute, so that a cut value is provable."""
    return {name: list(text_digest(value)) for name, value in attributes.items() if isinstance(value, str) and is_content(name)}


def digests_json(contents: Mapping[str, str]) -> str:
    """Canonical JSON of the digests of content attributes: that of :func:`content_digests`, put together from remembered parts."""
    digests = [(name, text_digest(contents[name])) for name in sorted(contents)]
    return "{" + ",".join([f'{quoted(name)}:["{digest.hex}",{digest.size}]' for name, digest in digests]) + "}"


def for_span(attributes: Mapping[str, Any], session: "Session", contents: dict[str, str]) -> dict[str, Any]:
    """What of a step's attributes its OpenTelemetry span carries, by the session's settings.

    Args:
        attributes: of the step.
        session: whose settings count.
        contents: gets the texts that :func:`digests_json` is to name, whether or not the span carries them.
    """
    content, limit = session.content, session.span_limit
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        role = _roles.get(name)
        if role is None:
            role = _role(name)
        if role:
            if isinstance(value, str):
                contents[name] = value
                if len(value) > limit:
                    continue
            if content == "none" or (content == "view" and role == _ROLE_EXACT):
                continue
        kept[name] = value
    return kept


_ROLE_CONTENT: Final = 1
_ROLE_EXACT: Final = 2
_roles: Final[dict[str, int]] = {}
"""Of attribute names met so far: 0, content, or content that a view leaves out."""


def _role(name: str) -> int:
    exact = name in _EXACT or name.startswith(names.WIRE_PREFIX)
    role = _ROLE_EXACT if exact else _ROLE_CONTENT if name in _CONTENT else 0
    if len(_roles) < _NAMES:
        _roles[name] = role
    return role
