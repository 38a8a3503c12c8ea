"""Re-execution in this process: a function of the user's, with every call in it answered from recorded runs.

Isolation is level 1 (see :mod:`spanreplay.replay.isolation.guard`), and the result says so.
"""

import asyncio
import inspect
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.session import RunContext, Session, entered
from spanreplay.content.redaction import RedactionPolicy
from spanreplay.exporter.redacting import redactor_for
from spanreplay.instrumentation import http_exchange, http_telemetry
from spanreplay.instrumentation.shims.thread_pools import StoppedInPoolError
from spanreplay.recording import plugins
from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.refusal import Refusal, RefusedInPoolError
from spanreplay.replay.ledger import Difference, Ledger
from spanreplay.replay.model import Run
from spanreplay.replay.stubs import RecordedCalls, enter_unreached
from spanreplay.replay.verdict import Verdict, verdict

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


def replay_session(runs: Sequence[Run], ledger: Ledger) -> tuple[Session, RecordedCalls]:
    """A session that answers every call from ``runs``, redacting by the recorded policy, with no spans and no sink."""
    policy = next((r.redaction for r in runs if r.redaction), None)
    redactor = redactor_for(RedactionPolicy.from_json(policy) if policy else None)
    interceptor = RecordedCalls(runs, ledger)
    return Session(mode="replay", interceptors=(interceptor,), redactor=redactor, open_spans=False), interceptor


class Replayer:
    """Re-executes functions against recorded runs.

    Args:
        runs: one run, or all runs of a recorded command.
        allow_write: files and folders the agent may write.
        guard: refuse every other action on the outside.
        scratch: a folder the agent may write; a temporary one by default.
    """

    def __init__(
        self, runs: Run | Sequence[Run], *, allow_write: Sequence[Path] = (), guard: bool = True, scratch: Path | None = None
    ) -> None:
        self._runs = [runs] if isinstance(runs, Run) else list(runs)
        self._allow_write = tuple(allow_write)
        self._guard = guard
        self._scratch = scratch

    def replay(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> ReplayResult:
        """Call ``function`` (a coroutine function is run to its end) with every call in it answered from the record."""
        plugins.install("auto")
        with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
            ledger = Ledger()
            ledger.enter("started", isolation=ISOLATION if self._guard else "none")
            session, _ = replay_session(self._runs, ledger)
            fallback = RunContext(run_id="replay", name="replay", fallback=True)
            value: Any = None
            error: BaseException | None = None
            guard = Guard(scratch=self._scratch or Path(folder), allow_write=self._allow_write, on_refusal=lambda r: _enter(ledger, r))
            with entered(session.root(fallback)):
                try:
                    if self._guard:
                        with guard.armed():
                            value = _run(function, args, kwargs)
                    else:
                        value = _run(function, args, kwargs)
                except KeyboardInterrupt:
                    raise
                except BaseException as raised:  # noqa: BLE001 — the agent's own failure is a part of the result
                    error = None if stopped_by_replay(raised) else raised
            finish(session, guard, ledger)
            enter_unreached(self._runs, ledger)
        return ReplayResult(value=value, error=error, verdict=verdict(ledger.totals, self._runs))


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


def _enter(ledger: Ledger, refusal: Refusal) -> None:
    ledger.enter("refused" if refusal.fatal else "notice", **{k: str(v) for k, v in asdict(refusal).items()}, text=refusal.describe())


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = function(*args, **kwargs)
    return asyncio.run(_await(result)) if inspect.isawaitable(result) else result


async def _await(awaitable: Any) -> Any:
    return await awaitable
