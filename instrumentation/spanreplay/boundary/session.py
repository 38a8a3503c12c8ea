"""A session: one recording or one replay, with what it needs, and the run that calls belong to."""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.call import Answer, Call, StepEnded, StepStarted
from spanreplay.boundary.clock_reads import ClockReads
from spanreplay.boundary.complaints import complain
from spanreplay.boundary.orders import Orders, ToldOrders
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.settling import Settling
from spanreplay.content.canonical import canonical_json
from spanreplay.content.redaction import RedactionPolicy, Redactor

if TYPE_CHECKING:
    from spanreplay.boundary.step import Step

_log = logging.getLogger("spanreplay")

Mode: TypeAlias = Literal["record", "replay"]
SpanContent: TypeAlias = Literal["full", "view", "none"]
RunPer: TypeAlias = Literal["auto", "agent", "command"]


class CaptureSink(Protocol):
    """Is told everything, whether or not the span is sampled, and past every SDK limit. Raises nothing."""

    def started(self, step: StepStarted) -> None:
        """A step has begun. For an intent, returns when the record is on disk."""
        ...

    def ended(self, step: StepEnded) -> None:
        """A step is over."""
        ...


class SettlingSink(CaptureSink, Protocol):
    """One that may be told of an intent and asked to put it on the disk afterwards, before the body runs."""

    def settle(self) -> None:
        """All that it was told so far is on the disk when this returns. Raises nothing."""
        ...


