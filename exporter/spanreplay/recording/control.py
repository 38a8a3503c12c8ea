"""Starting and stopping a recording: the one place where all parts meet."""

import atexit
import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary import session as sessions
from spanreplay.boundary.complaints import complain
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunContext, RunPer, Session, SpanContent
from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.pipeline import announce
from spanreplay.exporter.recorder import Recorder
from spanreplay.exporter.redacting import Redaction
from spanreplay.instrumentation.shims import clock, processes, randomness, started
from spanreplay.recording import plugins, providers
from spanreplay.recording._config import Adapters, Config, configure
from spanreplay.recording.children import child_env
from spanreplay.recording.definition import program
from spanreplay.recording.exits import ExitWatch
from spanreplay.recording.place import Place, find_place, traceparent
from spanreplay.recording.plugins import Installed
from spanreplay.recording.root import close_root, open_root
from spanreplay.semconv import attributes as names
from spanreplay.store.ending import compact_at_end
from spanreplay.store.journal import JournalWriter, get_writer
from spanreplay.store.journal_file import Durability

_log: Final = logging.getLogger("spanreplay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What recording is doing in this process."""

    recording: bool
    store: Path | None = None
    """Folder of the store."""
    steps: int = 0
    """Steps begun since the start."""
    spans: int = 0
    """Spans of other instrumentation kept since the start."""
    dropped: int = 0
    """Records that could not be kept."""
    adapters: tuple[str, ...] = ()
    """Transports and adapters in place."""
    providers: int = 0
    """Tracer providers that tell the recorder of their spans."""


class _Recording:
    """A recording in progress."""

    def __init__(self, config: Config, *, command: bool) -> None:
        self.config = config
        self.command = command
        """Started by the start-up shim, for a command that somebody else watches."""
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
        self.context: Token[Any] | None = None
        self.environment: dict[str, str | None] = {}
        self.run: RunContext | None = None

    def dropped(self) -> int:
        return self.recorder.failures + self.session.failures + self.writer.dropped - self.dropped_before

    def root_scope(self) -> Scope:
        place = self.place
        self.run = run = RunContext(
            run_id=place.run_id,
            name=program(),
            command_id=place.command_id,
            fallback=place.run_id == place.command_run,
            state={"trace_id": int(place.trace_id, 16)},
        )
        return self.session.root(run, place.path)


_lock = threading.RLock()
_current: _Recording | None = None
_fork_hooked = False
_reserved = threading.local()


def start(
    *,
    store: str | Path | None = None,
    tracer_provider: object = None,
    adapters: Adapters = "auto",
    content: SpanContent | None = None,
    redaction: Redaction | None = None,
    run_per: RunPer | None = None,
    session_attributes: Mapping[str, Any] | None = None,
    durability: Durability | None = None,
    seed_random: bool = False,
) -> None:
    """Record every run of this process from now on. Does nothing while one is replayed.

    While one is being recorded already, as under ``spanreplay record``, ``session_attributes`` are added to the steps that follow, and
    nothing else is done.

    The application's own telemetry is left as it is: the global tracer provider is never set, and the recorder is told of the spans of
    every provider that exists or comes.

    Args:
        store: folder of the store; default ``SPANREPLAY_STORE``, else ``./.spanreplay``.
        tracer_provider: a provider made before this call that is not the global one.
        adapters: ``auto`` for every framework adapter, ``none``, or names.
        content: what the spans carry of the content: ``full``, ``view`` or ``none``; default ``SPANREPLAY_SPAN_CONTENT``, else ``view``.
        redaction: ``default``, ``none`` or a policy; default ``SPANREPLAY_REDACTION``, else ``default``.
        run_per: what a run is: ``auto``, ``agent`` or ``command``; default ``SPANREPLAY_RUN_PER``, else ``auto``.
        session_attributes: added to every step: session, user, target environment.
        durability: what a kill or a loss of power may take: ``process``, nothing that has ended unless the machine dies; ``disk``, nothing;
            ``batch``, what was recorded within the last second. Whatever it is, a call with an effect is on disk before it is made.
            Default ``SPANREPLAY_DURABILITY``, else ``process``.
        seed_random: what is recorded until :func:`stop` is one run as a whole, and may draw from ``random`` seeded anew, as a recorded
            command does; its replay then draws the same. What it reads of the clock is kept too.

    Raises:
        ValueError: an argument is none of its choices. Nothing else raises: a store that cannot be written is logged and counted.
    """
    config = configure(
        store=store,
        adapters=adapters,
        content=content,
        redaction=redaction,
        run_per=run_per,
        session_attributes=session_attributes,
        durability=durability,
    )
    with _lock:
        if _current is not None and session_attributes:  # another dict: calls are being made
            _current.session.attributes = {**_current.session.attributes, **session_attributes}
        begin(config, tracer_provider=tracer_provider, command=False, seed_random=seed_random)


def begin(config: Config, *, tracer_provider: object = None, command: bool, seed_random: bool = False) -> None:
    """Start a recording whose settings are decided.

    Args:
        config: the settings.
        tracer_provider: see :func:`start`.
        command: the process is part of a command that somebody else watches; :func:`stop` then leaves the recording on.
        seed_random: see :func:`start`.
    """
    global _current  # noqa: PLW0603 — one recording for the process
    with _lock:
        running = _current
        if running is not None:
            if running.config.store != config.store:
                _log.warning("spanreplay records into %s already; %s is not used", running.config.store, config.store)
            providers.attach(running.recorder, tracer_provider)
            return
        if _replaying():
            return
        recording = _Recording(config, command=command)
        recording.installed = plugins.install(config.adapters)
        secrets = command and os.environ.get(env.SPANREPLAY_SEED_SECRETS) == "1"
        randomness.install(recording.seed, fresh=command or seed_random, secrets=secrets)
        if seed_random:
            recording.session.of_runs = {names.RUN_SEED: recording.seed, names.RUN_RANDOM_SEEDED: True}
        if command or seed_random:
            clock.install(recording.session)
        processes.complete_with(child_env)
        _current = recording
        _hook_fork()
        announce(config.store, recording.recorder)
        if recording.place.top:
            open_root(
                recording.writer,
                recording.place,
                redactor=config.redactor,
                resource=recording.recorder.resource(),
                process_id=recording.session.process_id,
                seed=recording.seed,
                attributes={**config.attributes, **({names.RUN_RANDOM_SEEDED: True} if seed_random else {})},
            )
        else:
            recording.context = _enter_parent()
        _tell_children(recording)
        if not command:
            recording.exits = ExitWatch()
            recording.exits.install()
        providers.attach(recording.recorder, tracer_provider)
        sessions.activate(recording.root_scope())
        atexit.register(_at_exit)


def stop() -> None:
    """Stop recording and take everything out again. Does nothing when nothing is recorded, or when a command as a whole is."""
    with _lock:
        if _current is not None and not _current.command:
            finish()


def finish() -> None:
    """Stop, whoever started it."""
    global _current  # noqa: PLW0603
    with _lock:
        recording = _current
        if recording is None:
            return
        _current = None
        _end_collected()
        atexit.unregister(_at_exit)
        sessions.deactivate()
        providers.detach()
        processes.complete_with(None)
        recording.installed.uninstall()
        randomness.uninstall()
        clock.uninstall()
        if recording.exits is not None:
            recording.exits.uninstall()
        _leave_parent(recording)
        _restore_environment(recording)
        recording.recorder.stop()
        _close(recording)


def status() -> Status:
    """What recording is doing in this process."""
    with _lock:
        recording = _current
        if recording is None:
            return Status(recording=False)
        return Status(
            recording=True,
            store=recording.config.store,
            steps=recording.recorder.steps,
            spans=recording.recorder.spans,
            dropped=recording.dropped(),
            adapters=plugins.adapters_of(recording.installed),
            providers=providers.attached(),
        )


# ---- parts -------------------------------------------------------------------------------------------------------


def _replaying() -> bool:
    root = scopes.process.root
    return root is not None and root.session.mode == "replay"


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


def _leave_parent(recording: _Recording) -> None:
    if recording.context is not None:
        from opentelemetry import context

        try:
            context._RUNTIME_CONTEXT.detach(recording.context)  # the public one logs when called from another context
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            _log.debug("spanreplay is stopped in another context than it was started in", exc_info=True)


def _tell_children(recording: _Recording) -> None:
    for name, value in recording.place.environment().items():
        recording.environment.setdefault(name, os.environ.get(name))
        os.environ[name] = value


def _restore_environment(recording: _Recording) -> None:
    for name, value in recording.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _close(recording: _Recording) -> None:
    place = recording.place
    dropped = recording.recorder.failures + recording.session.failures  # what the journal dropped, it tells itself
    if place.top and recording.pid == os.getpid():
        untaped = None if recording.run is None else recording.run.untaped_json()
        if untaped is not None:
            untaped = recording.config.redactor.text(untaped)[0]
            recording.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_UNTAPED: untaped})
        if recording.session.clock_reads:
            recording.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_CLOCK: recording.session.clock_reads.take()})
        if recording.session.orders:
            recording.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_ORDER: recording.session.orders.take()})
        if not recording.command:
            code = None if recording.exits is None else recording.exits.code
            close_root(recording.writer, place, exit_code=code, dropped=dropped)
        elif dropped:  # whoever started the command closes its span, and knows nothing of this
            recording.writer.patch_span(place.trace_id, place.span_id, attributes={names.RUN_DROPPED: dropped})
    recording.writer.close()
    if not recording.command and recording.pid == os.getpid():
        compact_at_end(recording.config.store, recording.config.shutdown_s)


