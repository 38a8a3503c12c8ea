"""Level 1 of the guard: a Python audit hook that stops a replay from acting on anything outside.

Refused while a guard is armed: connecting and sending (Unix sockets and loopback too), looking up names, listening on anything but
loopback, starting processes, signalling other processes, and writing, creating, deleting, renaming, linking or changing files outside
scratch, SQLite databases included.

Left alone: reading; scratch, ``--allow-write`` paths, ``/dev/null``, ``/dev/tty``, stdout and stderr; SQLite in memory, in scratch or
read-only; the ``.pyc`` files that imports write, and temporary files of probes; creating a socket, ``socketpair``, listening on loopback,
``dlopen``; looking up numeric addresses and loopback names; signals to the own process; and acts that fail anyway without effect
(creating a directory that exists, deleting a file that does not).

How a refusal looks from inside:

- An attempt: :class:`~spanreplay.replay.isolation.refusal.OutsideActionRefused`, a ``BaseException``, entered in
  :attr:`Guard.refusals` before it is raised, because threads, callbacks, ``__del__`` and ``gather(return_exceptions=True)`` lose
  exceptions. (Waiting for a ``multiprocessing.pool.ThreadPool``: ``RefusedInPoolError``, as its workers answer with nothing else.)
- A notice: ``PermissionError``, entered in :attr:`Guard.notices`, when an import runs between the act and the user's own code (which is
  neither standard library nor below site-packages), for known probes (``uname -p``, ``ldconfig``, Logfire's ``git rev-parse``; the list
  is in :mod:`spanreplay.instrumentation.probes`) and for looking up the machine's own name.
- Telemetry of exporters and vendors (:data:`~spanreplay.replay.isolation.known.TELEMETRY`): ``ConnectionRefusedError``, counted in
  :attr:`Guard.telemetry_dropped`; neither a step nor an attempt.

What level 1 cannot stop, as Python raises no audit event for it, is listed in ``docs/isolation.md``, which a test holds to what it finds:
C code that makes its own system calls, and what was opened before arming (connections, files, memory maps, a process or a thread that was
running and takes its work from a queue). Beside that:

- ``os.open(relative, …, dir_fd=fd)``: the event lacks ``dir_fd``; the path is judged as if it started from the working directory. (Delete,
  rename, mkdir, chmod, link with ``dir_fd`` are judged correctly.)
- With :meth:`Guard.armed` inside an event loop: code run in an empty ``contextvars.Context``, and ``__del__`` when the collector runs
  in somebody else's thread. :meth:`Guard.arm_process` has neither gap.

It keeps honest code from acting by accident. It is no sandbox against code that sets out to escape.
"""

import errno
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from spanreplay.instrumentation.shims import commands
from spanreplay.replay.isolation import hook
from spanreplay.replay.isolation.acts import RULES
from spanreplay.replay.isolation.arming import CONTEXT, PROCESS, THREAD, in_event_loop, join, without
from spanreplay.replay.isolation.callers import IMPORT_WRITER, TEMPORARY, Caller, read, thread_name
from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.reachable import Address, Reachable
from spanreplay.replay.isolation.refusal import FILES, NETWORK, Act, OutsideActionRefused, Refusal

LEVEL: Final = 1
"""The level of this guard; a report says it and claims no more."""

KEPT: Final = 10_000
"""How many refusals, and how many notices, are kept in full; more are only counted."""

_arming: Final = threading.Lock()


def _takes_part(act: Act, args: tuple[Any, ...]) -> bool:
    """A program that answers its own calls, see :mod:`spanreplay.replay.reexecution.commands`, is started, or given a signal."""
    if act.action == "process":
        return commands.permit.now
    return act.action == "signal" and bool(args) and args[0] in commands.permitted


class _Reporting(threading.local):
    now: bool = False


