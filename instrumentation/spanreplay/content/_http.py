"""Requests and responses of httpx and httpx2, which so many exceptions carry: kept by content, rebuilt if the client is imported."""

import sys
from collections.abc import Callable
from typing import Any, Final

_CLIENTS: Final = frozenset({"httpx", "httpx2"})
_CLASSES: Final = {"Request": "request", "Response": "response"}


def http_tag(cls: type) -> str | None:
    """Return ``request`` or ``response`` for such a class of a known client."""
    return _CLASSES.get(cls.__name__) if client_of(cls) in _CLIENTS else None


def client_of(cls: type) -> str:
    """Return the top-level package of a class."""
    return str(cls.__module__).partition(".")[0]


def http_parts(value: Any) -> tuple[dict[str, Any], bool]:
    """Return what a request or response is made of, and whether that is all of it (its body has been read)."""
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
        return parts, False
    parts["content"] = content
    return parts, True


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
    headers = [(str(name).encode("latin-1"), str(item).encode("latin-1")) for name, item in payload["headers"]]
    content = value(payload.get("content"))
    if tag == "request":
        return space["Request"](payload["method"], payload["url"], headers=headers, content=content)
    made = space["Response"](int(payload["status"]), headers=headers, request=value(payload.get("request")))
    made._content = content or b""  # already decoded: the constructor would apply Content-Encoding once more
    return made
