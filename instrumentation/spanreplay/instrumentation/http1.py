"""HTTP/1.1 responses on the wire: made of a record for clients that parse the wire themselves, and taken apart as they arrive.

Format: RFC 9112, section 6 (message body) and section 7.1 (chunked transfer coding).
"""

import re
from collections.abc import Iterator
from typing import Final

from spanreplay.instrumentation.http_body import Headers, header
from spanreplay.instrumentation.http_reply import Reply

LAST_CHUNK: Final = b"0\r\n\r\n"
MAX_HEAD: Final = 1_048_576
"""Bytes of a response head above which it is given up: no server means that."""

_BREAKS: Final = re.compile(r"[\r\n\0]")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


# ---- from the record to the wire ----------------------------------------------------------------------------------


def is_chunked(headers: Headers) -> bool:
    """Is the body sent in chunks, each with its length?"""
    return "chunked" in header(headers, "transfer-encoding").lower()


def head(given: Reply) -> bytes:
    """Status line and headers, with the empty line that ends them. What no header can hold is left out: the record is not ours."""
    from http.client import responses  # it is loaded by whoever speaks HTTP, and by nobody else when a process starts

    lines = [f"HTTP/1.1 {given.status:03d} {responses.get(given.status, '')}"]
    lines += [f"{name}: {_BREAKS.sub(' ', value)}" for name, value in given.headers if _TOKEN.fullmatch(name)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def pieces(given: Reply) -> Iterator[tuple[bytes, bytes]]:
    """(what goes over the wire, the part of the body in it) for each recorded chunk; a whole body in chunks gets its end."""
    chunked = is_chunked(given.headers)
    for data in given.chunks:
        if data:
            yield (b"%x\r\n%s\r\n" % (len(data), data) if chunked else data), data
    if chunked and given.ending is None and not given.pends:
        yield LAST_CHUNK, b""


# ---- from the wire to the record ----------------------------------------------------------------------------------


class Body:
    """The body of one response, cut out of the bytes of its connection as they arrive. Takes any bytes, raises nothing.

    Args:
        bodyless: the request's method gives a response without a body (HEAD).
    """

    __slots__ = ("_bodyless", "_chunked", "_left", "_pending", "_state")

    def __init__(self, *, bodyless: bool = False) -> None:
        self._bodyless = bodyless
        self._pending = b""
        self._state = "head"
        self._chunked = False
        self._left: int | None = None
        """Bytes left of the body, or of the chunk; ``None``: until the connection closes."""

    def feed(self, data: bytes) -> list[bytes]:
        """The parts of the body in ``data``, one for each chunk of the wire or piece of one."""
        self._pending += data
        found: list[bytes] = []
        while self._pending and self._state != "done" and (self._head() if self._state == "head" else self._part(found)):
            pass
        if self._state == "done":
            self._pending = b""
        return found

    def _head(self) -> bool:
        block, end, rest = self._pending.partition(b"\r\n\r\n")
        if not end:
            if len(block) > MAX_HEAD:
                self._state = "done"
            return False
        self._pending = rest
        status, _, lines = block.decode("latin-1").partition("\r\n")
        code = status.split(" ")[1] if status.count(" ") else ""
        if code.startswith("1") and code != "101":
            return True  # another head follows
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines.split("\r\n"))]
        self._chunked = is_chunked(headers)
        length = header(headers, "content-length").split(",")[0].strip()
        self._left = 0 if self._chunked else int(length) if length.isdecimal() else None
        empty = self._bodyless or code in ("101", "204", "304") or (not self._chunked and self._left == 0)
        self._state = "done" if empty else "size" if self._chunked else "data"
        return True

    def _part(self, found: list[bytes]) -> bool:
        if self._state == "size":
            return self._size()
        left = self._left
        data = self._pending if left is None else self._pending[:left]
        self._pending = self._pending[len(data) :]
        found.append(data)
        if left is not None:
            self._left = left - len(data)
            if self._left == 0:
                self._state = "size" if self._chunked else "done"
        return True

    def _size(self) -> bool:
        """The line with the length of the next chunk; before it, the line break that ends the last one."""
        line, end, rest = self._pending.removeprefix(b"\r\n").partition(b"\r\n")
        if not end or self._pending == b"\r":
            return False
        self._pending = rest
        try:
            self._left = int(line.partition(b";")[0].strip(), 16)
        except ValueError:
            self._state = "done"
            return False
        self._state = "data" if self._left > 0 else "done"
        return True
