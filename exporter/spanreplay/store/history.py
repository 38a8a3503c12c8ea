"""What went into the model calls of a run, each message once: how long it stayed in the conversation, in place of a copy in every call.

The calls of a run are told into threads: a call goes on with the thread whose messages are most of its own beginning. A message is then at
one place of a thread from one call to another. So are tools that were offered and system instructions.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

from spanreplay.store.encoding import to_readable_json
from spanreplay.store.json_spans import NO_JSON, elements, members, read, skip
from spanreplay.store.pieces import Piece, long_strings, parts_of

PARTS: Final = {"messages": "message", "tools": "tool", "system": "system"}
"""Members of the input of a model call that are lists, and what one of their elements is called."""
_THREADS: Final = 16
"""Threads that begin with the same message and are looked at."""


class Element(NamedTuple):
    """A message, a tool that was offered, or a part of the instructions."""

    digest: str
    """Of its JSON, its characters as they are."""
    parts: list[str]
    """That JSON: literal text and digests of long strings by turns."""
    label: str | None
    """The role of a message, the name of a tool."""


class HistoryRow(NamedTuple):
    """An element, and from which to which call of its thread it was there."""

    run_id: str
    thread: int
    part: str
    n: int
    label: str | None
    digest: str | None
    parts: list[str]
    first_seq: int
    last_seq: int


@dataclass(slots=True)
class _List:
    text: str = ""
    """The array up to the end of its last element."""
    elements: list[Element] = field(default_factory=list)


@dataclass(slots=True)
class _Thread:
    name: int
    last_seq: int
    lists: dict[str, _List]
    begun: dict[str, list[int]]
    """When each element came, by part."""


class History:
    """The history of one run; its model calls are taken in order."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._latest: dict[str, list[_List]] = {}
        self._threads: dict[str, list[_Thread]] = {}
        self.rows: list[HistoryRow] = []
        """What is over."""
        self.strings: dict[str, Piece] = {}
        """What the parts name, by digest."""

    def take(self, seq: int, text: str, output: str | None) -> tuple[int, str, str | None] | None:
        """Takes a call.

        Args:
            seq: of the call.
            text: JSON of its input.
            output: JSON of its output.

        Returns:
            The thread that it is in, and its input and output without what is in the history. ``None`` where it has no list of messages.
        """
        try:
            lists, rest = self._read(text)
        except NO_JSON:
            return None
        messages = lists.get("messages")
        if messages is None or not messages.elements:
            return None
        for name, found in lists.items():
            if found.elements:
                self._latest[name] = [found, *self._latest.get(name, ())][:_THREADS]
        thread = self._thread(seq, messages.elements)
        for part in PARTS:
            self._put(thread, part, seq, lists.get(part, _List()))
        thread.last_seq = seq
        try:
            answers, left = self._read(output) if output is not None else ({}, None)
        except NO_JSON:
            answers, left = {}, output
        if answers.keys() - {"messages"}:
            answers, left = {}, output
        for n, element in enumerate(answers["messages"].elements if answers else ()):
            self._row(thread.name, "output", n, element, seq, seq)
        return thread.name, rest, left

    def end(self) -> list[HistoryRow]:
        """All rows; nothing is taken after it."""
        for threads in self._threads.values():
            for thread in threads:
                for part in PARTS:
                    self._close(thread, part, 0)
        self._threads = {}
        return self.rows

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _row(self, thread: int, part: str, n: int, element: Element, first_seq: int, last_seq: int) -> None:
        digest = element.digest if part == "tool" else None  # what would compare messages by it compares their texts
        self.rows.append(HistoryRow(self._run_id, thread, part, n, element.label, digest, element.parts, first_seq, last_seq))

    def _read(self, text: str) -> tuple[dict[str, _List], str]:
        if not text.startswith("{"):
            raise ValueError
        lists: dict[str, _List] = {}
        rest: list[str] = []

        def member(name: str, begin: int, start: int) -> int:
            if name in PARTS and text[start] == "[":
                lists[name], end = self._list(name, text, start)
                return end
            end = read(text, start)[1]
            rest.append(text[begin:end])
            return end

        end = members(text, 0, member)
        if skip(text, end) != len(text):
            raise ValueError(end)
        return lists, "{" + ",".join(rest) + "}"

    def _list(self, name: str, text: str, start: int) -> tuple[_List, int]:
        known = next((known for known in self._latest.get(name, ()) if text.startswith(known.text, start)), None)
        found = list(known.elements) if known is not None else []
        place = start + len(known.text) if known is not None else start + 1

        def take(value: Any, begin: int, end: int) -> None:
            nonlocal place
            place = end
            found.append(self._element(name, value, text[begin:end]))

        close = elements(text, place, take, first=known is None)
        return _List(text[start:place], found), close + 1

    def _element(self, name: str, value: Any, text: str) -> Element:
        if "\\u" in text:
            with suppress(ValueError, RecursionError):
                text = to_readable_json(json.loads(text))
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode("utf-8", "replace")
            text = data.decode()
        label = value.get("role" if name == "messages" else "name") if isinstance(value, dict) else None
        if name == "tools" and label is None and isinstance(value, dict) and isinstance(value.get("function"), dict):
            label = value["function"].get("name")
        label = label.encode("utf-8", "replace").decode() if isinstance(label, str) else None
        cuts = long_strings(text, 0, len(text))
        self.strings.update((cut.piece.digest, cut.piece) for cut in cuts)
        return Element("sha256:" + sha256(data).hexdigest(), parts_of(text, 0, len(text), cuts), label)

    def _thread(self, seq: int, messages: list[Element]) -> _Thread:
        threads = self._threads.setdefault(messages[0].digest, [])
        best, most = None, 0
        for thread in threads[-_THREADS:]:
            before = thread.lists["messages"].elements
            common = _common(before, messages)
            if common > most and common * 2 > len(before):
                best, most = thread, common
        if best is None:
            best = _Thread(seq, seq, {}, {})
            threads.append(best)
        return best

    def _put(self, thread: _Thread, part: str, seq: int, new: _List) -> None:
        known = thread.lists.get(part)
        common = _common(known.elements, new.elements) if known is not None else 0
        self._close(thread, part, common)
        thread.begun.setdefault(part, []).extend([seq] * (len(new.elements) - common))
        thread.lists[part] = new

    def _close(self, thread: _Thread, part: str, common: int) -> None:
        begun = thread.begun.get(part, [])
        if len(begun) > common:
            known = thread.lists[part].elements
            for n in range(common, len(begun)):
                self._row(thread.name, PARTS[part], n, known[n], begun[n], thread.last_seq)
            del begun[common:]


def _common(one: list[Element], other: list[Element]) -> int:
    if one == other[: len(one)]:
        return len(one)
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a.digest != b.digest), min(len(one), len(other)))
