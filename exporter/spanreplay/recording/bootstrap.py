"""Start-up without code changes: what happens in a Python process of a command that is recorded or replayed.

Two ways lead here: ``_site/sitecustomize.py``, first on ``PYTHONPATH``, and the entry point ``opentelemetry_pre_instrument`` where
``opentelemetry-instrument`` has put a ``sitecustomize`` of its own in front.
"""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from spanreplay.exporter import environment_variables as env

_log: Final = logging.getLogger("spanreplay")

REPLAY_GROUP: Final = "spanreplay_bootstrap"
"""Entry point group in which the replay side registers what to call in a replayed process."""

_FORK_SERVER: Final = "from multiprocessing.forkserver import"
_HELPERS: Final = ("from multiprocessing.resource_tracker import", _FORK_SERVER)
_LAUNCHERS: Final = frozenset({"opentelemetry-instrument", "opentelemetry-bootstrap"})

_booted: int | None = None


def boot() -> None:
    """Start what ``SPANREPLAY_BOOTSTRAP`` names, once a process. Raises nothing while recording."""
    mode = os.environ.get(env.SPANREPLAY_BOOTSTRAP)
    if mode not in ("record", "replay") or _booted == os.getpid():
        return
    if is_helper(sys.orig_argv):
        if _booted is None and any(_FORK_SERVER in argument for argument in sys.orig_argv):
            _boot_what_is_forked(mode)
        return
    _boot(mode)


def _boot(mode: str) -> None:
    global _booted  # noqa: PLW0603 — once a process
    _booted = os.getpid()
    if mode == "replay":
        _boot_replay()
        return
    try:
        _start(command=True)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        _complain()


def _boot_what_is_forked(mode: str) -> None:
    """In multiprocessing's fork server: each child starts when it is told whose child it is."""
    from multiprocessing import spawn as module

    from spanreplay.instrumentation.shims.processes import ENVIRONMENT

    spawn: Any = module
    prepare = spawn.prepare

    def prepared(data: dict[str, Any]) -> None:
        environment = data.pop(ENVIRONMENT, None)
        if environment is not None:
            spawn.prepare = prepare
            os.environ.update(environment)
            _boot(mode)
        prepare(data)

    spawn.prepare = prepared


def pre_instrument() -> None:
    """Called by ``opentelemetry-instrument`` when the tracer provider is set, before it instruments libraries.

    Inside ``spanreplay record`` this is the start-up; otherwise recording starts if ``OTEL_TRACES_EXPORTER`` names ``duckdb``.
    """
    boot()
    try:
        from spanreplay.recording import providers

        exporters = {name.strip() for name in os.environ.get("OTEL_TRACES_EXPORTER", "").split(",")}
        if _booted != os.getpid() and "duckdb" in exporters and not is_helper(sys.orig_argv):
            _start(command=False)
        providers.attach_global()
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        _complain()


def _complain() -> None:
    from spanreplay.boundary.complaints import complain

    complain(_log, "spanreplay does not record this process (%s)", " ".join(sys.orig_argv)[:200])


def is_helper(arguments: Sequence[str]) -> bool:
    """Whether this process only serves others: multiprocessing's trackers, and launchers that become another program at once.

    Args:
        arguments: ``sys.orig_argv``.
    """
    return any(helper in argument for argument in arguments for helper in _HELPERS) or any(
        Path(argument).name in _LAUNCHERS for argument in arguments[:3]
    )


def _start(*, command: bool) -> None:
    from spanreplay.recording._config import configure
    from spanreplay.recording.control import begin

    config = configure(store=None, adapters="auto", content=None, redaction=None, run_per=None, session_attributes=None, durability=None)
    begin(config, command=command)


def _boot_replay() -> None:
    from importlib.metadata import entry_points

    found = tuple(entry_points(group=REPLAY_GROUP, name="replay"))
    if not found:  # going on would act on the world
        os.write(
            2, f"spanreplay: {sys.executable} has an incomplete spanreplay, so nothing there can be replayed; install it again\n".encode()
        )
        os._exit(125)
    try:
        start = found[0].load()
    except Exception as error:  # noqa: BLE001 — whatever it is, and whoever catches it: site.py would go on
        why = f"{type(error).__name__}: {error}"
        os.write(2, f"spanreplay: nothing can be replayed in {sys.executable}: {why}; install it again\n".encode())
        os._exit(125)
    start()
