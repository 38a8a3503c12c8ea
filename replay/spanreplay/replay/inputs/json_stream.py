"""JSON documents out of a stream, however they lie in it: one a line, one pretty-printed, several after each other, an array of them.

One document is held at a time. Blank lines, a byte order mark and CRLF are passed over. A line that is no JSON is left out and counted; of
a document that is cut or damaged, the whole elements of its lists are kept.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, BinaryIO, Final, NamedTuple

from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.inputs.source_losses import CUT_DOCUMENT
from spanreplay.spans.json_parsing import whole_document

_BLANK: Final = (b"\n", b"\r\n")
BOM: Final = b"\xef\xbb\xbf"

_DECODER: Final = json.JSONDecoder()
_GAP: Final = re.compile(r"[\s,\x1e\ufeff]*")
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_TOKEN: Final = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|["{}\[\]:\n]')
_TRACE_ID: Final = re.compile(r'"trace_?[iI][dD]"\s*:\s*"([0-9a-fA-F]{32})"')
_CLOSER: Final = {"{": "}", "[": "]"}

_DEEPEST: Final = 5
_KEY: Final = 128
"""Characters of a key that are looked at."""
_PATHS: Final = 10_000
_TOKENS: Final = 1 << 18
"""Paths that are kept and tokens that are looked at: far more than the first span of any format has, and an end for everything else."""


def key_paths(head: bytes, depth: int = 3) -> frozenset[str]:
    """The paths of object keys at the beginning of a JSON text, which may be cut anywhere; arrays add nothing to a path.

    ``{"trace": {"resourceSpans": [{"resource": …`` gives ``trace``, ``trace.resourceSpans`` and ``trace.resourceSpans.resource``. Empty
    if the text does not begin with an object or an array. A very large head is not looked at further than tells formats apart.

    Args:
        head: The first bytes.
        depth: How many keys a path may have, at most five; deeper ones are passed over.
    """
    return frozenset(path for path, level in _levels(head).items() if level <= depth)


@lru_cache(maxsize=1)  # every source asks about the same head
def _levels(head: bytes) -> Mapping[str, int]:
    """Each path with its number of keys."""
    text = head.removeprefix(BOM).lstrip()
    if text[:1] not in (b"{", b"["):
        return {}
    found: dict[str, int] = {}
    stack: list[_Frame] = []
    string = ""
    damaged = False
    for match in islice(_TOKEN.finditer(text.decode("utf-8", "replace")), _TOKENS):
        mark = match.group()
        if damaged:
            # A line that ends within a string: start anew on the next one.
            if mark == "\n":
                damaged = False
                stack.clear()
        elif mark == '"':
            damaged = True
        elif mark in "{[":
            path, level = (stack[-1].path, stack[-1].level) if stack else ("", 0)
            if stack and stack[-1].opener == "{":
                path, level = _under(stack[-1], string), level + 1
            stack.append(_Frame(mark, path, level))
        elif mark in "}]":
            if stack:
                stack.pop()
        elif mark == ":":
            if stack and (level := stack[-1].level + 1) <= _DEEPEST:
                path = _under(stack[-1], string)
                found[path] = min(level, found.get(path, level))
                if len(found) == _PATHS:
                    break
        elif mark != "\n":
            string = mark[1 : _KEY + 1] if len(mark) > _KEY + 2 else mark[1:-1]
    return found


def _under(frame: "_Frame", key: str) -> str:
    if frame.level >= _DEEPEST:
        return frame.path
    return f"{frame.path}.{key}" if frame.path else key


class _Frame(NamedTuple):
    """An object or array that is open at some point of a text."""

    opener: str
    path: str
    level: int


def whole_elements(text: str, lists: Collection[str]) -> tuple[Any, int] | None:
    """What a cut text holds whole: the document without the last, unfinished element of the lists named ``lists``.

    Args:
        text: The beginning of a JSON document, cut anywhere.
        lists: Names of the arrays whose elements stand for themselves, such as ``spans``.

    Returns:
        The parsed document and how many elements it has, or ``None`` if no such element is whole.
    """
    stack: list[tuple[str, str]] = []
    string = ""
    cut: tuple[int, str] | None = None
    count = 0
    for match in _TOKEN.finditer(text):
        mark = match.group()
        if mark == '"':
            break
        if mark in "{[":
            stack.append((mark, string if stack and stack[-1][0] == "{" else ""))
        elif mark in "}]":
            if not stack or _CLOSER[stack.pop()[0]] != mark:
                break
            if mark == "}" and stack and stack[-1][0] == "[" and stack[-1][1] in lists:
                count += 1
                cut = match.end(), "".join(_CLOSER[opener] for opener, _ in reversed(stack))
        elif len(mark) > 1:
            string = mark[1:-1]
    if cut is None:
        return None
    try:
        return json.loads(text[: cut[0]] + cut[1]), count
    except (ValueError, RecursionError):
        return None


def documents(
    stream: BinaryIO,
    where: str,
    report: ReadReport,
    *,
    limit: int,
    starts: Collection[str] = (),
    lists: Collection[str] = (),
    readers: Sequence[Callable[[bytes], Any]] = (whole_document,),
) -> Iterator[tuple[str, Any]]:
    """Gives every document with its place, ``line N`` (where it begins).

    Args:
        stream: UTF-8 text; bytes that are not are replaced and noted.
        where: Names the input in rejections.
        report: Told about lines and documents left out.
        limit: Bytes that one document may have.
        starts: Keys that a document begins with: how a new one is known while an unfinished one lies before it.
        lists: See :func:`whole_elements`.
        readers: Tried in turn on a line that may be a document; each raises ``ValueError`` or ``RecursionError`` on one that it cannot
            read. ``json.loads`` reads what none of them can.
    """
    reader = _Reader(where, report, frozenset(starts), frozenset(lists))
    number = 0
    while line := stream.readline(limit):
        number += 1
        if line in _BLANK:
            continue
        if len(line) == limit and not line.endswith(b"\n"):
            _skip_line(stream, limit)
            reader.damaged(number, f"a document of at most {limit} bytes", "a longer one")
            continue
        if reader.pending:
            yield from reader.next_line(_text(line, report), number, limit)
        elif (value := _read_by(readers, line)) is not None:
            yield f"line {number}", value
        else:
            yield from reader.line(_text(line, report), number)
    yield from reader.end()


def _read_by(readers: Iterable[Callable[[bytes], Any]], line: bytes) -> Any:
    """What the first reader makes of a line that can read it; ``None`` where none can."""
    for read in readers:
        try:
            return read(line)
        except (ValueError, RecursionError):
            continue
    return None


def _skip_line(stream: BinaryIO, limit: int) -> None:
    while (part := stream.readline(limit)) and not part.endswith(b"\n"):
        pass


def _text(line: bytes, report: ReadReport) -> str:
    try:
        return line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = line.decode("utf-8", "replace")
        report.note("text-replaced", "has bytes that are no UTF-8, replaced by U+FFFD", named=_traces_in(text))
        return text


def _traces_in(text: str) -> list[str]:
    """The ids of traces that a text names, however damaged it is."""
    return [trace_id.lower() for trace_id in _TRACE_ID.findall(text)]


_GAP_SIZE: Final = 64
"""Blanks before a value that are looked over."""


def _is_inside(text: str, at: int) -> bool:
    """Whether a text goes on with a value of its own at a place."""
    return text[max(0, at - _GAP_SIZE) : at].rstrip()[-1:] in ("[", ",", ":")


class _Reader:
    """What is known between the lines: the beginning of a document that is not yet whole."""

    def __init__(self, where: str, report: ReadReport, starts: frozenset[str], lists: frozenset[str]) -> None:
        self.pending: list[str] = []
        self._where = where
        self._report = report
        self._starts = starts
        self._start = re.compile("|".join(rf'\{{"{re.escape(name)}"' for name in sorted(starts)) or r"(?!)")
        self._lists = lists
        self._first_line = 0
        self._depth = 0
        self._size = 0

    def damaged(self, number: int, expected: str, found: str, text: str = "", *, whole: bool = False) -> None:
        """A line, or a document, that is left out; its text as far as there is one."""
        self._report.damaged(self._where, f"line {number}", expected, found, named=_traces_in(text), whole=whole)

    def line(self, text: str, number: int) -> Iterator[tuple[str, Any]]:
        """A line, with no document unfinished before it."""
        values, at, error = _decode_all(text)
        for value in values:
            yield f"line {number}", value
        if error is None:
            return
        if _goes_on(text, error) and text.endswith("\n"):
            self._begin(text[at:], number)
        else:
            yield from self._damaged(text[at:], number, error)

    def next_line(self, text: str, number: int, limit: int) -> Iterator[tuple[str, Any]]:
        """A line while a document is unfinished."""
        if self._starts and text.startswith('{"') and not self.pending[0].startswith("["):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                if not self._starts.isdisjoint(value):
                    yield from self.end()
                    yield f"line {number}", value
                    return
        self._add(text)
        if self._depth <= 0:
            yield from self._finish(number)
        elif self._size > limit:
            self.damaged(self._first_line, f"a document of at most {limit} bytes", "a longer one")
            self.pending.clear()

    def end(self) -> Iterator[tuple[str, Any]]:
        """The input ends, or a new document begins, with one unfinished."""
        if self.pending:
            yield from self._finish(self._first_line)

    def _begin(self, text: str, number: int) -> None:
        self._first_line, self._depth, self._size = number, 0, 0
        self._add(text)

    def _add(self, text: str) -> None:
        self.pending.append(text)
        self._size += len(text)
        bare = _STRING.sub("", text)
        self._depth += bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")

    def _finish(self, number: int) -> Iterator[tuple[str, Any]]:
        text = "".join(self.pending)
        self.pending.clear()
        values, at, error = _decode_all(text)
        for value in values:
            yield f"line {self._first_line}", value
        if error is None:
            return
        rest = text[at:]
        if values and _goes_on(text, error) and self._depth > 0:
            self._begin(rest, number)
        else:
            yield from self._damaged(rest, self._first_line + text.count("\n", 0, at), error)

    def _damaged(self, text: str, number: int, error: Exception) -> Iterator[tuple[str, Any]]:
        whole = self._torn(text)
        for part in whole:
            values, at, wrong = _decode_all(part)
            for value in values:
                yield f"line {number}", value
            if wrong is not None:
                yield from self._broken(part[at:], number, wrong)
        if not whole:
            yield from self._broken(text, number, error)

    def _torn(self, text: str) -> list[str]:
        """A document whose writer died in the middle, and what another one wrote behind it on the same line; empty if it is no such text.

        The mark of a beginning cannot be part of a document that has one already: inside a string its quotes are escaped. Only what lies in
        a document may begin as documents of another form do.
        """
        marks = list(self._start.finditer(text))
        starts = [found.start() for found in marks]
        if starts and starts[0] == 0 and all(one[0] != marks[0][0] and _is_inside(text, one.start()) for one in marks[1:]):
            return []
        seams = starts if starts and starts[0] > 0 else starts[1:]
        if not seams or not (starts[0] == 0 or any(f'{{"{name}"'.startswith(text[: seams[0]]) for name in self._starts)):
            return []
        return [text[begin:end] for begin, end in pairwise([0, *seams, len(text)])]

    def _broken(self, text: str, number: int, error: Exception) -> Iterator[tuple[str, Any]]:
        expected, found, damaged, whole = "a JSON document", "nesting too deep to read", text, True
        if isinstance(error, json.JSONDecodeError):
            start = len(error.doc) - len(text)
            found = f"{error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"
            if _goes_on(error.doc, error) or error.msg.startswith("Unterminated string"):
                expected, found, whole = "a whole JSON document", "one that is cut", False
            else:
                number += error.doc.count("\n", start, error.pos)
            text = text[: error.pos - start]
        elif isinstance(error, ValueError):
            found = "a number of thousands of digits"
        kept = whole_elements(text, self._lists) if isinstance(error, json.JSONDecodeError) else None
        if kept is not None:
            yield f"line {number}", kept[0]
        self.damaged(number, expected, found, damaged, whole=whole)
        if kept is not None:
            self._report.note(CUT_DOCUMENT, "comes from a document that is cut: what followed it there is missing", spans=kept[1])


def _decode_all(text: str) -> tuple[list[Any], int, Exception | None]:
    """Decodes documents that follow each other. Gives them, the position behind the last, and what was wrong there, if anything."""
    values: list[Any] = []
    at = _GAP.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            return values, at, error
        values.append(value)
        at = _GAP.match(text, end).end()  # type: ignore[union-attr]
    return values, at, None


def _goes_on(text: str, error: Exception) -> bool:
    """Whether the text is the beginning of a document, all right as far as it goes."""
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip())