class Guard:
    """Stops, and counts, what the code of one replay tries to do outside.

    Nothing is installed before the first arming. All members may be used from any thread.
    """

    def __init__(
        self,
        *,
        scratch: Path | None,
        allow_write: Sequence[Path] = (),
        allow_connect: Sequence[Address] = (),
        state: Sequence[Path] = (),
        permits: Callable[[], bool] | None = None,
        telemetry_hosts: Callable[[str, int], bool] | None = None,
        may_start: Callable[[str, tuple[Any, ...], FrameType], bool] | None = None,
        on_refusal: Callable[[Refusal], None] | None = None,
    ) -> None:
        """Prepare a guard.

        Args:
            scratch: an existing directory that the replay may write to, if it has one.
            allow_write: further files or directories that it may write to.
            allow_connect: hosts and ports that it may look up and connect to, see :mod:`spanreplay.replay.isolation.reachable`.
            permits: tells whether what runs now is a live call that may act; it takes no lock and opens nothing.
            state: files and folders that are copies in this process's view, and whatever has their name in its own beside them.
            telemetry_hosts: tells of a host (as given to the connect or look-up) and port (0 if unknown) whether a connection to it is
                telemetry, besides those known by their caller.
            may_start: tells of an audit event, its arguments and the frame of who acts whether it starts, or signals, a process that is
                guarded itself.
            on_refusal: called with every refusal and notice, in the acting thread, before the exception is raised. What it raises is
                swallowed; what it does itself is judged too, but not reported to it again.

        Raises:
            NotADirectoryError: ``scratch`` is no existing directory.
        """
        if scratch is not None and not scratch.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "the guard's scratch must be an existing directory", str(scratch))
        self.scratch: Final = None if scratch is None else scratch.resolve()
        self.refusals: Final[list[Refusal]] = []
        """The attempts, oldest first, at most :data:`KEPT`."""
        self.notices: Final[list[Refusal]] = []
        """What was refused without counting as an attempt, oldest first, at most :data:`KEPT`."""
        self._territory: Final = Territory(self.scratch, allow_write, state)
        self._reachable: Final = Reachable(allow_connect, self.scratch)
        self._permits: Final = permits
        self._telemetry_hosts: Final = telemetry_hosts
        self._may_start: Final = may_start
        self._on_refusal: Final = on_refusal
        # Counters are lists because append is atomic and needs no lock.
        self._attempted: Final[list[None]] = []
        self._dropped: Final[list[None]] = []
        self._uses: Final[list[None]] = []
        self._reporting: Final = _Reporting()

    @property
    def attempts(self) -> int:
        """How many attempts were refused, those beyond :data:`KEPT` included."""
        return len(self._attempted)

    @property
    def telemetry_dropped(self) -> int:
        """How many connections (or look-ups for one) of exporters and vendors were refused; retries count again."""
        return len(self._dropped)

    def environment(self) -> dict[str, str]:
        """Give the variables that send temporary files to scratch, where there is one.

        Set them before the replayed command starts. In a process that already used :mod:`tempfile`, set ``tempfile.tempdir`` too.
        """
        return {} if self.scratch is None else dict.fromkeys(("TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR"), str(self.scratch))

    @contextmanager
    def armed(self) -> Iterator["Guard"]:
        """Watch the present context, and the tasks, threads and executor work started from it.

        Outside an event loop the present thread is watched as a whole. What was started inside stays watched after the block ends, except
        that telemetry connections of such threads are then let through.
        """
        hook.install()
        whole_thread = not in_event_loop()
        token = CONTEXT.set(join(CONTEXT.get(), (self,)))
        before = THREAD.sentries
        if whole_thread:
            THREAD.sentries = join(before, (self,))
        self._uses.append(None)
        try:
            yield self
        finally:
            self._uses.pop()
            if whole_thread:
                THREAD.sentries = before
            try:
                CONTEXT.reset(token)
            except ValueError:  # left in another context than entered, as generator fixtures do
                CONTEXT.set(without(CONTEXT.get(), self))

    def arm_process(self) -> None:
        """Watch every thread and context of the process, until :meth:`disarm_process`. Idempotent."""
        hook.install()
        with _arming:
            if self not in PROCESS.sentries:
                self._uses.append(None)
                PROCESS.sentries = (*PROCESS.sentries, self)

    def disarm_process(self) -> None:
        """Undo :meth:`arm_process`; without it, do nothing."""
        with _arming:
            if self in PROCESS.sentries:
                PROCESS.sentries = without(PROCESS.sentries, self)
                self._uses.pop()

    def check(self, event: str, args: tuple[Any, ...]) -> BaseException | None:
        """Judge one audit event of code that this guard watches.

        Takes no lock and opens nothing: it runs inside the garbage collector too.

        Returns:
            The exception to raise, already entered in the lists; None to let the act happen.
        """
        try:
            act = RULES[event](args, self._territory)
        except Exception:  # noqa: BLE001 (what cannot be read is refused, never let through)
            act = Act(action="unknown", target=event)
        if act is None or _takes_part(act, args) or self._may_reach(act) or (self._permits is not None and self._permits()):
            return None
        if self._may_start is not None and self._may_start(event, args, sys._getframe(1)):
            return None
        caller = read(sys._getframe(1))
        if act.action in FILES and caller.nearest == IMPORT_WRITER and (".pyc" in act.target or "__pycache__" in act.target):
            return None
        if act.action in FILES and caller.nearest == TEMPORARY and caller.probing:
            return None
        if act.action in NETWORK and (caller.telemetry or self._is_telemetry_host(act)):
            if not self._uses:
                return None
            self._dropped.append(None)
            return ConnectionRefusedError(errno.ECONNREFUSED, f"telemetry is not sent during a replay ({act.target})")
        return self._refuse(event, act, caller)

    def looked_up(self, host: str, addresses: Sequence[str]) -> None:
        """A look-up that was let through has given these numeric addresses."""
        if self._reachable:
            self._reachable.learn(host, addresses)

    def _may_reach(self, act: Act) -> bool:
        if not self._reachable or act.action not in NETWORK:
            return False
        return self._reachable.is_named(act.host) if act.action == "lookup" else self._reachable.holds(act.host, act.port)

    def _refuse(self, event: str, act: Act, caller: Caller) -> BaseException:
        mild = act.mild or caller.importing or caller.probing
        refusal = Refusal(event=event, action=act.action, target=act.target, fatal=not mild, where=caller.where, thread=thread_name())
        if not mild:
            self._attempted.append(None)
        kept = self.notices if mild else self.refusals
        if len(kept) < KEPT:
            kept.append(refusal)
        self._report(refusal)
        if not mild:
            return OutsideActionRefused(refusal)
        return PermissionError(errno.EACCES, "not done during a replay", act.target)

    def _report(self, refusal: Refusal) -> None:
        if self._on_refusal is None or self._reporting.now:
            return
        self._reporting.now = True
        try:
            with suppress(Exception, OutsideActionRefused):
                self._on_refusal(refusal)
        finally:
            self._reporting.now = False

    def _is_telemetry_host(self, act: Act) -> bool:
        if self._telemetry_hosts is None or not act.host:
            return False
        try:
            return bool(self._telemetry_hosts(act.host, act.port))
        except Exception:  # noqa: BLE001 (a broken predicate must not open the door, nor end the agent)
            return False
