"""Re-execution in this process: a function of the user's, with every call in it answered from recorded runs.

Isolation is level 1 here (see :mod:`spanreplay.replay.isolation.guard`), and the result says so.
"""

import asyncio
import inspect
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.session import RunContext, Session, entered, everywhere
from spanreplay.content.redaction import RedactionPolicy
from spanreplay.exporter.redacting import redactor_for
from spanreplay.instrumentation import http_exchange, http_telemetry
from spanreplay.instrumentation.shims import randomness
from spanreplay.instrumentation.shims.thread_pools import StoppedInPoolError
from spanreplay.recording import plugins
from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.refusal import RefusedInPoolError
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.ledger import Difference, Ledger
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.replay.reexecution.stubs import RecordedCalls
from spanreplay.replay.reexecution.uncalled import enter_unreached
from spanreplay.replay.reexecution.verdict import Verdict, verdict

ISOLATION: Final = "level 1: a Python audit hook; C extensions and handles opened before are not covered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What re-executing a function showed. A failure is a part of it; nothing of the replay's own is raised."""

    value: Any
    """What the function returned."""
    error: BaseException | None
    """What the function raised, if that was not the replay stopping it."""
    verdict: Verdict

    @property
    def equal(self) -> bool:
        """Nothing differs and nothing was refused."""
        return self.verdict.equal

    @property
    def differences(self) -> tuple[Difference, ...]:
        """In the order of the record."""
        return self.verdict.differences

    def __str__(self) -> str:
        """For people: what was answered, what differs, what was refused."""
        from spanreplay.replay.reports.verdict import render_verdict

        return render_verdict(self.verdict, (), colour=False)


def replay_session(
    runs: Sequence[Run],
    ledger: Ledger,
    *,
    focus: Collection[str] = (),
    claims: Claims | None = None,
    place: str = "",
    options: Options = STRICT,
    on_stop: Callable[[], None] | None = None,
    clock: RecordedClock | None = None,
) -> tuple[Session, RecordedCalls]:
    """A session that answers every call from ``runs``, redacting by the recorded policy, with no spans and no sink.

    Args:
        runs: one run, or all runs of a recorded command.
        ledger: what is matched and what differs is entered there.
        focus: ids of the runs that were asked for; empty for all of them.
        claims: shared with the other processes of the replay.
        place: causal path at which this process was started.
        options: how calls are compared and answered.
        on_stop: called once, when a difference stops the replay.
        clock: told of the times in the record that the replay comes to.
    """
    policy = next((r.redaction for r in runs if r.redaction), None)
    redactor = redactor_for(RedactionPolicy.from_json(policy) if policy else None)
    interceptor = RecordedCalls(
        runs,
        ledger,
        focus=focus,
        claims=claims,
        place=place,
        options=options,
        redact=lambda text: redactor.text(text)[0],
        on_stop=on_stop,
        clock=clock,
    )
    return Session(mode="replay", interceptors=(interceptor,), redactor=redactor, open_spans=False), interceptor


