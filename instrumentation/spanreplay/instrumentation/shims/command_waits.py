"""How an agent follows a command that it has started: it reads what that writes, waits for its end, or asks whether it still runs.

Each function stands in for the one of ``subprocess.Popen`` that it is given.
"""

import functools
import subprocess
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spanreplay.instrumentation.commands import Fed, Live, Taken
from spanreplay.instrumentation.shims import command_pipes
from spanreplay.instrumentation.shims.command_stubs import Stub, held


def tap(popen: Any, live: Live) -> None:
    """Stand between the agent and the streams that it reads."""
    command = weakref.ref(popen)

    def over() -> None:
        there = command()
        if live.forgotten:  # subprocess itself may still hold it
            if all(taken.over for taken in live.streams.values()):
                live.leave(live.code)
        elif there is not None:
            look(there, live)

    try:
        for name in ("stdout", "stderr"):
            stream = getattr(popen, name)
            if stream is not None:
                taken = live.streams[name] = Taken()
                setattr(popen, name, command_pipes.tapped(stream, taken, over))
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        live.step.session.failed(f"what {live.step.path} writes")


def feed(popen: Any, known: Live | Stub) -> None:
    """Stand between the agent and what it writes to the command."""
    if popen.stdin is None:
        return
    try:
        known.fed = Fed()
        over = known.compare_input if isinstance(known, Stub) else _nothing
        popen.stdin = command_pipes.fed(popen.stdin, known.fed, over)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        known.fed = None
        known.step.session.failed(f"what {known.step.path} reads")


def _nothing() -> None:
    pass


def _given(popen: Any, known: Live | Stub, data: Any) -> None:
    """``communicate`` writes ``data``, past the tap or through it, and closes what the command reads."""
    fed = known.fed
    if fed is None or popen.stdin is None or fed.past:
        return
    if not popen.stdin.closed:
        with suppress(OSError):  # communicate does so too
            popen.stdin.flush()
    with suppress(TypeError, ValueError):  # what is odd about it is for the function to say
        fed.all(data, getattr(popen.stdin, "encoding", None), getattr(popen.stdin, "errors", None))
    fed.past = True
    if isinstance(known, Stub):
        known.compare_input()


def look(popen: Any, live: Live, *, whole: bool = False) -> None:
    """End the step if the command has, and the agent has read everything or will read no more."""
    if popen.returncode is None or live.done:
        return
    if whole or all(taken.over for taken in live.streams.values()):
        live.finish(popen.returncode)


def communicating(original: Callable[..., Any]) -> Callable[..., Any]:
    """``communicate``: what the agent is given of both streams is all that there is of them."""

    @functools.wraps(original)
    def communicate(self: Any, input: Any = None, timeout: Any = None) -> Any:  # noqa: A002 — as it is called there
        known = held(self)
        if known is not None:
            _given(self, known, input)
        if isinstance(known, Stub):
            _run_out(self, known, timeout)
        if not isinstance(known, Live):
            return original(self, input, timeout)
        before = {name: taken.size for name, taken in known.streams.items()}
        try:
            given = _counted(known, timeout, lambda: original(self, input, timeout))
        except subprocess.TimeoutExpired as error:
            for name, value in (("stdout", error.output), ("stderr", error.stderr)):
                if name in known.streams:
                    known.streams[name].until(value)
            raise
        for name, value in zip(("stdout", "stderr"), given, strict=True):
            taken = known.streams.get(name)
            if taken is not None:
                taken.seen = True
            if taken is not None and value and taken.size == before[name]:  # read past the tap, by its descriptor
                taken.add(value.encode(getattr(self, name).encoding or "utf-8", "surrogateescape") if isinstance(value, str) else value)
        look(self, known, whole=True)
        return given

    return communicate


def waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    """``wait``: for a stubbed command, until it is its turn to end."""

    @functools.wraps(original)
    def wait(self: Any, timeout: Any = None) -> Any:
        known = held(self)
        if isinstance(known, Stub):
            _run_out(self, known, timeout)
            known.settle()
            self.returncode = known.result.code
            return self.returncode
        if not isinstance(known, Live):
            return original(self, timeout)
        code = _counted(known, timeout, lambda: original(self, timeout))
        if known.depth == 0:
            look(self, known)
        return code

    return wait


def _run_out(popen: Any, stub: Stub, timeout: Any) -> None:
    if timeout is not None and stub.timeouts > 0:
        waits = stub.result.timed_out
        told = waits[-stub.timeouts] if stub.timeouts <= len(waits) else timeout
        stub.timeouts -= 1
        raise subprocess.TimeoutExpired(popen.args, told, stub.result.stream("stdout") or None, stub.result.stream("stderr") or None)


def _counted(live: Live, timeout: Any, original: Callable[[], Any]) -> Any:
    live.depth += 1
    try:
        return original()
    except subprocess.TimeoutExpired as error:
        if live.depth == 1:
            live.waited(timeout, error.timeout)
        raise
    finally:
        live.depth -= 1


def polling(original: Callable[..., Any]) -> Callable[..., Any]:
    """``poll``: for a stubbed command, that it runs as often as the agent was told so."""

    @functools.wraps(original)
    def poll(self: Any) -> Any:
        known = held(self)
        if isinstance(known, Stub):
            if self.returncode is None and (known.polls > 0 or known.runs_on):
                known.polls -= 1
                return None
            known.settle()
            self.returncode = known.result.code
            return self.returncode
        code = original(self)
        if isinstance(known, Live) and known.depth == 0:
            known.polls += code is None
            look(self, known)
        return code

    return poll
