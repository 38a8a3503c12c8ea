"""OTLP protobuf: one raw message, such as a saved request body, or the Collector's file exporter with ``format: proto``.

The latter writes each message behind its length, 4 bytes, big-endian (README of the ``fileexporter``, v0.159). A raw message begins with
byte 0x0a, which as the first byte of a length would mean a message of more than 160 MiB. Tempo's answers in protobuf have one more message
around it.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

from spanreplay.replay.inputs.formats.otlp_answers import Answer, note_part, note_tempo, unwrapped
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans._wire import looks_like
from spanreplay.spans.errors import FormatError
from spanreplay.spans.otlp_proto import Heads, decode
from spanreplay.spans.record import Record

NAME: Final = "otlp-proto"

_RAW: Final = b"\x0a"
_LENGTH: Final = 4


def handles(head: bytes) -> bool:
    """Whether the bytes begin with a traces or logs message, or with one behind its length."""
    if head[:1] == _RAW:
        return looks_like(head, whole=False) or unwrapped(memoryview(head), whole=False) is not None
    at = 0
    while len(head) >= at + _LENGTH:
        size = int.from_bytes(head[at : at + _LENGTH], "big")
        at += _LENGTH
        if size:
            return looks_like(head[at : at + size], whole=at + size <= len(head))
    return False


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the records message by message; see :class:`spanreplay.replay.inputs.format.Source`."""
    limit = document_limit(stream)
    header = stream.read(_LENGTH)
    if header[:1] == _RAW:
        data = header + stream.read(limit)
        if len(data) > limit:
            raise FormatError("byte 0", f"a message of at most {limit} bytes", "a longer one")
        yield from _raw(data, where, report)
        return
    at = 0
    heads = Heads()
    while header:
        size = int.from_bytes(header, "big")
        place = f"byte {at}"
        if len(header) < _LENGTH:
            report.damaged(where, place, "the length of a message, 4 bytes", f"{len(header)} bytes at the end of the file")
            return
        if size > limit:
            report.damaged(where, place, f"a message of at most {limit} bytes", f"one of {size} bytes")
            return
        data = stream.read(size)
        try:
            yield from decode(data, place, report.problems(where), heads=heads)
        except FormatError as error:
            report.damaged(where, error.where, error.expected, error.found)
        if len(data) < size:
            report.damaged(where, place, f"a message of {size} bytes", f"{len(data)} bytes before the end of the file")
            return
        at += _LENGTH + size
        header = stream.read(_LENGTH)


def _raw(data: bytes, where: str, report: ReadReport) -> Iterator[Record]:
    found = unwrapped(memoryview(data))
    answer = found or Answer(data)
    before = report.spans
    for record in decode(bytes(answer.data), "", report.problems(where)):
        if found is not None:
            note_tempo(report, record)
        yield record
    if answer.partial:
        note_part(report, report.spans - before, answer.message)
