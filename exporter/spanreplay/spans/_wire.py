"""The protobuf wire format, as far as it is needed to walk the groups of an OTLP message and to tell what a message is.

Form: <https://protobuf.dev/programming-guides/encoding/>. Walking by hand keeps one damaged span from costing the whole message, and
tells a cut message's whole records from its last, half one.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from spanreplay.spans.errors import FormatError

VARINT: Final = 0
FIXED64: Final = 1
LEN: Final = 2
FIXED32: Final = 5

Signal: TypeAlias = Literal["spans", "logs", "other", "empty"]

RESOURCE_GROUPS: Final = 1
"""Field of ``TracesData``, ``LogsData`` and the export requests that holds the resource groups."""
SCOPE_GROUPS: Final = (2, 1000)
"""Fields of a resource group that hold scope groups; 1000 is that of OTLP before 0.16, of equal layout."""
RECORDS: Final = 2
SCHEMA_URL: Final = 3
_TAG_2: Final = b"\x12"
_ADDED: Final = 16
"""The lowest field number that is let pass without being known: ``1000`` was in old versions, private ones are higher still."""
_GROUP_FIELDS: Final = (1, 2, 3, 1000)

_MAX_VARINT: Final = 10


class Field(NamedTuple):
    """One field of a message."""

    number: int
    wire: int
    payload: memoryview
    """The bytes of a length-delimited field, as far as they are there; empty for other wire types."""
    complete: bool
    """Whether the message is long enough to hold the whole field."""
    at: int
    """Byte position of the field's tag in the message."""


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Gives the number and the position behind it; a position of -1 when the data ends within."""
    value = shift = 0
    for index in range(at, min(at + _MAX_VARINT, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
    if len(data) - at < _MAX_VARINT:
        return 0, -1
    raise FormatError("", "a protobuf number of at most 10 bytes", "more")


def fields(data: memoryview) -> Iterator[Field]:
    """Walks the fields of a message. A field the data ends in is given with ``complete=False``, and is the last.

    Raises:
        FormatError: The bytes are no protobuf message; ``where`` is ``byte N`` within it.
    """
    at = 0
    while at < len(data):
        start = at
        try:
            tag, at = _varint(data, at)
        except FormatError as error:
            raise error.within(f"byte {start}") from None
        number, wire = tag >> 3, tag & 7
        if at < 0:
            yield Field(0, LEN, data[:0], False, start)
            return
        if number == 0 or wire not in (VARINT, FIXED64, LEN, FIXED32):
            raise FormatError(f"byte {start}", "a protobuf field", f"the tag {tag:#x}")
        size = 8 if wire == FIXED64 else 4
        if wire in (VARINT, LEN):
            try:
                size, at = _varint(data, at)
            except FormatError as error:
                raise error.within(f"byte {start}") from None
            if at < 0:
                yield Field(number, wire, data[:0], False, start)
                return
            if wire == VARINT:
                size = 0
        end = at + size
        yield Field(number, wire, data[at:end] if wire == LEN else data[:0], end <= len(data), start)
        at = end


def signal(data: memoryview) -> Signal:
    """Tells spans from log records by the wire types of the first record: the messages carry no name of their own.

    ``Span`` has text in fields 1 and 2 (ids) and fixed64 times in 7 and 8; ``LogRecord`` a fixed64 time in 1 or 11 and a number in 2;
    a metric has its data in a message in 5, 7, 9, 10 or 11, which both others have no room for beside those.

    Raises:
        FormatError: The bytes are no such message.
    """
    for group in fields(data):
        if group.number >= _ADDED:
            continue
        if group.number != RESOURCE_GROUPS or group.wire != LEN:
            raise FormatError(f"byte {group.at}", "a resource group (field 1)", f"field {group.number}")
        try:
            found = _group_signal(group.payload)
        except FormatError:
            continue
        if found != "empty":
            return found
    return "empty"


def _group_signal(group: memoryview) -> Signal:
    for scoped in fields(group):
        if scoped.number not in SCOPE_GROUPS or scoped.wire != LEN:
            continue
        for record in fields(scoped.payload):
            if record.number == RECORDS and record.wire == LEN:
                found = _record_signal(record.payload)
                if found != "empty":
                    return found
    return "empty"


def _record_signal(record: memoryview) -> Signal:
    ids = False
    last: Signal = "empty"
    for field in fields(record):
        match field.number, field.wire:
            case (1 | 11, 1) | (2, 0):
                return "logs"
            case (7 | 8, 1):
                return "spans"
            case (1, 2):
                ids = len(field.payload) in (0, 16)
                last = "spans" if ids else "other"
            case (3, 2) if not ids:
                last = "other"
            case (6 | 9, 2) if last == "empty":
                last = "logs"
    return last


def looks_like(head: bytes, *, whole: bool) -> bool:
    """Whether the beginning of a message is that of an OTLP traces or logs message.

    Checks the nesting that every such message has: resource groups only, each holding only a resource, scope groups and a schema url, and
    what later or private versions add under higher numbers.

    Args:
        head: The first bytes of the message.
        whole: Whether ``head`` is the whole message, so that nothing in it may be cut.
    """
    seen = False
    if _TAG_2 not in head:
        # Scope groups and attribute values are field 2: without one there is no record, and text has no such byte.
        return False
    try:
        for group in fields(memoryview(head)):
            if group.number == 0:
                return seen and not whole
            if group.number >= _ADDED:
                continue
            if group.number != RESOURCE_GROUPS or group.wire != LEN or (whole and not group.complete):
                return False
            for inner in fields(group.payload):
                if not inner.complete and (whole or group.complete):
                    return False
                if 0 < inner.number < _ADDED or inner.number in _GROUP_FIELDS:
                    if inner.number not in _GROUP_FIELDS or inner.wire != LEN:
                        return False
                    seen = True
    except FormatError:
        return False
    return seen
