"""Recording and replaying a function in this process, without a store: what the sink was told becomes runs."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spanreplay.boundary import session as sessions
from spanreplay.boundary.call import StepEnded, StepStarted
from spanreplay.boundary.scope import process
from spanreplay.boundary.session import RunContext, Session, entered
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.instrumentation import shims
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution.engine import Replayer, ReplayResult
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import STATUS_ERROR, STATUS_UNSET, EventRecord, Resource, Scope, SpanRecord
from support.size import FULL

SIZE = 200 if FULL else 10
"""How often what depends on chance is repeated."""

COMMAND_RUN = "c0" * 16


@dataclass
class Tape:
    """A ``CaptureSink`` that keeps everything in memory."""

    starts: list[StepStarted] = field(default_factory=list)
    ends: dict[str, StepEnded] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    """Steps that ended more than once."""
    log: list[tuple[str, str]] = field(default_factory=list)
    """("start" or "end", path), in order."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def started(self, step: StepStarted) -> None:
        """Keep it."""
        with self.lock:
            self.starts.append(step)
            self.log.append(("start", step.attributes[names.STEP_PATH]))

    def ended(self, step: StepEnded) -> None:
        """Keep it."""
        with self.lock:
            if step.span_id in self.ends:
                self.twice.append(step.span_id)
            self.ends[step.span_id] = step
            start = next(s for s in self.starts if s.span_id == step.span_id)
            self.log.append(("end", start.attributes[names.STEP_PATH]))

    def amended(self, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> None:
        """Keep it."""
        with self.lock:
            end = self.ends[span_id]
            end.attributes = {**end.attributes, **attributes}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """All attributes of every step, in the order of their starts."""
        return [{**s.attributes, **(self.ends[s.span_id].attributes if s.span_id in self.ends else {})} for s in self.starts]

    @property
    def paths(self) -> list[str]:
        """The causal paths, in the order of the starts."""
        return [s.attributes[names.STEP_PATH] for s in self.starts]

    @property
    def outcomes(self) -> list[str | None]:
        """How the steps ended, in the order of their starts; ``None``: not at all."""
        return [s.get(names.STEP_OUTCOME) for s in self.steps]

    def records(self) -> list[SpanRecord]:
        """The spans."""
        made = []
        for start in self.starts:
            end = self.ends.get(start.span_id)
            made.append(
                SpanRecord(
                    trace_id=start.trace_id,
                    span_id=start.span_id,
                    parent_span_id=start.parent_span_id,
                    name=start.name,
                    kind=1,
                    start_ns=start.start_ns,
                    end_ns=None if end is None else end.end_ns,
                    status=STATUS_ERROR if end is not None and end.failed else STATUS_UNSET,
                    status_message="" if end is None else end.message,
                    attributes={**start.attributes, **({} if end is None else end.attributes)},
                    events=()
                    if end is None
                    else tuple(EventRecord(name=e.name, time_ns=e.time_ns, attributes=e.attributes) for e in end.events),
                    resource=Resource(),
                    scope=Scope(name=names.SCOPE_NAME),
                )
            )
        return made

    def runs(self) -> list[Run]:
        """The runs, rebuilt from the spans."""
        return build_runs(self.records())


@contextmanager
def recording(tape: Tape | None = None, *, install: bool = True, whole_process: bool = False, **settings: Any) -> Iterator[Tape]:
    """What is called in this block is recorded.

    Args:
        tape: where to; a new one by default.
        install: with the shims.
        whole_process: in every context and thread of the process, as ``recording.start()`` does; else in this context.
        **settings: of the session.
    """
    tape = Tape() if tape is None else tape
    settings.setdefault("redactor", Redactor(RedactionPolicy.default()))
    session = Session(mode="record", sink=tape, open_spans=settings.pop("open_spans", False), **settings)
    scope = session.root(RunContext(run_id=COMMAND_RUN, name="test", fallback=True))
    active = process.active
    if install:
        shims.install()
    try:
        if whole_process:
            sessions.activate(scope)
            yield tape
        else:
            with entered(scope):
                yield tape
    finally:
        if whole_process:
            sessions.deactivate()
        process.active = active
        if install:
            shims.uninstall()


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, or run a coroutine function to its end."""
    made = function(*args)
    if inspect.isawaitable(made):

        async def wait() -> Any:
            return await made

        return asyncio.run(wait())
    return made


def recorded(function: Callable[..., Any], *args: Any, **settings: Any) -> Tape:
    """Record one call of ``function``; what it raises is kept from the caller."""
    with recording(**settings) as tape:
        try:
            run(function, *args)
        except Exception:
            pass
    return tape


def replayed(tape: Tape | Sequence[Run], function: Callable[..., Any], *args: Any, guard: bool = False) -> ReplayResult:
    """Re-execute ``function`` with every call answered from ``tape``."""
    active = process.active
    try:
        return Replayer(tape.runs() if isinstance(tape, Tape) else tape, guard=guard).replay(function, *args)
    finally:
        process.active = active
        shims.uninstall()


def told(result: ReplayResult) -> list[tuple[str, int | None, str, str | None]]:
    """(kind, step, what, field) of each difference."""
    return [(d.kind, d.step, d.name, d.field) for d in result.differences]
