"""Reading a journal while its writer may still be at it."""

import io
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Self, TypeVar
from zlib import crc32

from spanreplay.store.brought import HEAD, parted
from spanreplay.store.encoding import Json, written_map
from spanreplay.store.form import ATTRIBUTES, Form

JOURNAL_VERSION: Final = 3
"""What is written. Version 1 had no ``text`` records, version 2 no lines of a record with its texts."""
TYPE: Final = "t"
LOST: Final = "lost"
"""In a span, close, patch or log record: how many of its attributes could not be kept."""

SPARE: Final = "spare"
"""In a ``drop`` record: it is the spare line, see :mod:`spanreplay.store.spare_line`, which counts when the writer has ended."""

_Record = TypeVar("_Record")
_BUFFER: Final = 262_144
_CRC_DIGITS: Final = 8
_BODY_AT: Final = _CRC_DIGITS + 1
_decode: Final = json.JSONDecoder().decode
_scan: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # it has been there since Python 2.6
_TEXT: Final = '{"t":"text","d":"'
_TEXT_BYTES: Final = _TEXT.encode("ascii")
_SPAN_BYTES: Final = tuple(f'{{"{TYPE}":"{kind}"'.encode("ascii") for kind in ("span", "open", "close", "patch"))
_ATTRIBUTES: Final = f',"{ATTRIBUTES}":'
_PLACE: Final = 0
"""What stands where the attributes were while the rest of a line is read: theirs is never a number."""


class JournalReader(Iterator[tuple[int, Form]]):
    """Iterates over the records of one journal file from a byte offset: ``(offset after the record, record)``; not over the spare line.

    A line whose checksum or JSON is wrong, or whose content is not what its digest says, is skipped and counted. A last line without its
    newline is left for the next time, and so is what is written after the reader was made: a fast writer cannot keep it for ever.

    Args:
        path: the journal file.
        offset: where to start, a value that an earlier reader gave.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.offset = offset
        """Bytes that need not be read again."""
        self.bad_lines = 0
        self._forms: Iterator[tuple[int, Form]] | None = None
        self._file: BinaryIO = path.open("rb", buffering=_BUFFER)
        self._end = self._file.seek(0, io.SEEK_END)
        self._file.seek(offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> tuple[int, Form]:
        if self._forms is None:
            self._forms = self.records(parse_body)
        return next(self._forms)

    def records(self, parse: "Callable[[bytes], Form | _Record | None]") -> "Iterator[tuple[int, Form | _Record]]":
        """The same, each as ``parse`` makes it of its JSON, where that is not a text: of JSON that is wrong, ``None``."""
        readline, end = self._file.readline, self._end
        while self.offset < end and (line := readline()).endswith(b"\n"):
            before = self.offset
            self.offset += len(line)
            body = line[_BODY_AT:-1]
            record: Form | _Record | None = None
            try:
                if body.startswith(_TEXT_BYTES):  # its digest covers all of it
                    record = _text_form(body)
                elif _has_checksum(line, body):
                    if body.startswith(HEAD):
                        texts, body = parted(body)
                        for text in texts:
                            yield before, text  # whoever stops here has it again the next time, with its record
                    record = parse(body)
            except ValueError:
                record = None
            if record is not None:
                if isinstance(record, dict) and SPARE in record:
                    continue
                yield self.offset, record
            elif line != b"\n":
                self.bad_lines += 1
        self.close()

    @property
    def left(self) -> int:
        """Bytes that are still to be read."""
        return self._end - self.offset

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_journal(path: Path, offset: int = 0) -> JournalReader:
    """The records of a journal from ``offset`` on; see :class:`JournalReader`."""
    return JournalReader(path, offset)


def parse_line(line: bytes) -> Form | None:
    """The record of one line, ``None`` if the line, or the content in it, is not what was written.

    The attributes of a span, where they are as a database column has them, are a :class:`~spanreplay.store.encoding.WrittenMap`.
    """
    body = line[_BODY_AT:-1]
    try:
        if body.startswith(_TEXT_BYTES):  # its digest covers all of it
            return _text_form(body)
        return parse_body(body) if _has_checksum(line, body) else None
    except ValueError:
        return None


def _has_checksum(line: bytes, body: bytes) -> bool:
    return int(line[:_CRC_DIGITS], 16) == crc32(body) and line[_CRC_DIGITS:_BODY_AT] == b" "


def parse_body(body: bytes) -> Form | None:
    """The record whose JSON this is; see :func:`parse_line`."""
    try:
        if body.startswith(_SPAN_BYTES):
            from spanreplay.store.span_lines import span_form

            form = span_form(body)
            if form is not None:
                return form
        form = _form(body.decode())
    except (ValueError, RecursionError, StopIteration):
        return None
    return form if isinstance(form, dict) and isinstance(form.get(TYPE), str) and _is_what_it_says(form) else None


def _form(text: str) -> Json:
    start = text.find(_ATTRIBUTES)
    if start < 0 or "\\u" in text:  # characters beyond ASCII are escaped here, and not in a column
        return _decode(text)
    start += len(_ATTRIBUTES)
    attributes, end = _scan(text, start)
    form, _ = _scan(f"{text[:start]}{_PLACE}{text[end:]}", 0)
    if type(form) is not dict or form.get(ATTRIBUTES) != _PLACE or type(attributes) is not dict:  # it was that of an event
        return _decode(text)
    form[ATTRIBUTES] = written_map(attributes, text[start:end])
    return form


def _is_what_it_says(form: Form) -> bool:
    """Whether the content of a record has its digest. A checksum is made anew by whoever changes a line; what is loaded stays for good."""
    kind = form[TYPE]
    if kind not in ("blob", "resource"):
        return True
    content = form.get("json" if kind == "resource" else "text", form.get("data"))
    if not isinstance(content, str):
        return True  # no content at all: the loader says what is wrong with it
    try:
        data = b64decode(content, validate=True) if kind == "blob" and "text" not in form else content.encode()
    except ValueError:
        return True
    return form.get("d") == "sha256:" + sha256(data).hexdigest()


def text_line(digest: str, text: bytes) -> bytes:
    """A record that brings a text, in UTF-8 and without a line feed: it follows the JSON as it is."""
    return b'%s%s"}%s' % (_TEXT_BYTES, digest.encode("ascii"), text)


def _text_form(line: bytes) -> Form | None:
    end = line.find(b'"', len(_TEXT))
    if line[end : end + 2] != b'"}':
        return None
    digest, data = line[len(_TEXT) : end].decode("ascii"), line[end + 2 :]
    if digest != "sha256:" + sha256(data).hexdigest():
        return None
    return {TYPE: "blob", "d": digest, "text": data.decode(), "n": len(data)}
