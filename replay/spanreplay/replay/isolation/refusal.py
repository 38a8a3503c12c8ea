"""What the guard stopped: the entry in its list, and the exception that the acting code sees."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from spanreplay.boundary.errors import ControlSignal

Action: TypeAlias = Literal[
    "connect",
    "send",
    "lookup",
    "bind",
    "process",
    "signal",
    "write",
    "create",
    "delete",
    "rename",
    "link",
    "metadata",
    "database",
    "syslog",
    "memory",
    "control",
    "machine",
    "unknown",
]

NETWORK: Final[frozenset[Action]] = frozenset({"connect", "send", "lookup"})
FILES: Final[frozenset[Action]] = frozenset({"write", "create", "delete", "rename", "link", "metadata", "database"})

_PHRASES: Final[Mapping[Action, str]] = {
    "connect": "connect to",
    "send": "send a datagram to",
    "lookup": "look up the name",
    "bind": "listen on",
    "process": "start the process",
    "signal": "send a signal to",
    "write": "write",
    "create": "create",
    "delete": "delete",
    "rename": "rename",
    "link": "make the link",
    "metadata": "change owner, mode, times or attributes of",
    "database": "open the database",
    "syslog": "write to the system log:",
    "memory": "use",
    "control": "change",
    "machine": "change the machine's",
    "unknown": "do something that the guard could not read:",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something about to happen outside, as read from an audit event."""

    action: Action
    target: str
    """For people: ``host:port``, a path, a command line (cut at 200 characters)."""
    host: str = ""
    """The host of a network act, as given; empty for every other."""
    port: int = 0
    """The port of a network act; 0 where there is none or where it is given by name."""
    mild: bool = False
    """Ordinary programs do this without meaning anything by it: refuse it as an :class:`OSError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One act that was stopped."""

    event: str
    """The audit event, e.g. ``socket.connect``, or the wrapped function, e.g. ``_posixsubprocess.fork_exec``."""
    action: Action
    target: str
    fatal: bool
    """True: an attempt of the replayed code, raised as :class:`OutsideActionRefused`. False: a notice, raised as ``PermissionError``."""
    where: str
    """``file:line`` of the nearest frame that is neither the standard library's nor ours."""
    thread: str
    """Name of the thread."""

    def describe(self) -> str:
        """One line for people, e.g. ``tried to connect to 10.0.0.1:443 at /app/tools.py:12 (thread MainThread)``."""
        return f"tried to {_PHRASES[self.action]} {self.target} at {self.where} (thread {self.thread})"


class OutsideActionRefused(ControlSignal):
    """Raised in the code that tried to act outside.

    A ``BaseException``, so that an agent's ``except Exception`` does not take it for a failed tool. Threads, callbacks, ``__del__`` and
    ``gather(return_exceptions=True)`` lose it all the same: read ``Guard.refusals``, never rely on seeing this.
    """

    def __init__(self, refusal: Refusal) -> None:
        self.refusal: Final = refusal
        super().__init__(f"{self._said(refusal)}. {self._advice(refusal)}")

    @staticmethod
    def _said(refusal: Refusal) -> str:
        return f"a replay acts on nothing outside, but the code {refusal.describe()}"

    @staticmethod
    def _advice(refusal: Refusal) -> str:
        if refusal.action in FILES:
            return "Write below TMPDIR, or name the path with --allow-write."
        advice = "Make it part of a recorded step (for example a tool), so that the replay answers it from the record"
        if refusal.action in ("connect", "lookup") and "/" not in refusal.target:  # no socket of this machine
            return f"{advice}; or, where it asks a model that is live, let it: --allow-host {shlex.quote(refusal.target)}."
        return f"{advice}."


class RefusedInPoolError(RuntimeError):
    """Stands for the refusal in whoever waits for a ``multiprocessing.pool.ThreadPool``.

    Its workers answer with ``Exception`` only: a ``BaseException`` ends the worker, and the waiting code would wait for ever.
    """
