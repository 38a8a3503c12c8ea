"""What the Python SDK prints: ``ConsoleSpanExporter`` and ``ConsoleLogRecordExporter``, also in the middle of a log.

Each record is ``to_json()``, a JSON object over many lines, or on one. Other lines are passed over. What a log viewer puts before each line
(``agent-1  | ``) is taken away, as long as it is equally long on all lines of an object.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from spanreplay.replay.inputs.formats.notes import Notes
from spanreplay.replay.inputs.formats.plain import at, tell
from spanreplay.replay.inputs.formats.plain_heads import form
from spanreplay.replay.inputs.formats.plain_ids import Ids
from spanreplay.replay.inputs.formats.plain_span import TABLE, Reading, read_record
from spanreplay.replay.inputs.input_stream import document_limit
from spanreplay.replay.inputs.json_stream import BOM
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.spans.errors import FormatError
from spanreplay.spans.record import Record

NAME: Final = "console"

_MARK: Final = '"trace_id"'
_FIRST: Final = re.compile(r'\s+"')
"""How the second line of an object goes on behind what is put before each line."""
_FIRST_FIELD: Final = re.compile(r'\{\n\s+"(?:name|body)":')
"""How a span or a log record begins, of which no more is known to be left."""
_DECODER: Final = json.JSONDecoder()


def handles(head: bytes) -> bool:
    """Whether somewhere in the beginning is a span or log record as the SDK prints it."""
    return form(head) == "console"


class _Text(NamedTuple):
    """An object as it was printed, or as much of it as there is."""

    text: str
    line: int
    whole: bool


def read(stream: BinaryIO, where: str, report: ReadReport) -> Iterator[Record]:
    """Reads the records object by object; see :class:`spanreplay.replay.inputs.format.Source`."""
    problems = report.problems(where)
    reading = Reading(Ids(), Notes(report, TABLE), [])
    for text, number, whole in _objects(stream, document_limit(stream)):
        place = f"line {number}"
        if not whole:
            report.reject(where, place, "a whole span", "one that is cut")
            continue
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            report.reject(where, place, "a span as JSON", f"{type(error).__name__}: {str(error)[:80]}")
            continue
        if not isinstance(raw, dict) or not _is_record(raw):
            continue
        try:
            records = read_record(raw, reading)
        except FormatError as error:
            reading.notes.forget()
            reading.faults.clear()
            report.reject(where, at(place, error.where), error.expected, error.found)
            continue
        reading.notes.kept()
        tell(reading.faults, place, problems, records[0])
        yield from records


def _is_record(raw: dict[str, Any]) -> bool:
    return isinstance(raw.get("context"), dict) or ("trace_id" in raw and "span_id" in raw)


def _objects(stream: BinaryIO, limit: int) -> Iterator[_Text]:
    """The objects of the text that may be records, each once it is whole."""
    open_: _Open | None = None
    number = 0
    while line := stream.readline(limit):
        number += 1
        text = (line.removeprefix(BOM) if number == 1 else line).decode("utf-8", "replace").rstrip("\r\n")
        if open_ is not None and open_.goes_on(text):
            if open_.takes(text, limit):
                yield from open_.finished()
                open_ = None
            continue
        if open_ is not None:
            yield from open_.finished()
            open_ = None
        stripped = text.rstrip()
        if stripped.endswith("{") and '"' not in stripped:
            open_ = _Open(len(stripped) - 1, number)
        elif _MARK in text:
            yield from (_Text(found, number, True) for found in _on_one_line(text))
    if open_ is not None:
        yield from open_.finished()


class _Open:
    """An object that has begun."""

    def __init__(self, prefix: int, line: int) -> None:
        self._prefix = prefix
        self._line = line
        self._lines = ["{"]
        self._size = 0
        self._whole = False

    def goes_on(self, text: str) -> bool:
        """Whether the object may go on in or after this line: it does not where a new one begins, or where it never was one."""
        inside = text[self._prefix :]
        if self._prefix and len(self._lines) == 1 and not _FIRST.match(inside):
            return False
        return inside.rstrip() != "{"

    def takes(self, text: str, limit: int) -> bool:
        """Takes a line, if it belongs here; gives whether the object is whole, or too long, with it."""
        inside = text[self._prefix :]
        if inside[:1] not in (" ", "\t", "}"):
            # Another line of the log, written in between.
            return False
        self._lines.append(inside)
        self._size += len(inside)
        self._whole = inside.rstrip() == "}"
        return self._whole or self._size > limit

    def finished(self) -> Iterator[_Text]:
        """The object, if it may be a record."""
        text = "\n".join(self._lines)
        if _MARK in text or (not self._whole and _FIRST_FIELD.match(text)):
            yield _Text(text, self._line, self._whole)


def _on_one_line(text: str) -> Iterator[str]:
    """The objects on a line, whatever is before and between them."""
    at_ = text.find("{")
    while at_ >= 0:
        try:
            _, end = _DECODER.raw_decode(text, at_)
        except (ValueError, RecursionError):
            end = at_ + 1
        else:
            yield text[at_:end]
        at_ = text.find("{", end)
