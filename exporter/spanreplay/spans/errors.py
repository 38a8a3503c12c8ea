"""What a span format reader or writer says when its input is not what the format asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

REJECTED: Final = "rejected"
ATTRIBUTE_DROPPED: Final = "attribute-dropped"
EVENT_DROPPED: Final = "event-dropped"
LINK_DROPPED: Final = "link-dropped"
RESOURCE_DROPPED: Final = "resource-dropped"
DUPLICATE_KEY: Final = "duplicate-key"
TIME_FLOAT: Final = "time-float"
INT_FLOAT: Final = "int-float"
TEXT_REPLACED: Final = "text-replaced"
INT_AS_TEXT: Final = "int-as-text"
DEPTH_AS_TEXT: Final = "depth-as-text"
SIGNAL_SKIPPED: Final = "signal-skipped"

ProblemCode: TypeAlias = Literal[
    "rejected",
    "attribute-dropped",
    "event-dropped",
    "link-dropped",
    "resource-dropped",
    "duplicate-key",
    "time-float",
    "int-float",
    "text-replaced",
    "int-as-text",
    "depth-as-text",
    "signal-skipped",
]
"""What became of the malformed part. ``rejected``: a whole span, log record or document was left out. ``…-dropped``: that part
was left out and the record kept. ``signal-skipped``: metrics or profiles, which are not read. The rest: kept, but altered."""


class FormatError(Exception):
    """Data is not in the format it was taken for.

    Attributes:
        where: The place, such as ``trace.json: resourceSpans[0].scopeSpans[1].spans[3].startTimeUnixNano``; may be empty.
        expected: What the format asks for there.
        found: What is there instead, shortened.
    """

    def __init__(self, where: str, expected: str, found: str) -> None:
        super().__init__(where, expected, found)
        self.where = where
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        text = f"expected {self.expected}, found {self.found}"
        return f"{self.where}: {text}" if self.where else text

    def within(self, prefix: str) -> "FormatError":
        """The same error seen from the enclosing value: its place is prefixed with ``prefix``."""
        return FormatError(join(prefix, self.where), self.expected, self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing a reader or writer could not take over as it was; the work goes on."""

    code: ProblemCode
    where: str
    expected: str
    found: str
    trace_id: str | None = None
    span_id: str | None = None
    """The record concerned (lower-case hex), if it is known; of one that was left out, its trace only."""

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}"


Problems: TypeAlias = Callable[[Problem], None]
"""Called once for every problem, in the order of the input, before the next record is given."""


def ignore(problem: Problem) -> None:
    """The collector that keeps nothing."""


def join(prefix: str, path: str) -> str:
    """Joins two parts of a JSON path: ``spans[3]`` and ``kind`` give ``spans[3].kind``; an index needs no dot."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def describe(value: object) -> str:
    """Says in a few words what a JSON value is, for the ``found`` of an error; never longer than about 60 characters."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else f"{value[:40]}…"
        return f"the text {shown!a}" if value else "an empty text"
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        keys = ", ".join(ascii(key)[1:-1][:24] for key in list(value)[:3])
        return f"an object with {keys}{', …' if len(value) > 3 else ''}" if value else "an empty object"
    return f"a {type(value).__name__}"


def _number(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return f"the number {value}"