def _end_collected() -> None:
    """End the exchanges whose response was collected unread, where a transport was in use at all, and commands that are left running."""
    exchanges = sys.modules.get("spanreplay.instrumentation.http_exchange")
    if exchanges is not None:
        exchanges.end_collected()
    commands = sys.modules.get("spanreplay.instrumentation.shims.commands")
    if commands is not None:
        commands.leave()


def _at_exit() -> None:
    try:
        recording = _current
        if recording is not None:
            _end_collected()
            _close(recording)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        complain(_log, "spanreplay could not write that the process has ended")


# ---- fork --------------------------------------------------------------------------------------------------------


def _hook_fork() -> None:
    global _fork_hooked  # noqa: PLW0603 — cannot be taken back
    if not _fork_hooked and hasattr(os, "register_at_fork"):
        _fork_hooked = True
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _before_fork() -> None:
    try:
        scope = scopes.current_scope() if _current is not None else None
        _reserved.scope = None if scope is None or scope.session is not _session() else scope.fork("fork")
        started.forking(sys._getframe(1))
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        complain(_log, "spanreplay could not follow a fork")


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 — another thread may have held it
    _lock = threading.RLock()
    providers.after_fork()
    started.forked()
    recording = _current
    child: Scope | None = getattr(_reserved, "scope", None)
    if recording is None or child is None:
        return
    try:
        recording.recorder.after_fork()
        recording.session.process_id = recording.writer.process.process_id
        recording.session.failures = recording.dropped_before = 0
        recording.session.of_runs = {}
        run = child.run
        recording.place = Place(
            command_id=recording.place.command_id,
            command_run=recording.place.command_run,
            run_id=recording.place.run_id if run is None else run.run_id,
            path=child.path,
            trace_id=recording.place.trace_id,
            span_id=recording.place.span_id,
        )
        scopes.enter(child)
        scopes.process.root = child
        _tell_children(recording)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        complain(_log, "spanreplay does not record this forked process")


def _session() -> Session | None:
    return None if _current is None else _current.session