class Replayer:
    """Re-executes functions against recorded runs.

    Args:
        runs: one run, or all runs of a recorded command.
        allow_write: files and folders the agent may write.
        guard: refuse every other action on the outside.
        scratch: a folder the agent may write; a temporary one by default.
        accept_incomplete: steps whose record is known to lack something answer too, with what there is.
    """

    def __init__(
        self,
        runs: Run | Sequence[Run],
        *,
        allow_write: Sequence[Path] = (),
        guard: bool = True,
        scratch: Path | None = None,
        accept_incomplete: bool = False,
    ) -> None:
        self.runs = [runs] if isinstance(runs, Run) else list(runs)
        self.options = Options(allow_write=tuple(allow_write), guard=guard, isolate="hook", accept_incomplete=accept_incomplete)
        self.scratch = scratch

    def execution(self, *, whole_process: bool = False) -> "Execution":
        """A block in which every call is answered from the record: ``with replayer.execution() as execution: …``, once.

        Args:
            whole_process: calls of other contexts too, such as those of an event loop that was running before.
        """
        return Execution(self, whole_process=whole_process)

    def replay(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> ReplayResult:
        """Call ``function`` (a coroutine function is run to its end) with every call in it answered from the record.

        Raises:
            RuntimeError: a coroutine function was given inside a running event loop; use :meth:`replay_async` there.
        """
        if inspect.iscoroutinefunction(function) and _loop_is_running():
            raise RuntimeError("an event loop is running here: await replay_async(...) instead of replay(...)")
        with Execution(self) as execution:
            execution.value = _run(function, args, kwargs)
        return execution.result()

    async def replay_async(self, function: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> ReplayResult:
        """As :meth:`replay`, on the running event loop: in a notebook, or an asynchronous test."""
        with Execution(self) as execution:
            execution.value = await function(*args, **kwargs)
        return execution.result()


class Execution:
    """One re-execution: what is called inside the ``with`` block is answered, guarded and entered.

    An exception that ends the block is kept from the caller and a part of :meth:`result`; ``KeyboardInterrupt`` is not.

    Attributes:
        value: what the block gives as its value.
    """

    def __init__(self, replayer: Replayer, *, whole_process: bool = False) -> None:
        plugins.install("auto")
        self._whole_process = whole_process
        self.value: Any = None
        self._runs = replayer.runs
        self._options = options = replayer.options
        self._error: BaseException | None = None
        self._ledger = Ledger()
        self._ledger.enter("started", isolation=ISOLATION if self._options.guard else "none")
        self._clock = RecordedClock(self._runs)
        self._session, _ = replay_session(self._runs, self._ledger, options=options, clock=self._clock)
        self._resources = ExitStack()
        folder = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="spanreplay-"))
        self._guard = Guard(
            scratch=replayer.scratch or Path(folder),
            allow_write=options.allow_write,
            allow_connect=options.allow_connect,
            on_refusal=self._ledger.refuse,
        )

    def __enter__(self) -> Self:
        fallback = RunContext(run_id="replay", name="replay", fallback=True)
        self._inside = ExitStack()
        seed = next((run.seed for run in self._runs if run.seed), None)
        if seed is not None:
            self._inside.enter_context(randomness.seeded(seed))
        self._clock.start()
        self._inside.callback(self._clock.stop)
        root = self._session.root(fallback)
        if self._whole_process:
            self._inside.enter_context(everywhere(root))
        self._inside.enter_context(entered(root))
        if self._options.guard:
            self._inside.enter_context(self._guard.armed())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        self._inside.close()
        finish(self._session, self._guard, self._ledger)
        self._resources.close()
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        self._error = None if stopped_by_replay(error) else error
        return True

    def result(self) -> ReplayResult:
        """What it showed; the agent's own failure is a part of it."""
        enter_unreached(self._runs, self._ledger)
        return ReplayResult(value=self.value, error=self._error, verdict=self._verdict())

    def _verdict(self) -> Verdict:
        return verdict(self._ledger.totals, self._runs, accept_incomplete=self._options.accept_incomplete)


def finish(session: Session, guard: Guard | None, ledger: Ledger) -> None:
    """Enter what is known only at the end: exchanges whose response was collected unread, telemetry that was not sent."""
    http_exchange.end_collected()
    dropped = sum(http_telemetry.dropped(session).values()) + (guard.telemetry_dropped if guard is not None else 0)
    if dropped:
        ledger.enter("telemetry", count=dropped)


def stopped_by_replay(error: BaseException) -> bool:
    """True for the signals of a replay and of its guard, also inside the groups that task groups make of them."""
    if isinstance(error, BaseExceptionGroup):
        return any(stopped_by_replay(inner) for inner in error.exceptions)
    if isinstance(error, StoppedInPoolError | RefusedInPoolError):
        return isinstance(error.__cause__, ControlSignal | StoppedInPoolError)
    return isinstance(error, ControlSignal)


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = function(*args, **kwargs)
    return asyncio.run(_await(result)) if inspect.isawaitable(result) else result


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _await(awaitable: Any) -> Any:
    return await awaitable
