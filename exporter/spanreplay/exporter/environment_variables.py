"""Every environment variable that spanreplay reads, in one place.

The first group is for users. The second is how a recorded command and its child processes find each other; nobody sets these by hand.
A value that cannot be used is said once, through ``logging``, and the default is used: a wrong variable never breaks the agent.

This module is registered in the entry point group ``opentelemetry_environment_variables``.
"""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, cast

_log: Final = logging.getLogger("spanreplay")

# ---- for users ---------------------------------------------------------------------------------------------------

SPANREPLAY_STORE: Final = "SPANREPLAY_STORE"
"""Folder of the store. Default: ``.spanreplay`` in the working directory."""

SPANREPLAY_SPAN_CONTENT: Final = "SPANREPLAY_SPAN_CONTENT"
"""What OpenTelemetry spans carry of the content: ``full`` (everything: a run that comes back from a Collector replays exactly), ``view``
(default; the ``gen_ai.*`` view, not the wire, and no text above 256 KiB) or ``none``. The store has everything whatever this says."""

SPANREPLAY_RUN_PER: Final = "SPANREPLAY_RUN_PER"
"""What a run is: ``auto`` (default; the outermost agent, else the command), ``agent`` or ``command``."""

SPANREPLAY_DURABILITY: Final = "SPANREPLAY_DURABILITY"
"""``process`` (default): what is recorded survives the death of the process. ``disk``: of the machine, at the price of one sync a record.
``batch``: what is recorded within a second is written together, and lost if the process is killed meanwhile. The record of a call with an
effect is on disk before it runs in every case."""

SPANREPLAY_SHUTDOWN_SECONDS: Final = "SPANREPLAY_SHUTDOWN_SECONDS"
"""How long a process may take at its end to load a large journal into the database. Default 2; 0 leaves it to the next command."""

SPANREPLAY_REDACTION: Final = "SPANREPLAY_REDACTION"
"""``default``, ``none``, or a whole policy as a JSON object."""

SPANREPLAY_SESSION: Final = "SPANREPLAY_SESSION"
"""The conversation that what is recorded belongs to; becomes ``session.id`` on every step."""

SPANREPLAY_USER: Final = "SPANREPLAY_USER"
"""The user or service account it works for; becomes ``user.id`` on every step."""

SPANREPLAY_SHORTCUTS: Final = "SPANREPLAY_SHORTCUTS"
"""``off``: a replay lets the methods of model SDKs make their requests, also where the record answers them as they stand. Slower, and no
different otherwise."""

# ---- between a recorded command and its processes ----------------------------------------------------------------

SPANREPLAY_BOOTSTRAP: Final = "SPANREPLAY_BOOTSTRAP"
"""``record`` or ``replay``: what the start-up shim of a Python process does."""

SPANREPLAY_COMMAND_ID: Final = "SPANREPLAY_COMMAND_ID"
"""Id of the recorded command, 32 hex digits."""

SPANREPLAY_COMMAND_RUN: Final = "SPANREPLAY_COMMAND_RUN"
"""Id of the run that the command itself is, 32 hex digits."""

SPANREPLAY_COMMAND_ROOT: Final = "SPANREPLAY_COMMAND_ROOT"
"""``<trace id>-<span id>`` of the command's root span, then ``-<span id>`` of its parent if there is one."""

SPANREPLAY_RUN_ID: Final = "SPANREPLAY_RUN_ID"
"""Id of the run that a child process goes on with."""

SPANREPLAY_RUN_PATH: Final = "SPANREPLAY_RUN_PATH"
"""Causal path at which a child process was started."""

SPANREPLAY_PLACE: Final = "SPANREPLAY_PLACE"
"""``<pid>:<causal path>`` of the process that set it, to tell a program that replaced itself from a child."""

SPANREPLAY_HASH_SEED: Final = "SPANREPLAY_HASH_SEED"
"""``PYTHONHASHSEED`` that ``record`` has chosen for the command, so that sets have the same order in a replay."""

SPANREPLAY_SEED: Final = "SPANREPLAY_SEED"
"""What a replayed command's uuids and random numbers are made from."""

SPANREPLAY_SEED_SECRETS: Final = "SPANREPLAY_SEED_SECRETS"
"""``1``: what the module ``secrets`` gives is made from the recorded seed too, so that a replay has it again; set by ``record``."""

SPANREPLAY_TARGET: Final = "SPANREPLAY_TARGET"
"""Where live tools of a fork act, as ``--target`` names it; for the agent to look at."""

TRACEPARENT: Final = "TRACEPARENT"
"""W3C trace context of the parent, as of the OpenTelemetry specification "Environment Variables as Context Propagation Carriers"."""

DEFAULT_STORE: Final = ".spanreplay"

_Choice = TypeVar("_Choice", bound=str)
_told: Final[set[str]] = set()


def warn_once(variable: str, wanted: str, found: str, default: str) -> None:
    """Say that a variable has a value that cannot be used; once a process for each variable."""
    if variable not in _told:
        _told.add(variable)
        with contextlib.suppress(Exception):  # of the application's handlers
            _log.warning("%s is %r, which is none of: %s. Using %s", variable, found[:100], wanted, default)


def choice(variable: str, choices: Sequence[_Choice], default: _Choice, environ: Mapping[str, str] | None = None) -> _Choice:
    """The value of a variable that takes one of a few words, in any case.

    Args:
        variable: its name.
        choices: what it may be.
        default: used when it is unset, empty or something else.
        environ: where to look; the process's own environment by default.
    """
    found = (os.environ if environ is None else environ).get(variable, "").strip()
    if not found:
        return default
    if found.lower() in choices:
        return cast("_Choice", found.lower())
    warn_once(variable, ", ".join(choices), found, default)
    return default


def seconds(variable: str, default: float, environ: Mapping[str, str] | None = None) -> float:
    """The value of a variable that takes a number of seconds, 0 or more.

    Args:
        variable: its name.
        default: used when it is unset, empty or something else.
        environ: where to look; the process's own environment by default.
    """
    found = (os.environ if environ is None else environ).get(variable, "").strip()
    with contextlib.suppress(ValueError):
        if not found or 0 <= float(found) < float("inf"):
            return float(found or default)
    warn_once(variable, "a number of seconds, 0 or more", found, str(default))
    return default


def store_folder(given: str | Path | None = None) -> Path:
    """The store to write to, absolute, so that a later ``chdir`` does not move it. Raises nothing."""
    path = Path(given or os.environ.get(SPANREPLAY_STORE) or DEFAULT_STORE)
    try:
        return path.expanduser().absolute()
    except (OSError, RuntimeError) as error:  # the working folder is gone, or nobody knows whose home is meant
        with contextlib.suppress(Exception):  # of the application's handlers
            _log.warning("spanreplay could not find out where the store %s is (%s); an absolute %s helps", path, error, SPANREPLAY_STORE)
        return Path(os.devnull) / path.name
