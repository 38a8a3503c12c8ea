"""Requests and responses of httpx, httpx2 and requests, which exceptions carry: kept by content, rebuilt if the client is imported."""

import sys
from collections.abc import Callable
from typing import Any, Final

_CLIENTS: Final = frozenset({"httpx", "httpx2", "requests"})
_CLASSES: Final = {"Request": "request", "PreparedRequest": "request", "Response": "response"}

UNREAD: Final = "its body, which nobody had read"


def http_tag(cls: type) -> str | None:
    """Return ``request`` or ``response`` for such a class of a known client."""
    client = client_of(cls)
    if client == "requests" and cls.__name__ == "Request":  # not prepared: it has neither a final URL nor a body
        return None
    return _CLASSES.get(cls.__name__) if client in _CLIENTS else None


def client_of(cls: type) -> str:
    """Return the top-level package of a class."""
    return str(cls.__module__).partition(".")[0]


def http_parts(value: Any) -> tuple[dict[str, Any], str]:
    """Return what a request or response is made of, and what of it that lacks, if anything."""
    if client_of(type(value)) == "requests":
        return _parts_of_requests(value)
    parts: dict[str, Any] = {}
    if hasattr(value, "status_code"):
        parts["status"] = value.status_code
        request = getattr(value, "_request", None)
        if request is not None:
            parts["request"] = request
    else:
        parts["method"] = value.method
        parts["url"] = str(value.url)
    parts["headers"] = [[name.decode("latin-1"), item.decode("latin-1")] for name, item in value.headers.raw]
    content = getattr(value, "_content", None)
    if content is None:
        return parts, UNREAD
    parts["content"] = content
    return parts, ""


def _parts_of_requests(value: Any) -> tuple[dict[str, Any], str]:
    """What ``requests`` keeps; a body that nobody has read stays unread. Cookies and the redirects before are left out."""
    parts: dict[str, Any]
    lacks = ""
    if hasattr(value, "status_code"):
        body = value._content
        parts = {"status": value.status_code, "url": value.url, "reason": value.reason, "encoding": value.encoding}
        parts |= {"elapsed": value.elapsed, "request": value.request}
        lacks = "its redirects and cookies" if value.history or len(value.cookies) else ""
    else:
        body = value.body
        parts = {"method": value.method, "url": value.url}
    parts["headers"] = [[_latin(name), _latin(item)] for name, item in (value.headers or {}).items()]
    if body is None or isinstance(body, str | bytes):
        parts["content"] = body
    else:
        lacks = UNREAD
    return parts, lacks


def _latin(text: Any) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else str(text)


def restore_http(tag: str, payload: dict[str, Any], client: object, value: Callable[[Any], Any]) -> Any:
    """Build a request or response.

    Args:
        tag: ``request`` or ``response``.
        payload: The parts, as a tree.
        client: Name of the client package.
        value: Restores one part.

    Raises:
        LookupError: The client is not imported.
    """
    module = sys.modules.get(client) if isinstance(client, str) and client in _CLIENTS else None
    if module is None:
        raise LookupError(f"{client} is not imported")
    space: dict[str, Any] = vars(module)
    if client == "requests":
        return _restore_requests(space, tag, payload, value)
    headers = [(str(name).encode("latin-1"), str(item).encode("latin-1")) for name, item in payload["headers"]]
    content = value(payload.get("content"))
    if tag == "request":
        return space["Request"](payload["method"], payload["url"], headers=headers, content=content)
    made = space["Response"](int(payload["status"]), headers=headers, request=value(payload.get("request")))
    made._content = content or b""  # already decoded: the constructor would apply Content-Encoding once more
    return made


def _restore_requests(space: dict[str, Any], tag: str, payload: dict[str, Any], value: Callable[[Any], Any]) -> Any:
    parts = {name: value(part) for name, part in payload.items() if name != "headers"}
    whole = space["Response"]()
    headers = type(whole.headers)((str(name), str(item)) for name, item in payload["headers"])
    if tag == "request":
        made = space["PreparedRequest"]()
        made.method, made.url, made.body, made.headers = parts["method"], parts["url"], parts.get("content"), headers
        return made
    whole.status_code, whole.url, whole.reason, whole.encoding = parts["status"], parts["url"], parts["reason"], parts["encoding"]
    whole.elapsed, whole.request, whole.headers = parts["elapsed"], parts["request"], headers
    whole._content, whole._content_consumed = parts.get("content", b""), True
    return whole
