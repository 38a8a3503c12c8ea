"""The run that a re-execution with live calls is itself: recorded whole, and linked to the run it was forked from."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from spanreplay.boundary.clock_reads import ClockReads
from spanreplay.boundary.session import CaptureSink, RunContext, Session
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.canonical import canonical_json
from spanreplay.content.redaction import Redactor
from spanreplay.exporter.recorder import Recorder
from spanreplay.recording.definition import program
from spanreplay.recording.place import Place
from spanreplay.recording.root import close_root, open_root
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import LinkRecord
from spanreplay.store.folder import JOURNALS, make_folder
from spanreplay.store.journal import get_writer

_UNSEEDED: Final = "0" * 32
_all: WeakSet["Keeping"] = WeakSet()


def answered_from(run: Run, step: Step) -> dict[str, Any]:
    """What is kept of a call that this recorded step has answered: where from, and what a fork had done there."""
    kept: dict[str, Any] = {names.STEP_ANSWERED_FROM_RUN: run.run_id, names.STEP_ANSWERED_FROM_STEP: step.seq}
    if step.changed is not None:
        kept[names.STEP_CHANGED] = canonical_json(step.changed)
    if step.typed_sent is not None:
        kept |= {names.STEP_SENT: step.typed_sent, names.STEP_NAME: step.name}
    if step.injected is not None:
        kept[names.STEP_INJECTED] = step.injected
    return kept


def new_place() -> Place:
    """The top of a new command, in this process."""
    run_id = os.urandom(16).hex()
    return Place(
        command_id=os.urandom(16).hex(),
        command_run=run_id,
        run_id=run_id,
        path="",
        trace_id=os.urandom(16).hex(),
        span_id=os.urandom(8).hex(),
    )


class Keeping:
    """Records one process of a re-execution into a store.

    Args:
        store: its folder; made where it is not there.
        place: of this process in the new command.
        redactor: that of the replay.
        ledger: the new runs are entered there.
    """

    def __init__(self, store: Path, place: Place, redactor: Redactor, ledger: Ledger) -> None:
        make_folder(store)
        self.folder = store / JOURNALS
        """Where this process writes."""
        self.place = place
        self._writer = get_writer(store)
        self._recorder = Recorder(self._writer, redactor=redactor)
        self._redactor = redactor
        self._ledger = ledger
        self.process_id = self._writer.process.process_id
        self._session: Session | None = None
        _all.add(self)

    def keeps(self, session: Session) -> None:
        """Whose steps it keeps, with what its program is told of the clock."""
        self._session = session
        session.clock_reads = ClockReads()

    def after_fork(self) -> None:
        """In a child that a live call has forked: another process, whose steps are in an order of their own."""
        self._recorder.after_fork()
        self.process_id = self._writer.process.process_id
        for session in () if self._session is None else (self._session, self._session.of_bodies()):
            session.process_id = self.process_id
            if session.clock_reads is not None:
                session.clock_reads.clear()

    @property
    def sink(self) -> CaptureSink:
        """What the session tells of its steps."""
        return self._recorder

    def context(self) -> RunContext:
        """What calls outside every agent run belong to."""
        place = self.place
        return RunContext(
            run_id=place.run_id,
            name=program(),
            command_id=place.command_id,
            fallback=place.run_id == place.command_run,
            state={"trace_id": int(place.trace_id, 16)},
        )

    def open(self, runs: Sequence[Run], seed: str | None, attributes: Mapping[str, Any]) -> None:
        """In the top process: write that it has begun.

        Args:
            runs: what is executed again; the command among them is what the new one is forked from.
            seed: what its randomness is made from.
            attributes: of the session.
        """
        if not self.place.top:
            return
        open_root(
            self._writer,
            self.place,
            redactor=self._redactor,
            resource=self._recorder.resource(),
            process_id=self.process_id,
            seed=seed or _UNSEEDED,
            attributes=attributes,
        )
        command = next((run for run in runs if run.is_command), None)
        self._link(self.place.trace_id, self.place.span_id, self.place.command_run, command)
        self._tell_file()

    def begun(self, root: LiveStep, run: Run) -> None:
        """A run of the new command stands for this one.

        Args:
            root: the step that is the new run; a call outside every agent run for what is the command itself.
            run: the recorded one.
        """
        if root.run is None:
            return
        if not root.run.fallback:
            self._link(root.trace_id, root.span_id, root.run.run_id, run)
        elif self.place.top:
            self._link(self.place.trace_id, self.place.span_id, self.place.command_run, run)
        else:
            self._ledger.enter("begun", run=self.place.command_run, of=run.run_id)

    def _link(self, trace_id: str, span_id: str, run_id: str, of: Run | None) -> None:
        if of is None:
            return
        if not of.is_command or of.steps:
            self._ledger.enter("begun", run=run_id, of=of.run_id)
        links = () if of.root is None else (LinkRecord(trace_id=of.root[0], span_id=of.root[1], attributes={names.FORKED_FROM: of.run_id}),)
        self._writer.patch_span(trace_id, span_id, attributes={names.FORKED_FROM: of.run_id}, links=links)

    def close(self, exit_code: int | None = None, *, whole: bool) -> None:
        """Write that this process has ended.

        Args:
            exit_code: of the process, where it is known here.
            whole: nobody else closes the root.
        """
        if whole and self.place.top:
            close_root(self._writer, self.place, exit_code=exit_code)
        if self._recorder.failures:
            self._writer.tell_lost(self._recorder.failures)
        self._writer.close()
        self._tell_file()

    def _tell_file(self) -> None:
        if self._writer.file is not None:
            self._ledger.enter("kept_in", file=self._writer.file)


def _after_fork() -> None:
    for keeping in list(_all):
        keeping.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
