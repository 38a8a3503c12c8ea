"""Messages of the Vercel AI SDK, versions 4 to 7, as its telemetry writes them (``ai.prompt.messages``).

A part is told by its ``type`` in kebab case and its fields in camel case: ``{"type": "tool-call", "toolCallId", "toolName", "input"}``. A
tool's result stands in ``output``, ``{"type": "json" | "text" | "error-json" | "error-text" | "content" | "execution-denied", "value"}``;
version 4 has ``args``, ``result`` and ``isError`` instead. Seen in what ``ai`` 4.3, 5.0, 6.0 and 7.0 export.
"""

from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.media import media_part
from spanreplay.replay.reading.parts import part, parts, role_of

NAME: Final = "vercel"

_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "tool-call": ("toolCallId",),
    "tool-result": ("toolCallId",),
    "tool-approval-request": ("approvalId",),
    "tool-approval-response": ("approvalId",),
    "file": ("mediaType", "mimeType"),
    "image": ("mediaType", "mimeType", "image"),
    "redacted-reasoning": ("data",),
}
"""Types of parts, and the fields of which one makes a part of the type one of this shape."""
_ERRORS: Final = frozenset({"error-json", "error-text"})
_DENIED: Final = "execution-denied"
_VALUES: Final = frozenset({"json", "text", "content"}) | _ERRORS


def reads(item: Mapping[str, Json]) -> bool:
    """A message with a part that is named as only this SDK does; one of text alone is like everybody's."""
    content = item.get("content")
    return isinstance(content, list) and any(map(_is_own, content))


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The message; results of tools stay in the message of the role ``tool``."""
    content = item.get("content")
    rest = {key: value for key, value in item.items() if key not in ("role", "content")}
    made = [_part(one) if _is_own(one) else part(one) for one in content] if isinstance(content, list) else parts(content)
    return [{"role": role_of(item.get("role"), role), "parts": made, **rest}]


def asked(body: Mapping[str, Json]) -> Json:
    """Never: no request body is recorded."""
    del body


def answered(body: Mapping[str, Json]) -> Json:
    """Never: no response body is recorded."""
    del body


def _is_own(one: Json) -> bool:
    kind = one.get("type") if isinstance(one, dict) else None
    return isinstance(kind, str) and any(one.get(name) is not None for name in _OWN.get(kind, ()))


def _part(one: Mapping[str, Any]) -> dict[str, Json]:
    kind = one["type"]
    if kind == "tool-call":
        return part(_renamed(one, {"toolCallId": "id", "toolName": "name"}))
    if kind == "tool-result":
        return _result(one)
    if kind in ("file", "image"):
        return _media(one)
    if kind == "redacted-reasoning":
        return {**one, "type": "redacted_reasoning"}
    return {**_renamed(one, {"approvalId": "approval_id", "toolCallId": "tool_call_id"}), "type": kind.replace("-", "_")}


def _result(one: Mapping[str, Any]) -> dict[str, Json]:
    made = _renamed(one, {"toolCallId": "id", "toolName": "name", "isError": "is_error"})
    output = made.pop("output", None)
    told = output.get("type") if isinstance(output, dict) else None
    if told in _VALUES:
        made["response"] = output.get("value")
        if told in _ERRORS:
            made["is_error"] = True
    elif told == _DENIED:
        made["response"] = {"denied": True, "reason": output.get("reason")}
    elif output is not None:
        made["response"] = output
    return part(made)


def _media(one: Mapping[str, Any]) -> dict[str, Json]:
    """A file or an image: its data is base64, a URL, or an object that says which (version 7)."""
    rest = {key: value for key, value in one.items() if key not in ("type", "data", "image", "mediaType", "mimeType")}
    mime_type = one.get("mediaType", one.get("mimeType"))
    data = one.get("data", one.get("image"))
    if isinstance(data, dict) and isinstance(data.get("type"), str):
        data = data.get(data["type"])
    first = mime_type.partition("/")[0] if isinstance(mime_type, str) else one["type"]
    modality = first if first in ("image", "audio", "video") else "document"
    if not isinstance(data, str):
        return {"type": "file", "mime_type": mime_type, "modality": modality, "data": data, **rest}
    if data.startswith(("http:", "https:", "data:")):
        return {**(media_part(data, modality, mime_type) or {}), **rest}
    return {"type": "blob", "mime_type": mime_type, "modality": modality, "content": data, **rest}


def _renamed(one: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Json]:
    return {names.get(key, key): value for key, value in one.items()}
