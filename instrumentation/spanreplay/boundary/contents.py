"""Which attributes hold what was said, as against names, numbers and places, and their digests."""

from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Final

from spanreplay.boundary.call import Kind
from spanreplay.content.digests import text_digest
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import Session

_EXACT: Final = frozenset({names.STEP_INPUT, names.STEP_RESULT, names.STEP_ITEMS, names.STEP_LEFT})
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


_VIEWED: Final[frozenset[Kind]] = frozenset({"model_call", "agent", "tool_call"})
"""Kinds whose content has standard attributes to be looked at in; of the others the typed values are all there is to see."""
_NAMES: Final = 4096


def is_content(name: str) -> bool:
    """True for attributes that hold what was said."""
    return name in _CONTENT or name.startswith(names.WIRE_PREFIX)


def content_digests(attributes: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Attribute name to ``[sha256 hex, bytes]`` of every content attribute, so that a cut value is provable."""
    found: dict[str, list[Any]] = {}
    for name, value in attributes.items():
        if isinstance(value, str) and is_content(name):
            digest = text_digest(value)
            found[name] = [digest.hex, digest.size]
    return found


def digests_json(contents: Mapping[str, str]) -> str:
    """Canonical JSON of the digests of content attributes: that of :func:`content_digests`, put together from remembered parts."""
    return "{" + ",".join([f"{quoted(name)}:{text_digest(contents[name]).json}" for name in sorted(contents)]) + "}"


def for_span(attributes: Mapping[str, Any], session: "Session", contents: dict[str, str], kind: Kind) -> dict[str, Any]:
    """What of a step's attributes its OpenTelemetry span carries, by the session's settings.

    Args:
        attributes: of the step.
        session: whose settings count.
        contents: gets the texts that :func:`digests_json` is to name, whether or not the span carries them.
        kind: of the step.
    """
    kept = dict(attributes)
    viewed = kind in _VIEWED
    for name in attributes.keys() - _ordinary:
        if not is_content(name):
            if len(_ordinary) < _NAMES:
                _ordinary.add(name)
            continue
        value = attributes[name]
        long = False
        content = session.content
        if isinstance(value, str):
            contents[name] = value
            long = content != "full" and len(value) > session.span_limit
        if long or content == "none" or (content == "view" and ((viewed and name in _EXACT) or name.startswith(names.WIRE_PREFIX))):
            del kept[name]
    return kept


_ordinary: Final[set[str]] = set()
"""Names met so far of attributes that hold no content."""
