"""What the readers of plain JSON share: values as they are, and telling what could not be read."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from spanreplay.spans._anyvalue import MAX_DEPTH, Fault
from spanreplay.spans.errors import DEPTH_AS_TEXT, Problem, Problems, join
from spanreplay.spans.record import LogRecord, SpanRecord, Value

SHOWN: Final = 120
"""Characters of a foreign text that a note repeats."""


def tell(faults: list[Fault], place: str, problems: Problems, record: SpanRecord | LogRecord | None = None) -> None:
    """Gives what was wrong in one record to ``problems``, and forgets it.

    Args:
        faults: with paths relative to ``place``.
        place: where the record is.
        problems: told, in the order of the faults.
        record: the record, if it was kept.
    """
    for code, path, expected, found in faults:
        problems(
            Problem(
                code=code,
                where=at(place, path),
                expected=expected,
                found=found,
                trace_id=record.trace_id if record else None,
                span_id=record.span_id if record else None,
            )
        )
    faults.clear()


def at(place: str, path: str) -> str:
    """A path within a document, behind the place of the document: ``line 3`` and ``spans[2]`` give ``line 3: spans[2]``."""
    if place.startswith("line ") and ": " not in place:
        return f"{place}: {path}" if path else place
    return join(place, path)


def plain_value(raw: Any, faults: list[Fault], where: str = "", depth: int = 0) -> Value:
    """A parsed JSON value as the value of an attribute; what nests deeper than attributes may is kept as JSON text, and told."""
    if raw is None or isinstance(raw, str | bool | int | float):
        return raw
    if depth >= MAX_DEPTH:
        faults.append((DEPTH_AS_TEXT, where, f"at most {MAX_DEPTH} levels of nesting", "more"))
        return _text(raw)
    if isinstance(raw, dict):
        return {str(key): plain_value(item, faults, where, depth + 1) for key, item in raw.items()}
    if isinstance(raw, Sequence):
        return tuple(plain_value(item, faults, where, depth + 1) for item in raw)
    return str(raw)


def _text(raw: Any) -> str:
    try:
        return json.dumps(raw)
    except (ValueError, RecursionError):
        return f"<nested deeper than {MAX_DEPTH} levels>"


def shown(text: object) -> str:
    """A foreign text as a note may repeat it: one line, printable, short."""
    line = "".join(sign if sign.isprintable() else "\ufffd" for sign in (text if isinstance(text, str) else "")[: SHOWN + 1])
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def first(message: dict[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that is there and not null."""
    return next((message[name] for name in names if message.get(name) is not None), None)
