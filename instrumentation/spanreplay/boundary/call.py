"""What passes the Boundary: the call that an agent makes and the answer it gets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Signature
from typing import Any, Final, Literal, Protocol, TypeAlias

from spanreplay.content.codec import Encoded

Kind: TypeAlias = Literal["model_call", "tool_call", "agent", "handoff", "retrieval", "memory", "decision", "mcp", "io", "human"]
Effect: TypeAlias = Literal["read", "write", "irreversible", "unknown"]
OutcomeName: TypeAlias = Literal[
    "ok",
    "error",
    "tool_error",
    "malformed",
    "timeout",
    "cancelled",
    "interrupted",
    "rejected",
    "deferred",
    "abandoned",
    "unknown",
]
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]

EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "irreversible", "unknown")
INTENT_EFFECTS: Final = frozenset({"write", "irreversible", "unknown"})
"""Effects whose record is on disk before the body runs."""


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every step, and that would take twice as long
class Call:
    """One call, as asked.

    ``input`` is a snapshot: an agent that goes on to change its message list does not change the record.
    """

    kind: Kind
    name: str
    input: Encoded | None = None
    """Typed JSON of what was asked for; what a replay compares with the record."""
    input_attribute: str | None = None
    """The standard attribute that carries ``input`` where it is plain JSON, so that one text is not kept twice."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    """Known at the start: the ``gen_ai.*`` view, versions, the wire request."""
    call_id: str | None = None
    effect: Effect | None = None
    idempotency_key: str | None = None
    span_name: str | None = None
    client: bool = False
    """The span kind is CLIENT; INTERNAL otherwise."""
    result_attribute: str | None = None
    """The standard attribute that carries a plain JSON result."""
    annotation: object = None
    """Declared type of the result, from the call site."""
    signature: Signature | None = None
    """Of the function called, where ``input`` is its arguments by name: a record of others may show its defaults, or not."""
    streams: bool = False
    """The function is a generator."""
    layer: str = ""
    """The seam that sees a tool call, see :mod:`spanreplay.boundary.layers`."""
    tool_below: bool = False
    """A framework's call of a function that is a ``@tool``: it sees the call too, below what the framework makes of results."""
    passed: bool = False
    """A replay runs the body, as it does an agent's: all that it does outside are steps of their own. For a tool that is an agent."""
    ending: Callable[[object], OutcomeName | None] | None = None
    """How the call ended, from what it returned or raised, where that says it in a way of the framework's own: a tool that reports its
    failure in its result, an exception that asks for an approval. ``None`` from it: as for any other call."""
    failing: Callable[[BaseException], Awaitable[object]] | None = None
    """What the framework makes of an exception that the tool raises, for a seam that is above that: gives the result, or raises."""

    held: "Held | None" = None
    """What the tool may change in place."""

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str):  # a number, an enum: whatever a program calls its tools
            try:
                self.name = str(name)
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                self.name = f"<{type(name).__name__}>"


class Held(Protocol):
    """What a tool may change in place, and a replay then changes again."""

    def begin(self) -> None:
        """The tool begins to run."""
        ...

    def left(self) -> str | None:
        """What it has changed since, as typed JSON; ``None`` where it has not begun, or has changed nothing."""
        ...

    def change(self, left: str) -> list[str]:
        """Change what :meth:`left` told; gives the names of what was left alone."""
        ...


class Exchange(Protocol):
    """A recorded HTTP exchange, as a transport needs it to answer a request."""

    @property
    def status(self) -> int | None: ...  # noqa: D102
    @property
    def response_headers(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102
    @property
    def response_body(self) -> bytes: ...  # noqa: D102
    @property
    def chunks(self) -> tuple[tuple[int, int], ...]: ...  # noqa: D102
    @property
    def complete(self) -> bool: ...  # noqa: D102


class Turn(Protocol):
    """When an answer may be given, so that siblings complete in the recorded order."""

    @property
    def is_to_come(self) -> bool:
        """Whether a stream that was opened before its turn has to wait for it before it ends."""
        ...

    def taken(self) -> None:
        """Whoever runs now has opened a stream, or has read on in it."""
        ...

    def wait(self) -> None:
        """Block this thread until it is this step's turn (bounded)."""
        ...

    async def wait_async(self) -> None:
        """Wait until it is this step's turn, leaving the event loop free."""
        ...

    def given(self) -> None:
        """The answer has been handed over."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the record says a call gave. A body is not run when there is one."""

    outcome: OutcomeName
    result: str | None = None
    """Typed JSON text."""
    error: str | None = None
    """Typed JSON text of the exception."""
    items: str | None = None
    """Typed JSON list of what a streaming call gave, in order."""
    exchange: Exchange | None = None
    duration_ns: int = 0
    turn: Turn | None = None
    beyond: Callable[[], BaseException] | None = None
    """Makes what to raise when the caller asks for more than was recorded: a stream left early, then read on; a call that was
    cancelled, and now is not."""
    injected: BaseException | None = None
    """The tool is to fail with this: what the call gives is what the framework makes of it."""
    left: str | None = None
    """What the tool changed in place, see :class:`Held`."""
    left_alone: Callable[[list[str]], None] | None = None
    """Told what of that was not changed again, as the agent had changed it itself."""
    fed: Callable[[Encoded], bool] | None = None
    """Told what the agent has written to a command while that ran: ``{"stdin", "stdin_open"}``, as in the command's result. Gives whether
    that differs, or raises what is to stop the agent."""
    unreadable: Callable[[str], BaseException] | None = None
    """Makes what to raise when the recorded value cannot be read, from the reason."""

    @property
    def never_came(self) -> bool:
        """Whether the call was open, with nothing given, when its process ended, or its task was dropped."""
        nothing = self.result is None and self.error is None and self.items is None
        return self.outcome == "abandoned" and nothing and (self.exchange is None or self.exchange.status is None)


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every step, and that would take twice as long
class StepStarted:
    """A step has begun. Ids are lower-case hex; times are nanoseconds since the epoch; texts are redacted."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    trace_flags: int
    trace_state: str
    name: str
    client: bool
    start_ns: int
    attributes: Mapping[str, Any]
    intent: bool
    """The record must be on disk before :meth:`CaptureSink.started` returns; else before the body runs, see ``SettlingSink``, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """A span event of a step."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every step, and that would take twice as long
class StepEnded:
    """A step is over. ``attributes`` has only what was not known at the start."""

    trace_id: str
    span_id: str
    end_ns: int
    failed: bool
    message: str
    attributes: Mapping[str, Any]
    events: tuple[StepEvent, ...]
    alone: bool = False
    """It is known that nobody else has set an attribute on the step's span."""
