"""How an agent ends a command that it has started, or leaves it running.

Each function stands in for one of ``subprocess.Popen`` or of ``os`` that it is given.
"""

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spanreplay.instrumentation.commands import Live
from spanreplay.instrumentation.shims.command_stubs import Stub, by_pid, held
from spanreplay.instrumentation.shims.command_waits import look


def signalling(original: Callable[..., Any]) -> Callable[..., Any]:
    """``send_signal``, which ``terminate`` and ``kill`` pass."""

    @functools.wraps(original)
    def send_signal(self: Any, sig: int) -> None:
        known = held(self)
        if isinstance(known, Stub):
            _end_stub(known)
            return
        if not isinstance(known, Live):
            original(self, sig)
            return
        if self.returncode is None:
            known.signalled(int(sig))
        known.depth += 1
        try:
            original(self, sig)
        finally:
            known.depth -= 1

    return send_signal


def _end_stub(stub: Stub) -> None:
    stub.polls = 0
    stub.end()
    if stub.exited is not None:
        exited, stub.exited = stub.exited, None
        stub.settle()
        with suppress(RuntimeError):  # the loop is closed, as it may have been then
            exited()


def killing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``os.kill`` and ``os.killpg``: of a command, or of the group that it leads."""

    @functools.wraps(original)
    def kill(pid: int, signal: int, /) -> None:
        popen = by_pid.get(pid) if by_pid else None
        there = None if popen is None or popen.returncode is not None else held(popen)
        if isinstance(there, Stub):
            if signal:
                _end_stub(there)
            return
        if isinstance(there, Live) and there.depth == 0 and signal:
            there.signalled(int(signal))
        original(pid, signal)

    return kill


def grouping(original: Callable[..., Any]) -> Callable[..., Any]:
    """``os.getpgid``: a stubbed command leads a group of its own."""

    @functools.wraps(original)
    def getpgid(pid: int, /) -> int:
        popen = by_pid.get(pid) if by_pid else None
        return pid if popen is not None and isinstance(held(popen), Stub) else int(original(pid))

    return getpgid


def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    """``__exit__``: the agent reads no more."""

    @functools.wraps(original)
    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807 — it stands in for one
        done = original(self, *error)
        known = held(self)
        if isinstance(known, Live):
            look(self, known, whole=True)
        return done

    return __exit__


def _forget(popen: Any, live: Live, code: int | None) -> None:
    if any(not taken.over for taken in live.streams.values()):  # os.popen(…).read() forgets the command first, and then reads
        live.forgotten, live.code = True, code
        return
    look(popen, live, whole=True)
    live.leave()


def collected(original: Callable[..., Any]) -> Callable[..., Any]:
    """``__del__``: the agent has forgotten the command."""
    finalizing, known_of, stub = sys.is_finalizing, held, Stub  # at the end of the interpreter the names of modules are gone

    @functools.wraps(original)
    def __del__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
        if finalizing():  # the recording, or the replay, is over
            if not isinstance(getattr(self, "_spanreplay", None), stub):
                original(self, *args, **kwargs)
            return
        known = known_of(self)
        if isinstance(known, stub):
            known.settle(waiting=False)
            return
        seen = getattr(self, "returncode", None)  # it may not have come to that
        try:
            original(self, *args, **kwargs)
        finally:  # a warning may be an error
            if isinstance(known, Live):
                _forget(self, known, seen)

    return __del__
