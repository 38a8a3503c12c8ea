"""A protobuf message whose texts are cut in the middle of a character, made readable.

Tempo cuts every text at a number of bytes (``distributor.max_attribute_bytes``), and protobuf refuses a message with one text that is no
UTF-8 any more, so that one long prompt would cost its whole span.
"""

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from spanreplay.spans._wire import LEN, fields
from spanreplay.spans.errors import FormatError

_MAX_DEPTH: Final = 100


def repaired(data: bytes, descriptor: Any) -> bytes | None:
    """The message with U+FFFD for what is no character; ``None`` if nothing was wrong with its texts, or more than that.

    Args:
        data: A whole message.
        descriptor: The protobuf descriptor of the message.
    """
    try:
        made = _message(memoryview(data), descriptor, 0)
    except FormatError:
        return None
    return made if made != data else None


def _message(data: memoryview, descriptor: Any, depth: int) -> bytes:
    out = bytearray()
    found = list(fields(data))
    ends = [*(field.at for field in found[1:]), len(data)]
    for field, end in zip(found, ends, strict=False):
        raw = data[field.at : end]
        known = descriptor.fields_by_number.get(field.number)
        inner: bytes | None = None
        if known is not None and field.wire == LEN and field.complete and depth < _MAX_DEPTH:
            if known.type == FieldDescriptor.TYPE_STRING:
                inner = bytes(field.payload).decode("utf-8", "replace").encode()
            elif known.message_type is not None:
                inner = _message(field.payload, known.message_type, depth + 1)
        if inner is None or inner == field.payload:
            out += raw
        else:
            out += _varint(field.number << 3 | LEN) + _varint(len(inner)) + inner
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
