"""``urllib.error.HTTPError``, an exception that is also the response: kept by content, rebuilt by its own constructor.

Its attributes are answered by the file within, so that one filled without its constructor breaks at every question.
"""

import io
import sys
from typing import Any, Final

_OWN: Final = frozenset({"code", "msg", "hdrs", "fp", "filename", "file", "name", "delete", "headers", "url", "status", "_closer"})
"""What its constructor sets."""


def http_error() -> Any:
    """Return the class, or ``None`` where nobody has imported it."""
    return getattr(sys.modules.get("urllib.error"), "HTTPError", None)


def is_http_error(cls: type) -> bool:
    """Tell whether it is the class or one made of it."""
    base = http_error()
    return base is not None and issubclass(cls, base)


def error_parts(value: Any) -> tuple[dict[str, Any], bool]:
    """Return what its constructor takes, and whether the body is there: one that waits on a connection is left unread."""
    headers = value.hdrs
    if headers is not None and type(headers) is not dict:
        headers = [[str(name), str(item)] for name, item in headers.items()]
    body = _body(value.fp)
    parts = {"url": value.filename, "code": value.code, "msg": value.msg, "headers": headers}
    return {**parts, "content": body}, body is not None or value.fp is None


def beside(value: Any) -> dict[str, Any]:
    """Return the attributes that the agent has added: not those of the constructor, nor methods of the file, which stay once asked for."""
    return {name: item for name, item in vars(value).items() if name not in _OWN and not hasattr(value.fp, name)}


def has_own_args(value: Any) -> bool:
    """Tell whether its ``args`` are others than what the constructor took, which are made again from the parts."""
    return not (len(value.args) == len(("url", "code", "msg", "hdrs", "fp")) and value.args[3] is value.hdrs)


def restore_error(cls: Any, parts: dict[str, Any]) -> Any:
    """Build the error of the values of its parts; its body can be read."""
    headers = parts["headers"]
    if isinstance(headers, list):
        from http.client import HTTPMessage

        message = HTTPMessage()
        for name, item in headers:
            message[name] = item
        headers = message
    given = (parts["url"], parts["code"], parts["msg"], headers, io.BytesIO(parts.get("content") or b""))
    made = cls.__new__(cls, *given)
    http_error().__init__(made, *given)
    made.args = given
    return made


def _body(file: Any) -> bytes | None:
    if isinstance(file, io.BytesIO):
        return b"" if file.closed else file.getvalue()[file.tell() :]
    inner = getattr(file, "fp", file)  # of an HTTPResponse: None once all of it is read
    if inner is None:
        return b""
    return _body(inner) if isinstance(inner, io.BytesIO) else None
