"""``urllib.error.HTTPError``, an exception that is also the response: kept by content, rebuilt by its own constructor.

Its attributes are answered by the file within, so that one filled without its constructor breaks at every question.
"""

import io
import sys
from typing import Any, Final

from spanreplay.content._http import UNREAD
from spanreplay.content.urllib_bodies import Arriving, decoded

_OWN: Final = frozenset({"code", "msg", "hdrs", "fp", "filename", "file", "name", "delete", "headers", "url", "status", "_closer"})
"""What its constructor sets."""
_NOT_ALL: Final = "the rest of its body, which nobody had read"
LACKS: Final = (UNREAD, _NOT_ALL)
"""What of an error may not be there, see :func:`error_parts`."""


def http_error() -> Any:
    """Return the class, or ``None`` where nobody has imported it."""
    return getattr(sys.modules.get("urllib.error"), "HTTPError", None)


def is_http_error(cls: type) -> bool:
    """Tell whether it is the class or one made of it."""
    base = http_error()
    return base is not None and issubclass(cls, base)


def error_parts(value: Any) -> tuple[dict[str, Any], str]:
    """Return what its constructor takes, and what of it is not there, if anything: what has not come of a body is not waited for."""
    headers = value.hdrs
    if headers is not None and type(headers) is not dict:
        headers = [[str(name), str(item)] for name, item in headers.items()]
    body, lacks = _body(value.fp)
    parts = {"url": value.filename, "code": value.code, "msg": value.msg, "headers": headers}
    return {**parts, "content": body}, lacks


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


def _body(file: Any) -> tuple[bytes | None, str]:
    inner = getattr(file, "fp", file)
    if inner is None or getattr(inner, "closed", False):  # of an HTTPResponse: all of it is read
        return b"", ""
    arriving = getattr(inner, "raw", None)
    if isinstance(arriving, Arriving):
        body, whole = arriving.body(arriving.rest(file))
        return body, "" if whole else _NOT_ALL
    if not isinstance(inner, io.BytesIO):
        return None, UNREAD
    here = inner.getvalue()[inner.tell() :]
    if hasattr(file, "chunked"):
        body, whole = decoded(vars(file), here)
        return body, "" if whole else _NOT_ALL
    return here, ""
