"""A recording in progress: what it is made of, and what it does to its process and to those that are started there."""

import logging
import os
from contextvars import Token
from typing import Any, Final

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunContext, Session
from spanreplay.content import codec
from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.recorder import Recorder
from spanreplay.instrumentation.shims import randomness
from spanreplay.recording._config import Config
from spanreplay.recording.definition import program
from spanreplay.recording.exits import ExitWatch, tell_of_crash
from spanreplay.recording.place import Place, find_place, traceparent
from spanreplay.recording.plugins import Installed
from spanreplay.recording.root import close_root, open_root
from spanreplay.semconv import attributes as names
from spanreplay.store.ending import compact_at_end
from spanreplay.store.journal import JournalWriter, get_writer

_log: Final = logging.getLogger("spanreplay")


class Recording:
    """A recording in progress.

    Args:
        config: its settings.
        command: it was started by the start-up shim, for a command that somebody else watches.
    """

    def __init__(self, config: Config, *, command: bool) -> None:
        self.config = config
        self.command = command
        self.pid = os.getpid()
        self.place: Place = find_place()
        self.writer: JournalWriter = get_writer(config.store, durability="batch" if config.durability == "batch" else "process")
        self.dropped_before = self.writer.dropped
        self.recorder = Recorder(self.writer, redactor=config.redactor, durable=config.durability == "disk")
        self.session = Session(
            mode="record",
            sink=self.recorder,
            redactor=config.redactor,
            content=config.content,
            run_per=config.run_per,
            process_id=self.writer.process.process_id,
            attributes=config.attributes,
        )
        self.seed = randomness.new_seed()
        self.installed = Installed()
        self.exits: ExitWatch | None = None
        self._context: Token[Any] | None = None
        self._environment: dict[str, str | None] = {}
        self._run: RunContext | None = None

    def dropped(self) -> int:
        """How many records of it could not be kept."""
        return self.recorder.failures + self.session.failures + self.writer.dropped - self.dropped_before

    def root_scope(self) -> Scope:
        """Where the calls of this process begin."""
        place = self.place
        self._run = run = RunContext(
            run_id=place.run_id,
            name=program(),
            command_id=place.command_id,
            fallback=place.run_id == place.command_run,
            state={"trace_id": int(place.trace_id, 16)},
        )
        return self.session.root(run, place.path)

    def open(self, *, seed_random: bool) -> None:
        """Take its place: write that a command has begun, or go on below what has started this process; and tell those started here.

        Args:
            seed_random: see :func:`spanreplay.recording.control.start`.
        """
        if self.place.top:
            open_root(
                self.writer,
                self.place,
                redactor=self.config.redactor,
                resource=self.recorder.resource(),
                process_id=self.session.process_id,
                seed=self.seed,
                attributes={**self.config.attributes, **self._more(seed_random=seed_random)},
            )
        else:
            self._context = _enter_parent()
        self.tell_children()

    def _more(self, *, seed_random: bool) -> dict[str, str | bool]:
        more: dict[str, str | bool] = {names.RUN_RANDOM_SEEDED: True} if seed_random else {}
        if self.command:  # whose end nobody but its process sees
            more[names.RUN_ERRORS_KEPT] = True
            tell_of_crash(self._crashed)
        return more

    def _crashed(self, error: BaseException) -> None:
        text = self.config.redactor.typed(codec.encode_exception(error).text)[0]
        self.writer.patch_span(self.place.trace_id, self.place.span_id, attributes={names.RUN_ERROR + self.session.process_id: text})

    def leave(self) -> None:
        """Give the process back what was taken of it."""
        if self._context is not None:
            from opentelemetry import context

            try:
                context._RUNTIME_CONTEXT.detach(self._context)  # the public one logs when called from another context
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                _log.debug("spanreplay is stopped in another context than it was started in", exc_info=True)
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def close(self) -> None:
        """Write what is known at the end, and load the store where nobody else does."""
        place = self.place
        if place.top and self.pid == os.getpid():
            untaped = None if self._run is None else self._run.untaped_json()
            if untaped is not None:
                untaped = self.config.redactor.text(untaped)[0]
                self.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_UNTAPED: untaped})
            if self.session.clock_reads:
                self.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_CLOCK: self.session.clock_reads.take()})
            if self.session.orders:
                orders = self.config.redactor.text(self.session.orders.take())[0]
                self.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_ORDER: orders})
            if not self.command:
                code = None if self.exits is None else self.exits.code
                close_root(self.writer, place, exit_code=code)
        dropped = self.recorder.failures + self.session.failures  # what the journal dropped, it tells itself
        if dropped:
            self.writer.tell_lost(dropped)
        self.writer.close()
        if not self.command and self.pid == os.getpid():
            compact_at_end(self.config.store, self.config.shutdown_s)

    def forked(self, child: Scope) -> None:
        """In a child that this process has forked: go on in a place of its own.

        Args:
            child: where its calls begin.
        """
        self.recorder.after_fork()
        self.session.process_id = self.writer.process.process_id
        self.session.failures = self.dropped_before = 0
        self.session.of_runs = {}
        run = child.run
        self.place = Place(
            command_id=self.place.command_id,
            command_run=self.place.command_run,
            run_id=self.place.run_id if run is None else run.run_id,
            path=child.path,
            trace_id=self.place.trace_id,
            span_id=self.place.span_id,
        )

    def tell_children(self) -> None:
        """Say in the environment, for processes that are started here, where they are."""
        for name, value in self.place.environment().items():
            self._environment.setdefault(name, os.environ.get(name))
            os.environ[name] = value


def _enter_parent() -> Token[Any] | None:
    """In a child process: what is called here belongs to the span that was current where the process was started."""
    parent = traceparent(os.environ.get(env.TRACEPARENT, ""))
    if parent is None:
        return None
    from opentelemetry import context, trace

    if trace.get_current_span().get_span_context().is_valid:
        return None
    span = trace.SpanContext(
        trace_id=int(parent[0], 16), span_id=int(parent[1], 16), is_remote=True, trace_flags=trace.TraceFlags(parent[2])
    )
    return context.attach(trace.set_span_in_context(trace.NonRecordingSpan(span)))
