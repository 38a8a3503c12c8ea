"""Starting and stopping a recording: the one place where all parts meet."""

import atexit
import logging
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary import scope as scopes
from spanreplay.boundary import session as sessions
from spanreplay.boundary.complaints import complain
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunPer, Session, SpanContent
from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.pipeline import announce
from spanreplay.exporter.redacting import Redaction
from spanreplay.instrumentation.shims import clock, processes, randomness, started
from spanreplay.recording import plugins, providers
from spanreplay.recording._config import Adapters, Config, configure
from spanreplay.recording.children import child_env
from spanreplay.recording.exits import ExitWatch
from spanreplay.recording.in_progress import Recording
from spanreplay.semconv import attributes as names
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
    """Records that could not be kept; once nothing is recorded any more, those of the last recording."""
    adapters: tuple[str, ...] = ()
    """Transports and adapters in place."""
    providers: int = 0
    """Tracer providers that tell the recorder of their spans."""


_lock = threading.RLock()
_current: Recording | None = None
_last_dropped = 0
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
        recording = Recording(config, command=command)
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
        recording.open(seed_random=seed_random)
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
    global _current, _last_dropped  # noqa: PLW0603
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
        recording.leave()
        recording.recorder.stop()
        recording.close()
        _last_dropped = recording.dropped()


def status() -> Status:
    """What recording is doing in this process."""
    with _lock:
        recording = _current
        if recording is None:
            return Status(recording=False, dropped=_last_dropped)
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


def _end_collected() -> None:
    """End the exchanges whose response was collected unread, where a transport was in use at all, and commands that are left running."""
    exchanges = sys.modules.get("spanreplay.instrumentation.http_exchange")
    if exchanges is not None:
        exchanges.end_collected()
    commands = sys.modules.get("spanreplay.instrumentation.shims.commands")
    if commands is not None:
        commands.leave()


def _end_left() -> None:
    """End the exchanges that are open as the process ends by itself: a replay leaves them open again."""
    exchanges = sys.modules.get("spanreplay.instrumentation.http_exchange")
    if exchanges is not None:
        exchanges.end_left()


def _at_exit() -> None:
    try:
        recording = _current
        if recording is not None:
            _end_collected()
            sessions.deactivate()  # daemon threads go on
            _end_left()
            recording.close()
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
        recording.forked(child)
        scopes.enter(child)
        scopes.process.root = child
        recording.tell_children()
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        complain(_log, "spanreplay does not record this forked process")


def _session() -> Session | None:
    return None if _current is None else _current.session
