"""What stands for content and is none: marks of a redaction, and messages in which nothing is said.

Instrumentations keep the shape of an exchange where they may not keep what was said: ``[]`` for messages, a message without parts, a mark
such as ``__REDACTED__`` (OpenInference's ``OPENINFERENCE_HIDE_*``), ``<REDACTED>`` or ``[Redacted]`` in place of a text.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import LONGEST_MARK, not_captured
from spanreplay.replay.reading.growing import PerElement

_SAY: Final = ("user", "system")
_EMPTY_ANSWERS: Final = frozenset({"content_filter", "length", "max_tokens", "refusal", "error", "SAFETY", "MAX_TOKENS"})
"""Finish reasons with which an answer may well be empty."""


def told(view: Json, *, answered: bool = False) -> Json:
    """A view, or ``None`` where nothing in it was said: no messages, messages without content, nothing but marks.

    Args:
        view: what went into a step or came out of it, as in :class:`spanreplay.replay.reading.drafting.Found`.
        answered: the answer to it was captured, so contents were: a text that is there and empty was empty.
    """
    if not isinstance(view, dict):
        return view
    if "result" in view or view.keys() == {"arguments"}:
        return None if not_captured(view.get("result", view.get("arguments"))) else view
    finish = view.get("finish")
    if not isinstance(view.get("messages"), list) or (isinstance(finish, str) and finish in _EMPTY_ANSWERS):
        return view
    if any(map(_says, _held(view))):
        return view
    return view if answered and any(True for _ in _held(view)) and all(map(_is_empty_text, _held(view))) else None


def empty_messages(view: Json) -> int:
    """How many messages of users and systems in a view say nothing at all, not even an empty text."""
    said = view.get("messages") if isinstance(view, dict) else None
    return sum(map(is_empty, said)) if isinstance(said, list) else 0


def is_empty(message: Json) -> bool:
    """Whether a message has lost what was said in it. One of an assistant may say nothing, and one of a tool has its result."""
    if not isinstance(message, dict) or message.get("parts") != []:
        return False
    return any(message.get("role") == role for role in _SAY)


def _held(view: dict[str, Any]) -> Iterator[Any]:
    """The parts of all messages, and the instructions."""
    yield from _parts(view["messages"])
    yield from _listed(view.get("system"))


def _is_empty_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and part.get("content") == ""


def marks(view: Json) -> int:
    """How many texts in a view are nothing but a mark."""
    if not isinstance(view, dict):
        return 0
    messages = view.get("messages")
    count = sum(_marks_of_messages.of(messages)) if isinstance(messages, list) else _marks(messages)
    return count + _marks([view.get("arguments"), view.get("result"), view.get("system")])


def _marks(held: Any) -> int:
    count = 0
    waiting: list[Any] = [held]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is str:
            count += len(value) <= LONGEST_MARK and not_captured(value)
        elif kind is dict:
            waiting.extend(value.values())
        elif kind is list:
            waiting.extend(value)
    return count


_marks_of_messages: Final = PerElement(_marks)


def _says(part: Any) -> bool:
    """Whether a part of a message has content; what is no text part, such as a picture or a call, is content by itself."""
    if not isinstance(part, dict):
        return bool(part)
    if part.get("type") in ("text", "reasoning"):
        said = part.get("content")
        return bool(said) and not not_captured(said)
    return part.get("type") != "tool_call_response" or not not_captured(part.get("response"))


def _parts(messages: Iterable[Any]) -> Iterator[Any]:
    for message in messages:
        yield from _listed(message.get("parts")) if isinstance(message, dict) else (message,)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
