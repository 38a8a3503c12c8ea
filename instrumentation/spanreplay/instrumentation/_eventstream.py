"""Event streams of AWS, as Bedrock streams: binary messages, each with its length, headers, payload and checksums.

Format: ``application/vnd.amazon.eventstream``, <https://smithy.io/2.0/aws/amazon-eventstream.html>. A message is total length (4 bytes,
big endian), length of the headers (4), CRC-32 of these eight (4), headers, payload, CRC-32 of all before (4). A header is the length of
its name (1), the name, its type (1) and its value; of a string (type 7) the value is its length (2) and UTF-8.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Final
from zlib import crc32

from spanreplay.instrumentation._lenient import loads
from spanreplay.instrumentation._sse import Frames

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

_PRELUDE: Final = 12
_SMALLEST: Final = 16
_STRING: Final = 7
_SIZES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header value to its size in bytes; 6 (bytes) and 7 (string) say theirs."""


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", _SMALLEST + len(head) + len(payload), len(head))
    message = prelude + struct.pack(">I", crc32(prelude)) + head + payload
    return message + struct.pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode("ascii", "replace")[:255], value.encode("utf-8", "replace")[:65_535]
    return bytes([len(key)]) + key + bytes([_STRING]) + struct.pack(">H", len(text)) + text


def event(name: str, payload: bytes) -> bytes:
    """A message that is an event with a JSON payload."""
    return encode({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, payload)


def messages(body: bytes) -> Iterator[tuple[dict[str, str], bytes] | None]:
    """(string headers, payload) of each whole message; ``None``, and the end, at one that is broken. One that is cut is left out."""
    at = 0
    while len(body) - at >= _SMALLEST:
        total, size = struct.unpack_from(">II", body, at)
        sound = crc32(body[at : at + 8]) == struct.unpack_from(">I", body, at + 8)[0]
        if not sound or total < _SMALLEST + size:
            yield None
            return
        if total > len(body) - at:
            return
        message = body[at : at + total]
        if crc32(message[:-4]) != struct.unpack(">I", message[-4:])[0]:
            yield None
            return
        yield _headers(message[_PRELUDE : _PRELUDE + size]), message[_PRELUDE + size : -4]
        at += total
    if 0 < len(body) - at < _PRELUDE or not body:
        return
    if len(body) - at >= _PRELUDE and crc32(body[at : at + 8]) != struct.unpack_from(">I", body, at + 8)[0]:
        yield None


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at + 2 <= len(data):
        name = data[at + 1 : at + 1 + data[at]].decode("utf-8", "replace")
        at += 1 + data[at]
        kind = data[at] if at < len(data) else -1
        at += 1
        size = _SIZES.get(kind)
        if size is None:
            size = int.from_bytes(data[at : at + 2], "big")
            at += 2
        if kind == _STRING:
            found[name] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return found


def frames(body: bytes) -> Frames:
    """Reads a stream of JSON events. An exception or error message is an object ``{"error": {"type", "message"}}``."""
    objects: list[tuple[str, dict[str, object]]] = []
    problem: str | None = None
    for message in messages(body):
        if message is None:
            problem = problem or f"message {len(objects) + 1} is no message of an event stream, or broken"
            break
        headers, payload = message
        try:
            value = loads(payload) if payload else {}
        except ValueError as error:
            problem = problem or f"message {len(objects) + 1} is not JSON: {error}"
            continue
        failure = _failure(headers, value)
        if failure is not None:
            objects.append(("error", failure))
        elif isinstance(value, dict):
            objects.append((headers.get(":event-type", ""), value))
        else:
            problem = problem or f"message {len(objects) + 1} is {type(value).__name__}, not an object"
    return Frames(objects=tuple(objects), done=False, problem=problem)


def _failure(headers: Mapping[str, str], value: object) -> dict[str, object] | None:
    kind = headers.get(":message-type")
    if kind == "exception":
        said = value.get("message", value.get("Message")) if isinstance(value, dict) else None
        return {"error": {"type": headers.get(":exception-type", "exception"), "message": said if isinstance(said, str) else str(value)}}
    if kind == "error":
        return {"error": {"type": headers.get(":error-code", "error"), "message": headers.get(":error-message", "")}}
    return None


def last_name(tail: bytes) -> str:
    """The event type of the message that ends a stream, ``error`` for one that reports one, empty where the stream is cut.

    Args:
        tail: the end of the stream, holding its last message whole.
    """
    found = last(tail)
    if found is None:
        return ""
    return "error" if found[0].get(":message-type") in ("exception", "error") else found[0].get(":event-type", "")


def last(tail: bytes) -> tuple[dict[str, str], bytes] | None:
    """Headers and payload of the message that ends a stream; ``None`` where the stream is cut."""
    size = len(tail)
    for at in range(size - _SMALLEST, -1, -1):
        if int.from_bytes(tail[at : at + 4], "big") == size - at and crc32(tail[at : at + 8]) == int.from_bytes(
            tail[at + 8 : at + 12], "big"
        ):
            return next(messages(tail[at:]), None)
    return None


# ---- streams in streams --------------------------------------------------------------------------------------------


def unwrapped(found: Frames) -> Frames:
    """The events in the ``chunk`` messages of Bedrock's InvokeModelWithResponseStream: ``{"bytes": base64 of a model's own JSON}``."""
    objects: list[tuple[str, dict[str, object]]] = []
    problem = found.problem
    for name, value in found.objects:
        if name != "chunk":
            objects.append((name, value))
            continue
        event = inner(value)
        if event is None:
            problem = problem or f"chunk {len(objects) + 1} holds no JSON object"
        else:
            kind = event.get("type")
            objects.append((kind if isinstance(kind, str) else "", event))
    return Frames(objects=tuple(objects), done=found.done, problem=problem)


def inner(chunk: object) -> dict[str, object] | None:
    """The event in a ``chunk`` message."""
    packed = chunk.get("bytes") if isinstance(chunk, dict) else None
    try:
        event = loads(b64decode(packed, validate=True)) if isinstance(packed, str) else None
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def wrapped(data: bytes) -> bytes:
    """A ``chunk`` message around an event."""
    return event("chunk", b'{"bytes":"' + b64encode(data) + b'"}')
