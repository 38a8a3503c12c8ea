"""Re-execution in this process: a function of the user's, with every call in it answered from recorded runs.

Isolation is level 1 here (see :mod:`spanreplay.replay.isolation.guard`), and the result says so.
"""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.session import RunContext, Session, entered, everywhere
from spanreplay.exporter.environment_variables import store_folder
from spanreplay.instrumentation import http_exchange, http_telemetry
from spanreplay.instrumentation.shims import commands, randomness
from spanreplay.instrumentation.shims.thread_pools import StoppedInPoolError
from spanreplay.recording import plugins
from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.isolation.refusal import RefusedInPoolError
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.answering import prepared
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.crashes import crash
from spanreplay.replay.reexecution.cut import cut_of, judged
from spanreplay.replay.reexecution.keeping import Keeping, new_place
from spanreplay.replay.reexecution.ledger import Difference, Ledger
from spanreplay.replay.reexecution.options import Options
from spanreplay.replay.reexecution.policy import NOTHING, Fault, Policy
from spanreplay.replay.reexecution.uncalled import enter_unreached
from spanreplay.replay.reexecution.verdict import Verdict, verdict
from spanreplay.replay.reexecution.versions_now import compare, present_code, recorded_command, recorded_redactor

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

    @property
    def runs(self) -> Mapping[str, str]:
        """Ids of the runs that a re-execution with live calls was recorded as, to those they were forked from."""
        return self.verdict.begun

    def __str__(self) -> str:
        """For people: what was answered, what differs, what was refused."""
        from spanreplay.replay.reports.verdict import render_verdict

        return render_verdict(self.verdict, (), colour=False)


