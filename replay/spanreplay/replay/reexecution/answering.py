"""What answers the calls of a re-execution: a session, the interceptor that is fed from the record, and what of it is live."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from spanreplay.boundary.session import Session
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter.redacting import redactor_for
from spanreplay.instrumentation.shims.clock import real_time_ns
from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.hosts import model_hosts
from spanreplay.replay.reexecution.keeping import Keeping
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.replay.reexecution.stubs import RecordedCalls
from spanreplay.replay.reexecution.temporary import Moved, recorded_folder


def prepared(
    runs: Sequence[Run],
    ledger: Ledger,
    *,
    focus: Collection[str] = (),
    claims: Claims | None = None,
    place: str = "",
    options: Options = STRICT,
    on_stop: Callable[[], None] | None = None,
    clock: RecordedClock | None = None,
    keeping: Callable[[Redactor], Keeping] | None = None,
    environment: Mapping[str, str] | None = None,
    temporary: str | None = None,
) -> "Answering":
    """What answers every call from ``runs``, redacting by the recorded policy, with no spans; and, where nothing is live, no sink.

    Args:
        runs: one run, or all runs of a recorded command.
        ledger: what is matched and what differs is entered there.
        focus: ids of the runs that were asked for; empty for all of them.
        claims: shared with the other processes of the replay.
        place: causal path at which this process was started.
        options: how calls are compared and answered.
        on_stop: called once, when a difference stops the replay.
        clock: told of the times in the record that the replay comes to.
        keeping: makes what records the re-execution itself, where something of it is live.
        environment: of the program, which names where live models are; this process's by default.
        temporary: folder of the temporary files of the program, where it is another one than it would be without a replay.

    Raises:
        PolicyError: what is to be live does not fit the runs.
    """
    policy = next((r.redaction for r in runs if r.redaction), None)
    redactor = redactor_for(RedactionPolicy.from_json(policy) if policy else None)
    folder = None if temporary is None else recorded_folder(runs)
    if temporary is not None and folder is not None:
        redactor = Moved(redactor, temporary, folder)
    live, hosts = None, options.allow_connect
    if options.policy:
        if options.policy.lets_models_run:
            hosts = tuple(dict.fromkeys([*hosts, *model_hosts(runs, os.environ if environment is None else environment)]))
        live = Live(options.policy, runs, ledger, hosts=hosts if options.guard else None, on_leave=lambda: _leave(interceptor, clock))
    kept = None if keeping is None or not options.policy.is_kept else keeping(redactor)
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
        live=live,
        **({} if kept is None else {"begun": kept.begun}),
    )
    session = Session(
        mode="replay",
        sink=None if kept is None else kept.sink,
        interceptors=(interceptor,),
        redactor=redactor,
        open_spans=False,
        process_id=None if kept is None else kept.process_id,
        clock=time.time_ns if kept is None else real_time_ns,
    )
    session.told_by = clock
    session.on_taken = lambda name, given: ledger.enter("taken", recorded=name, actual=given)
    session.told_orders = interceptor.orders
    if live is None and kept is None:
        session.foresees = interceptor.foresees
    if kept is not None:
        kept.keeps(session)
    return Answering(session=session, interceptor=interceptor, live=live, keeping=kept, hosts=hosts)


def _leave(interceptor: RecordedCalls, clock: RecordedClock | None) -> None:
    """From here on nothing is as it was recorded: neither what comes first, nor the time."""
    interceptor.release()
    if clock is not None:
        clock.leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What a process of a re-execution runs in."""

    session: Session
    interceptor: RecordedCalls
    live: Live | None
    keeping: Keeping | None
    """What records it; ``None`` where nothing is live."""
    hosts: tuple[Address, ...]
    """What may be connected to."""

    @property
    def permits(self) -> Callable[[], bool] | None:
        """What the guard asks whether a live call acts; ``None`` where nothing is live."""
        return None if self.live is None else self.live.permits
