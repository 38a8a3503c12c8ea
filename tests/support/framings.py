"""The three ways in which model APIs frame their streams: taken apart and put together, for tests that damage them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from spanreplay.instrumentation import _eventstream, _ndjson, _sse


class Framing(Protocol):
    """A way to frame a stream."""

    TYPE: str
    BROKEN: bytes
    """An event of this framing whose data is no JSON."""

    def load(self, file: Path) -> bytes:
        """The stream that a fixture describes."""
        ...

    def split(self, stream: bytes) -> list[bytes]:
        """Its events, each with all its bytes."""
        ...

    def data(self, stream: bytes) -> list[str]:
        """The data of its events."""
        ...

    def render(self, data: Sequence[str]) -> bytes:
        """A stream of such data."""
        ...


class Sse:
    """Server-sent events."""

    TYPE = "text/event-stream"
    BROKEN = b"data: {oops\n\n"

    def load(self, file: Path) -> bytes:
        """As it is."""
        return file.read_bytes()

    def split(self, stream: bytes) -> list[bytes]:
        """Blocks."""
        return [block + b"\n\n" for block in stream.split(b"\n\n")[:-1]]

    def data(self, stream: bytes) -> list[str]:
        """Their ``data`` fields."""
        return [found.data for found in _sse.events(stream)]

    def render(self, data: Sequence[str]) -> bytes:
        """Events without names."""
        return _sse.render(("", text) for text in data)


class Ndjson:
    """An object a line."""

    TYPE = _ndjson.CONTENT_TYPE
    BROKEN = b"{oops\n"

    def load(self, file: Path) -> bytes:
        """As it is."""
        return file.read_bytes()

    def split(self, stream: bytes) -> list[bytes]:
        """Lines."""
        return stream.splitlines(keepends=True)

    def data(self, stream: bytes) -> list[str]:
        """Lines."""
        return stream.decode().splitlines()

    def render(self, data: Sequence[str]) -> bytes:
        """Lines."""
        return "".join(text + "\n" for text in data).encode()


class EventStream:
    """Binary messages. The data of one is ``{name: payload}``; a fixture has ``[name, payload]`` a line, ``!`` before an exception."""

    TYPE = _eventstream.CONTENT_TYPE
    BROKEN = _eventstream.event("contentBlockDelta", b"{oops")

    def load(self, file: Path) -> bytes:
        """Written as messages."""
        return b"".join(self._message(*json.loads(line)) for line in file.read_text("utf-8").splitlines())

    @staticmethod
    def _message(name: str, payload: object) -> bytes:
        body = json.dumps(payload).encode()
        if name.startswith("!"):
            return _eventstream.encode({":exception-type": name[1:], ":message-type": "exception"}, body)
        return _eventstream.event(name, body)

    def split(self, stream: bytes) -> list[bytes]:
        """Messages."""
        found = []
        while stream:
            size = int.from_bytes(stream[:4], "big")
            found.append(stream[:size])
            stream = stream[size:]
        return found

    def data(self, stream: bytes) -> list[str]:
        """Name and payload."""
        return [json.dumps({name: value}) for name, value in _eventstream.frames(stream).objects]

    def render(self, data: Sequence[str]) -> bytes:
        """Messages."""
        made = []
        for text in data:
            value = json.loads(text)
            name, payload = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("metadata", value)
            made.append(_eventstream.event(name, json.dumps(payload).encode()))
        return b"".join(made)


FRAMINGS: dict[str, Framing] = {"sse": Sse(), "ndjson": Ndjson(), "events": EventStream()}
"""By the extension of a fixture."""
