"""Messages of pydantic-ai: as it dumps them (``ModelMessagesTypeAdapter``), and the parts of its own that its spans have.

A dump is ``{"kind": "request" | "response", "parts": [{"part_kind": …}…]}``. Source: ``pydantic_ai/messages.py`` and
``pydantic_ai/_otel_messages.py`` of pydantic-ai 2.68.
"""

from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.parts import part, parts, role_of

NAME: Final = "pydantic-ai"

_KINDS: Final = frozenset({"request", "response"})
_ROLES: Final[Mapping[str, str]] = {"system-prompt": "system", "tool-return": "tool", "retry-prompt": "tool"}
_URLS: Final[Mapping[str, str | None]] = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": None}
"""Media by their address, as spans had them up to version 3 of the instrumentation."""
_CALLS: Final = frozenset({"tool-call", "builtin-tool-call", "native-tool-call"})
_RETURNS: Final = frozenset({"tool-return", "builtin-tool-return", "native-tool-return", "retry-prompt"})
_TAKEN: Final = frozenset({"part_kind", "kind", "content", "timestamp", "tool_name", "tool_call_id", "args"})


def reads(item: Mapping[str, Json]) -> bool:
    """A dumped message, or a message of a span that has a part of pydantic-ai's own."""
    held = item.get("parts")
    if not isinstance(held, list):
        return False
    if _text(item, "kind") in _KINDS:
        return all(isinstance(one, dict) and "part_kind" in one for one in held)
    return any(isinstance(one, dict) and (_text(one, "type") in _URLS or _is_binary(one)) for one in held)


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """A response as one message, a request as one for each role that speaks in it."""
    held = item.get("parts")
    given: list[Any] = held if isinstance(held, list) else []
    if _text(item, "kind") not in _KINDS:
        rest = {key: value for key, value in item.items() if key not in ("role", "parts")}
        return [{"role": role_of(item.get("role"), role), "parts": [_span_part(one) for one in given], **rest}]
    if item["kind"] == "response":
        finish = item.get("finish_reason")
        return [
            {
                "role": "assistant",
                "parts": [made for one in given for made in _dumped(one)],
                **({"finish_reason": finish} if isinstance(finish, str) else {}),
            }
        ]
    said: list[dict[str, Json]] = []
    if isinstance(item.get("instructions"), str):
        said.append({"role": "system", "parts": parts(item["instructions"])})
    for one in given:
        kind = _text(one, "part_kind")
        whose = "user" if kind == "retry-prompt" and one.get("tool_name") is None else _ROLES.get(kind, "user")
        if not said or said[-1]["role"] != whose:
            said.append({"role": whose, "parts": []})
        said[-1]["parts"] += _dumped(one)
    return said


def asked(body: Mapping[str, Json]) -> Json:
    """Nothing: pydantic-ai has messages, and the bodies are those of its providers."""
    del body
    return None


def answered(body: Mapping[str, Json]) -> Json:
    """A dumped response."""
    if body.get("kind") != "response" or not reads(body):
        return None
    said = messages(body, "assistant")
    return {"messages": said, "finish": said[0].get("finish_reason")}


def _dumped(one: Mapping[str, Any]) -> list[dict[str, Json]]:
    kind, content = _text(one, "part_kind"), one.get("content")
    rest = {key: value for key, value in one.items() if key not in _TAKEN and value not in (None, {}, [])}
    if kind in _CALLS:
        call = {"type": "tool_call", "id": one.get("tool_call_id"), "name": one.get("tool_name"), "arguments": one.get("args")}
        return [part({**call, **rest})]
    if kind in _RETURNS and one.get("tool_name") is not None:
        made = {"type": "tool_call_response", "id": one.get("tool_call_id"), "name": one.get("tool_name"), "response": content}
        return [{**made, **rest}]
    if kind == "thinking":
        return [{"type": "reasoning", "content": content, **rest}]
    if isinstance(content, list):
        return [_media(inner) if isinstance(inner, dict) else part(inner) for inner in content]
    if isinstance(content, dict):
        return [_media(content)]
    return [{"type": "text", "content": content, **rest}]


def _media(given: Mapping[str, Any]) -> dict[str, Json]:
    """A binary or an address, as dumped: ``kind`` says which."""
    kind = given.get("kind")
    return _span_part({**{key: value for key, value in given.items() if key != "kind"}, "type": kind} if isinstance(kind, str) else given)


def _span_part(given: Json) -> dict[str, Json]:
    if not isinstance(given, dict):
        return part(given)
    kind = _text(given, "type")
    if kind in _URLS:
        modality = _URLS[kind]
        rest = {key: value for key, value in given.items() if key not in ("type", "url", "media_type") and value not in (None, {})}
        named = {"modality": modality} if modality is not None else {}
        mime = {"mime_type": given["media_type"]} if isinstance(given.get("media_type"), str) else {}
        return {"type": "uri", **named, **mime, **({"uri": given["url"]} if "url" in given else {}), **rest}
    if _is_binary(given):
        mime_type = given.get("media_type")
        modality = mime_type.partition("/")[0] if isinstance(mime_type, str) else None
        content = given.get("content", given.get("data"))
        return {
            "type": "blob",
            "mime_type": mime_type,
            **({"modality": modality} if modality in ("image", "audio", "video") else {}),
            **({} if content is None else {"content": content}),
        }
    return part(given)


def _text(given: Mapping[str, Json], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""


def _is_binary(given: Mapping[str, Json]) -> bool:
    return given.get("type") == "binary" and ("media_type" in given or "data" in given)