class Replayer:
    """Re-executes functions against recorded runs.

    Args:
        runs: one run, or all runs of a recorded command.
        allow_write: files and folders the agent may write.
        guard: refuse every other action on the outside.
        scratch: a folder the agent may write; none by default.
        accept_incomplete: steps whose record is known to lack something answer too, with what there is.
        allow_connect: further hosts and ports that the agent, and its live model calls, may connect to.
        policy: what is live; nothing by default. :meth:`fork` is the short way to one.
        store: where the run that a re-execution with live calls makes is kept; ``SPANREPLAY_STORE``, else ``./.spanreplay``, by default.
        ignore: places of inputs, and texts, that may differ, see :class:`spanreplay.replay.reexecution.comparing.Comparing`.
        all_differences: a call that differs from the step at its place is answered all the same, so that later differences are found too.

    Raises:
        PolicyError: the policy does not fit the runs.
        PatternError: one of ``ignore`` names no place.
    """

    def __init__(
        self,
        runs: Run | Sequence[Run],
        *,
        allow_write: Sequence[Path] = (),
        guard: bool = True,
        scratch: Path | None = None,
        accept_incomplete: bool = False,
        allow_connect: Sequence[Address] = (),
        policy: Policy = NOTHING,
        store: str | Path | None = None,
        ignore: Sequence[str] = (),
        all_differences: bool = False,
    ) -> None:
        self.runs = [runs] if isinstance(runs, Run) else list(runs)
        self.options = Options(
            allow_write=tuple(allow_write),
            allow_connect=tuple(allow_connect),
            guard=guard,
            isolate="hook",
            accept_incomplete=accept_incomplete,
            comparing=_comparing(tuple(ignore), all_differences=all_differences),
            policy=policy,
        )
        self.scratch = scratch
        self.store = store
        if policy:
            cut_of(self.runs, policy)

    def fork(
        self,
        *,
        at: int,
        run: str | None = None,
        changes: Mapping[str, Any] | None = None,
        faults: Sequence[str] = (),
        allow_effect: Sequence[str] = (),
        target: str | None = None,
        stub: Sequence[str] = (),
        refuse: Sequence[str] = (),
    ) -> "Replayer":
        """The same, with the steps before ``at`` answered from the record and everything from there on live.

        Args:
            at: ``seq`` of the step.
            run: id of the run whose step that is, where several were given.
            changes: ``model``, ``prompt`` and parameters of the model calls from there on; ``result`` of the tool at that step.
            faults: what goes wrong, such as ``timeout`` at that step, or ``error@9``; see :mod:`spanreplay.replay.reexecution.faults`.
            allow_effect: tools that may act though their effect is above ``read``.
            target: where they act, which is not where the run was recorded.
            stub: tools that are answered there too, where the very call was recorded.
            refuse: tools that may not be called there.

        Raises:
            PolicyError: the run has no such step, or one of these is none.
        """
        made = copy.copy(self)
        policy = Policy(
            run=run,
            at=at,
            changes=dict(changes or {}),
            faults=tuple(Fault.read(fault, at) for fault in faults),
            allow_effect=tuple(allow_effect),
            target=target,
            stub=tuple(stub),
            refuse=tuple(refuse),
        )
        cut_of(self.runs, policy)
        made.options = replace(self.options, policy=policy)
        return made

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
        plugins.install("auto", shortcuts=True)
        self._whole_process = whole_process
        self.value: Any = None
        self._runs = replayer.runs
        self._options = options = replayer.options
        self._error: BaseException | None = None
        self._ledger = Ledger()
        self._ledger.enter("started", isolation=ISOLATION if self._options.guard else "none")
        self._clock = RecordedClock(self._runs)
        self._answering = made = prepared(
            self._runs,
            self._ledger,
            options=options,
            clock=self._clock,
            keeping=lambda redactor: Keeping(store_folder(replayer.store), new_place(), redactor, self._ledger),
        )
        self._session, self._keeping = made.session, made.keeping
        self._guard = Guard(
            scratch=replayer.scratch,
            allow_write=[*options.allow_write, *([] if made.keeping is None else [made.keeping.folder])],
            allow_connect=made.hosts,
            permits=made.permits,
            on_refusal=self._ledger.refuse,
        )

    def __enter__(self) -> Self:
        fallback = RunContext(run_id="replay", name="replay", fallback=True) if self._keeping is None else self._keeping.context()
        self._inside = ExitStack()
        seeded = next((run for run in self._runs if run.seed), None)
        seed = None if seeded is None else seeded.seed
        if seeded is not None and seed is not None:
            self._inside.enter_context(randomness.seeded(seed, fresh=seeded.random_seeded))
        if self._keeping is not None:
            self._keeping.open(self._runs, seed, {})
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
        if self._keeping is not None:
            self._keeping.close(whole=True)
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        self._error = None if stopped_by_replay(error) else error
        return True

    def result(self) -> ReplayResult:
        """What it showed; the agent's own failure is a part of it."""
        if self._error is not None:
            self._ledger.enter("crashed", **crash(self._error))
        self._judged = judged(self._runs, self._options.policy, self._ledger.totals)
        enter_unreached(self._judged, self._ledger, all_differences=self._options.comparing.all_differences)
        return ReplayResult(value=self.value, error=self._error, verdict=self._verdict())

    def _verdict(self) -> Verdict:
        options, totals = self._options, self._ledger.totals
        command = recorded_command(self._runs)
        if totals.differences and command is not None:
            code = present_code(self._runs, Path.cwd())
            totals.versions = compare(self._runs, recorded_redactor(self._runs), code, in_process=True)
        whole = options.accept_incomplete or options.policy.is_fork
        return verdict(totals, self._judged, accept_incomplete=whole, command=command, policy=options.policy)


def finish(session: Session, guard: Guard | None, ledger: Ledger) -> None:
    """Enter what is known only at the end: exchanges whose response was collected unread, commands left running, telemetry not sent."""
    http_exchange.end_collected()
    commands.leave()
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


def _comparing(ignore: tuple[str, ...], *, all_differences: bool) -> Comparing:
    if not ignore and not all_differences:
        return EXACT
    return Comparing(mode="tolerant" if ignore else "strict", ignore=ignore, all_differences=all_differences)


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