class AmendingSink(CaptureSink, Protocol):
    """One that may be told more of a step that has ended."""

    def amended(self, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> None:
        """Attributes of the step, in place of those that it ended with. Raises nothing."""
        ...


class CallInterceptor(Protocol):
    """Stands between a call and its body: authority, once-only effects, replay."""

    def intercept(self, step: "Step") -> Answer | None:
        """Answer the call, or return ``None`` to let it go on. May raise to refuse it."""
        ...

    def ended(self, step: "Step") -> None:
        """The step is over, however it ended."""
        ...


Foresight: TypeAlias = Callable[[Scope, Call], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The run that calls made here belong to."""

    run_id: str
    name: str
    path: str = ""
    """Where in its process the run began."""
    agent: str | None = None
    command_id: str | None = None
    fallback: bool = False
    """The recorded command or process: an agent step inside it begins a run of its own."""
    state: dict[str, Any] = field(default_factory=dict)
    """Facts shared by the steps of the run, for example the calls that models have asked for."""
    untaped: dict[tuple[str, str], None] = field(default_factory=dict)
    """(what, target) of what happened past every seam, in order, each once."""

    def untaped_json(self) -> str | None:
        """:attr:`untaped` as it is kept with the run; ``None`` where there is nothing."""
        if not self.untaped:
            return None
        return canonical_json([{"what": what, "target": target} for what, target in self.untaped])


def new_process_id() -> str:
    """A name for this process that no other has: 16 hex digits."""
    return os.urandom(8).hex()


class Session:
    """One recording or one replay.

    Args:
        mode: ``record`` or ``replay``.
        sink: told of every step; ``None`` keeps nothing.
        interceptors: asked in order before a body runs.
        redactor: applied to every text before anything else sees it.
        open_spans: open an OpenTelemetry span for each step.
        content: what of the content the spans carry.
        span_limit: characters above which an attribute leaves the span and only its digest stays there; content ``full`` has no limit.
        run_per: what a run is; see the command line's ``--run-per``.
        attributes: added to every step (session, user, target environment).
        clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        *,
        mode: Mode,
        sink: CaptureSink | None = None,
        interceptors: Sequence[CallInterceptor] = (),
        redactor: Redactor | None = None,
        open_spans: bool = True,
        content: SpanContent = "view",
        span_limit: int = 262_144,
        run_per: RunPer = "auto",
        process_id: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.mode: Mode = mode
        self.sink = sink
        settle: Callable[[], None] | None = getattr(sink, "settle", None)
        self.settling = None if settle is None else Settling(settle)
        """Where the sink can be asked later to put on the disk what it was told."""
        self.interceptors = tuple(interceptors)
        self.redactor = redactor if redactor is not None else Redactor(RedactionPolicy.default())
        self.open_spans = open_spans
        self.content: SpanContent = content
        self.span_limit = span_limit
        self.run_per: RunPer = run_per
        self.process_id = process_id or new_process_id()
        self.attributes = dict(attributes or {})
        self.clock = clock
        self.clock_reads: ClockReads | None = None
        """What the program has read of the clock since the last step; ``None`` where nobody watches that."""
        self.orders: Orders | None = None if sink is None else Orders()
        """What the program has seen come since the last step; ``None`` where nothing is kept."""
        self.told_orders: ToldOrders | None = None
        """In a replay, the recorded orders."""
        self.on_taken: Callable[[str, str], None] | None = None
        """In a replay, told of each name of a temporary file that somebody has already, and of the one that was given instead."""
        self.arrivals: dict[Any, Any] = {}
        """What brings things in order, by what they are for."""
        self.of_runs: Mapping[str, Any] = {}
        """Attributes of each run's root, besides the steps' own."""
        self.told_by: object = None
        """In a replay, the clock that answers what its program reads."""
        self.asked: dict[str, object] = {}
        """The calls that models asked for last, in whichever run, by the ids that they gave them; see :mod:`spanreplay.boundary.asked`."""
        self.sequence = count(1).__next__
        self.latest = 0
        """The place that was given last; between threads, one that was given before it."""
        self.failures = 0
        """Times that recording failed; the agent never notices."""
        self._last_logged = 0.0
        self.foresees: Foresight | None = None
        """Tells of a call, in a replay, whether the record answers it as it stands at its place; nothing is taken by asking."""
        self._bodies: Session | None = None

    @property
    def unseen(self) -> bool:
        """Nobody looks at the attributes of steps: a replay that only compares and answers."""
        return self.foresees is not None and self.sink is None and not self.open_spans

    def of_bodies(self) -> "Session":
        """The session of what runs inside the calls that a replay lets run.

        Its mode is ``record``; sink, interceptors, order and everything else are this session's.
        """
        if self._bodies is None:
            self._bodies = _OfBodies(self)
        return self._bodies

    def root(self, run: RunContext | None, path: str = "") -> Scope:
        """A scope to make calls from, at the top of this session."""
        return Scope(session=self, run=run, path=path)

    def name(self, name: str) -> str:
        """A name of the program's without its secrets; empty, and counted, where that cannot be told. Raises nothing."""
        try:
            return self.redactor.name(name)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("the name of a task, a scope or a tool")
            return ""

    def failed(self, what: str) -> None:
        """Count a failure of recording, and log one line a minute at most."""
        self.failures += 1
        now = time.monotonic()
        if now - self._last_logged >= 60 or self._last_logged == 0.0:
            self._last_logged = now
            complain(_log, "spanreplay could not record %s (%d so far); the agent is not affected", what, self.failures)


class _OfBodies(Session):
    """See :meth:`Session.of_bodies`."""

    def __init__(self, outer: Session) -> None:
        self.__dict__.update(outer.__dict__)
        self.mode = "record"
        self._outer = outer

    @property
    def latest(self) -> int:
        return self._outer.latest

    @latest.setter
    def latest(self, place: int) -> None:
        self._outer.latest = place

    @property
    def failures(self) -> int:
        return self._outer.failures

    @failures.setter
    def failures(self, number: int) -> None:
        self._outer.failures = number


def activate(root: Scope) -> None:
    """Make ``root`` the scope of the whole process: every call outside another scope is made from it."""
    scopes.process.root = root
    scopes.process.active = True


def deactivate() -> None:
    """Undo :func:`activate`; calls go straight through again."""
    scopes.process.root = None
    scopes.process.active = False


@contextmanager
def everywhere(root: Scope) -> Iterator[None]:
    """``root`` is the scope of the whole process in this block; the one before is so again."""
    before = scopes.process.root, scopes.process.active
    activate(root)
    try:
        yield
    finally:
        scopes.process.root, scopes.process.active = before


class entered:  # noqa: N801 — a context manager that reads as a verb
    """``with entered(scope):`` makes calls in this block from ``scope``, in this context only."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> Scope:
        """Enter the scope."""
        scopes.process.active = True  # stays on: a session in another context may need it, and it costs a look-up
        self._token = scopes.enter(self._scope)
        return self._scope

    def __exit__(self, *_: object) -> None:
        """Leave the scope."""
        scopes.leave(self._token)
