"""Server-sent events, as model APIs stream them.

Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spanreplay.instrumentation._lenient import dumps, loads

CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
DONE: Final = "[DONE]"
"""Data of the event that ends a stream of the OpenAI family; not JSON."""

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_FIELDS: Final = (b":", b"data:", b"event:", b"id:", b"retry:")
_BLANK_LINES: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event."""

    name: str
    """Value of its ``event`` field, or empty."""
    data: str
    whole: bool = True
    """``False``: the stream ended before the blank line that completes the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """A stream whose data is JSON."""

    objects: tuple[tuple[str, dict[str, object]], ...]
    """(event name, parsed data); the name is the data's ``type`` where the event has none."""
    done: bool
    """``[DONE]`` was seen."""
    problem: str | None
    """What does not parse, or ``None``. An event cut by the end of the stream is no problem, it is left out."""


class Growth:
    """Texts that arrive in pieces, joined once: adding to a string each time costs seconds for an answer of some megabytes."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, str], tuple[dict[str, object], list[str]]] = {}

    def add(self, owner: dict[str, object], field: str, piece: str) -> None:
        """Continues the text ``owner[field]``, which is complete only after :meth:`settle`."""
        key = id(owner), field  # unique while the entry below keeps the owner alive
        if key not in self._pieces:
            begun = owner.get(field)
            self._pieces[key] = (owner, [begun if isinstance(begun, str) else ""])
            owner[field] = ""
        self._pieces[key][1].append(piece)

    def settle(self) -> None:
        """Puts every text in its place."""
        for (_, field), (owner, pieces) in self._pieces.items():
            owner[field] = "".join(pieces)


def is_stream(content_type: str, body: bytes) -> bool:
    """Is the body a stream of events? Decided by content type; by the first bytes where that names neither events nor JSON."""
    kind = content_type.lower()
    if "text/event-stream" in kind:
        return body.lstrip()[:1] != b"{"
    return "json" not in kind and body.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"data:", b"event:"))


def events(body: bytes) -> Iterator[Event]:
    """The events of a stream, in order. Any bytes are accepted; fields other than ``event`` and ``data`` are ignored."""
    decoded = body.decode("utf-8", "replace").removeprefix("\ufeff")
    name, data = "", list[str]()
    lines = _LINE_END.split(decoded) if "\r" in decoded else decoded.split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        if not line:
            if data:
                yield Event(name=name, data="\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:
        yield Event(name=name, data="\n".join(data), whole=False)


def frames(body: bytes) -> Frames:
    """Reads a stream of JSON events."""
    objects: list[tuple[str, dict[str, object]]] = []
    done, seen, problem = False, False, None
    for event in events(body):
        seen = True
        if event.data.strip() == DONE:
            done = True
            continue
        try:
            value = loads(event.data)
        except ValueError as error:
            problem = problem or (f"event {len(objects) + 1} is not JSON: {error}" if event.whole else None)
            continue
        if isinstance(value, dict):
            kind = value.get("type")
            objects.append((event.name or (kind if isinstance(kind, str) else ""), value))
        else:
            problem = problem or f"event {len(objects) + 1} is {type(value).__name__}, not an object"
    if not seen and not any(field.startswith(head) or head.startswith(field) for head in [body.lstrip()[:6]] for field in _FIELDS):
        problem = "no event in the stream"
    return Frames(objects=tuple(objects), done=done, problem=problem)


def last_events(tail: bytes) -> list[Event]:
    """The last two events of a stream, of which its end may have cut the second.

    Args:
        tail: the end of the stream, holding the last event whole.
    """
    end = len(tail.rstrip(b"\r\n"))
    return list(events(tail[_block_start(tail, _block_start(tail, end) - 1) :]))


def last_names(tail: bytes) -> list[str]:
    """What the last two events of a stream are: their names, else their data's ``type``, ``[DONE]``, or ``error``.

    Events that the end of the stream cut are left out unless their data parses.
    """
    names: list[str] = []
    for event in last_events(tail):
        if event.data.strip() == DONE:
            names.append(DONE)
        elif event.name and event.whole:
            names.append(event.name)
        else:
            try:
                value = loads(event.data)
            except ValueError:
                continue
            kind = value.get("type") if isinstance(value, dict) else None
            names.append(kind if isinstance(kind, str) else "error" if isinstance(value, dict) and value.get("error") else event.name)
    return names


def _block_start(stream: bytes, end: int) -> int:
    while end > 0 and stream[end - 1] in b"\r\n":
        end -= 1
    return max((at + len(blank) for blank in _BLANK_LINES if (at := stream.rfind(blank, 0, max(end, 0))) >= 0), default=0)


def render(stream: Iterable[tuple[str, object]]) -> bytes:
    """Writes (event name or empty, data) as a stream; data that is a string is written as it is."""
    blocks = (
        f"{f'event: {name}' + chr(10) if name else ''}data: {data if isinstance(data, str) else dumps(data)}\n\n" for name, data in stream
    )
    return "".join(blocks).encode("utf-8", "replace")
