"""Values of a trace as text for people: safe on a terminal, short, with the size of what is left out.

What is in a trace was written by others: nothing of it reaches a terminal as a control sequence, and nothing turns the direction of a line.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from spanreplay.replay.model import Json

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminal escapes
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # direction, invisible, other line ends
    "\ud800-\udfff"  # lone surrogates cannot be written at all
    "\U000e0000-\U000e007f]"  # invisible tags
)
_NAMED: Final[Mapping[str, str]] = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e"}

NO_STEPS: Final = "no steps"
"""Instead of the grade of a run that has nothing to replay."""


SHORT_ID: Final = 12
_NARROW: Final = "0" * 16
"""What a trace id of 64 bits, as older tracers have, begins with."""


def short_id(run_id: str) -> str:
    """The beginning of a run's id that tells it from others; of an id of 64 bits what comes behind its zeros."""
    return run_id.removeprefix(_NARROW)[:SHORT_ID] if len(run_id) == 2 * len(_NARROW) else run_id[:SHORT_ID]


def begins(run_id: str, prefix: str) -> bool:
    """Whether an id is meant by its beginning, with or without the zeros of an id of 64 bits."""
    return run_id.startswith(prefix) or (run_id.startswith(_NARROW) and run_id.removeprefix(_NARROW).startswith(prefix))


def safe(text: str) -> str:
    """One line of text that does nothing to a terminal: every character that is no printing one is written out."""
    return _UNSAFE.sub(_written, text)


def safe_lines(text: str) -> str:
    """As :func:`safe`, but line feeds and tabs stay."""
    return "\n".join("\t".join(safe(cell) for cell in line.split("\t")) for line in text.split("\n"))


def safe_json(text: str) -> str:
    """One line of JSON text, with what :func:`safe` writes out as the escapes of JSON: the value is the same."""
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _written(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def json_text(value: Json, indent: int | None = None) -> str:
    """JSON as it reads best: characters as they are."""
    separators = (", ", ": ") if indent is None else None
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=str)


def short(value: Json, limit: int = 100) -> str:
    """A value on one line, at most ``limit`` characters of it, and how large it is where that is not all."""
    text = json_text(value)
    shown = safe(text[: limit + 1])
    if len(text) <= limit and len(shown) <= 2 * limit:
        return shown
    return f"{shown[:limit]}… ({size(len(text.encode('utf-8', 'surrogatepass')))})"


def call_text(name: str, arguments: Json, limit: int = 100) -> str:
    """A call as it is written: ``search(query="…", top=3)``."""
    if isinstance(arguments, dict):
        inside = ", ".join(f"{key}={json_text(value)}" for key, value in arguments.items())
    else:
        inside = "" if arguments is None else json_text(arguments)
    if len(inside) > limit:
        return f"{safe(name)}({safe(inside[:limit])}… ({size(len(inside.encode('utf-8', 'surrogatepass')))}))"
    return f"{safe(name)}({safe(inside)})"


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} bytes"
    for unit in ("kB", "MB", "GB"):
        scaled = count / 1000 ** (("kB", "MB", "GB").index(unit) + 1)
        if scaled < 999.5 or unit == "GB":
            return f"{scaled:.3g} {unit}"
    raise AssertionError


def duration(started_ns: int, ended_ns: int | None) -> str:
    """How long something took."""
    if ended_ns is None:
        return "not ended"
    seconds = (ended_ns - started_ns) / 1e9
    if seconds < 0:
        return "ends before it starts"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(ns: int) -> str:
    """A time, UTC, to the millisecond."""
    try:
        when = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{ns} ns"
    return f"{when:%Y-%m-%d %H:%M:%S}.{ns // 1_000_000 % 1000:03d} UTC"


def width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
