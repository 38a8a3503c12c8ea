"""Streams of JSON objects, one a line, as Ollama streams. Format: <https://github.com/ndjson/ndjson-spec>."""

from collections.abc import Iterable
from typing import Final

from spanreplay.instrumentation._lenient import dumps, loads
from spanreplay.instrumentation._sse import Frames

CONTENT_TYPE: Final = "application/x-ndjson"


def is_stream(content_type: str, body: bytes) -> bool:
    """Is the body a stream? Decided by content type; by a second line where that is not named."""
    kind = content_type.lower()
    return ("ndjson" in kind and not _is_one_object(body)) or ("json" not in kind and body.lstrip()[:1] == b"{" and b"\n{" in body)


def _is_one_object(body: bytes) -> bool:
    """Is the body one object over several lines?"""
    if b"\n" not in body.strip():
        return False
    try:
        return isinstance(loads(body), dict)
    except ValueError:
        return False


def frames(body: bytes) -> Frames:
    """Reads a stream. A line cut by the end of the stream is no problem, it is left out."""
    objects: list[tuple[str, dict[str, object]]] = []
    problem: str | None = None
    lines = body.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            value = loads(line)
        except ValueError as error:
            if number < len(lines) - 1:
                problem = problem or f"line {number + 1} is not JSON: {error}"
            continue
        if isinstance(value, dict):
            objects.append(("", value))
        else:
            problem = problem or f"line {number + 1} is {type(value).__name__}, not an object"
    if not objects and not problem and body.strip() and not body.lstrip().startswith(b"{"):
        problem = "no JSON in the stream"
    return Frames(objects=tuple(objects), done=False, problem=problem)


def last(tail: bytes) -> dict[str, object]:
    """The object that ends a stream; empty where it is cut.

    Args:
        tail: the end of the stream, holding its last line whole.
    """
    try:
        value = loads(tail.rstrip().rpartition(b"\n")[2])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def render(objects: Iterable[object]) -> bytes:
    """Writes objects as a stream."""
    return "".join(dumps(value) + "\n" for value in objects).encode("utf-8", "replace")
