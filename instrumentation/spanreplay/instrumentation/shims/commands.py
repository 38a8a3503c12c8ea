"""The commands that an agent's own code runs are steps; a replay answers them and starts nothing.

Seams: ``subprocess.Popen``, which ``run``, ``check_output``, ``os.popen`` and asyncio's subprocesses pass, and ``os.system``. A stubbed
command goes through all of ``Popen`` but the fork: its pipes are real, and hold what was recorded. For asyncio see
:mod:`spanreplay.instrumentation.shims.commands_asyncio`.

A Python program that takes part in the recording is run in a replay too, where its own steps are in the record: it answers its own calls.
"""

import functools
import inspect
import itertools
import os
import subprocess
import sys
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Answer
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.instrumentation import commands
from spanreplay.instrumentation.commands import Live, Result, Taken
from spanreplay.instrumentation.probes import only_looks
from spanreplay.instrumentation.shims import command_pipes, untaped
from spanreplay.instrumentation.shims.patching import Patches

_HELD: Final = "_spanreplay"
"""Attribute of a ``Popen`` with what is known of it here."""

_patches = Patches()
_pids: Final = itertools.count(2**22 + 1).__next__
"""Process ids that Linux gives to nobody."""


class _Permit(threading.local):
    now: bool = False


permit: Final = _Permit()
"""A process is being started in this thread that a replay runs: it answers its own calls."""
permitted: Final[set[int]] = set()
"""Process ids of those."""


class Stub:
    """A command in a replay."""

    def __init__(self, step: Step, answer: Answer) -> None:
        self.step = step
        self.answer = answer
        self.result = Result(codec.decode(answer.result or "null"))
        self.polls = self.result.polls
        self.timeouts = self.result.timeouts
        self.exited: Callable[[], object] | None = None
        """Tells an event loop that the command has ended."""
        self._settled = False

    def settle(self, *, waiting: bool = True) -> None:
        """The agent has got what it waited for: siblings that came later in the record may follow."""
        if self._settled:
            return
        self._settled = True
        if waiting:
            boundary.give(self.step, self.answer)
        elif self.answer.turn is not None:
            self.answer.turn.given()

    async def settle_async(self) -> None:
        """As :meth:`settle`, on an event loop."""
        if not self._settled:
            self._settled = True
            await boundary.agive(self.step, self.answer)


# ---- starting ---------------------------------------------------------------------------------------------------


def _begin(call: Callable[[Scope], Any], frame: FrameType | None) -> Step | None:
    """The step of a command that is started in ``frame``; ``None`` where there is none."""
    scope = boundary.here()
    if scope is None or untaped.starting.now or _is_ours(frame) or not commands.makes_a_step(scope) or only_looks(frame):
        return None
    try:
        made = call(scope)
    except Exception:  # noqa: BLE001 — what is odd about a command is for the function to say
        return None
    return boundary.begin(scope, made)


def _is_ours(frame: FrameType | None) -> bool:
    """Whether spanreplay itself starts the command, as ``record`` does inside a recorded command."""
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("spanreplay.")


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
        frame = sys._getframe(1)

        def call(scope: Scope) -> Any:
            given = signature.bind(self, *args, **kwargs).arguments
            given |= given.pop("kwargs", {})
            return commands.call_of(scope, given["args"], cwd=given.get("cwd"), env=given.get("env"), stdin=_known_input(frame))

        step = _begin(call, frame)
        if step is None:
            original(self, *args, **kwargs)
            return
        answer = step.ask()
        if answer is None:
            _start(self, step, lambda: original(self, *args, **kwargs))
        elif answer.error is not None:
            boundary.give(step, answer)
        else:
            setattr(self, _HELD, Stub(step, answer))
            original(self, *args, **kwargs)

    return __init__


def _start(popen: Any, step: Step, original: Callable[[], Any]) -> None:
    """Let it run: it is recorded, or takes part in the replay."""
    replaying = step.session.mode == "replay" and not step.runs
    live = None if replaying else Live(step)
    permit.now = replaying
    try:
        with step.body():
            original()
    except BaseException as error:
        step.fail(error)
        raise
    finally:
        permit.now = False
    if live is None:
        permitted.add(popen.pid)
        step.succeed(None)
        return
    setattr(popen, _HELD, live)
    _tap(popen, live)


def _known_input(frame: FrameType | None) -> str | bytes | None:
    """What the command will read, where that is known at its start: the ``input`` of ``subprocess.run``."""
    given = frame.f_locals.get("input") if frame is not None and frame.f_code is subprocess.run.__code__ else None
    return given if isinstance(given, str | bytes) else None


def _executing(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _execute_child(self: Any, *args: Any) -> None:
        held = getattr(self, _HELD, None)
        if not isinstance(held, Stub):
            original(self, *args)
            return
        ends = {name: fd for name, fd in signature.bind(self, *args).arguments.items() if name[:3] in ("p2c", "c2p", "err")}
        self.pid = _pids()
        self._child_created = True
        if ends["p2cread"] != -1 and ends["p2cwrite"] != -1:
            start_new_thread(command_pipes.drain, (os.dup(ends["p2cread"]),))
        for name, fd in (("stdout", ends["c2pwrite"]), ("stderr", ends["errwrite"])):
            if fd != -1:
                command_pipes.feed(os.dup(fd), held.result.stream(name))
        self._close_pipe_fds(*(ends[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))

    return _execute_child


# ---- reading ----------------------------------------------------------------------------------------------------


def _tap(popen: Any, live: Live) -> None:
    """Stand between the agent and the streams that it reads."""
    command = weakref.ref(popen)

    def over() -> None:
        there = command()
        if there is not None:
            _look(there, live)

    try:
        for name in ("stdout", "stderr"):
            stream = getattr(popen, name)
            if stream is not None:
                taken = live.streams[name] = Taken()
                setattr(popen, name, command_pipes.tapped(stream, taken, over))
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        live.step.session.failed(f"what {live.step.path} writes")


def _look(popen: Any, live: Live, *, whole: bool = False) -> None:
    """End the step if the command has, and the agent has read everything or will read no more."""
    if popen.returncode is None or live.done:
        return
    if whole or all(taken.over for taken in live.streams.values()):
        live.finish(popen.returncode)


def _communicating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def communicate(self: Any, input: Any = None, timeout: Any = None) -> Any:  # noqa: A002 — as it is called there
        held = getattr(self, _HELD, None)
        if isinstance(held, Stub):
            _run_out(self, held, timeout)
        if not isinstance(held, Live):
            return original(self, input, timeout)
        before = {name: taken.size for name, taken in held.streams.items()}
        given = _counted(held, lambda: original(self, input, timeout))
        for name, value in zip(("stdout", "stderr"), given, strict=True):
            taken = held.streams.get(name)
            if taken is not None:
                taken.seen = True
            if taken is not None and value and taken.size == before[name]:  # read past the tap, by its descriptor
                taken.add(value.encode(getattr(self, name).encoding or "utf-8", "surrogateescape") if isinstance(value, str) else value)
        _look(self, held, whole=True)
        return given

    return communicate


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(self: Any, timeout: Any = None) -> Any:
        held = getattr(self, _HELD, None)
        if isinstance(held, Stub):
            _run_out(self, held, timeout)
            held.settle()
            self.returncode = held.result.code
            return self.returncode
        if not isinstance(held, Live):
            return original(self, timeout)
        code = _counted(held, lambda: original(self, timeout))
        if held.depth == 0:
            _look(self, held)
        return code

    return wait


def _run_out(popen: Any, stub: Stub, timeout: Any) -> None:
    if timeout is not None and stub.timeouts > 0:
        stub.timeouts -= 1
        raise subprocess.TimeoutExpired(popen.args, timeout, output=stub.result.stream("stdout") or None)


def _counted(live: Live, original: Callable[[], Any]) -> Any:
    live.depth += 1
    try:
        return original()
    except subprocess.TimeoutExpired:
        live.timeouts += live.depth == 1
        raise
    finally:
        live.depth -= 1


def _polling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def poll(self: Any) -> Any:
        held = getattr(self, _HELD, None)
        if isinstance(held, Stub):
            if self.returncode is None and held.polls > 0:
                held.polls -= 1
                return None
            held.settle()
            self.returncode = held.result.code
            return self.returncode
        code = original(self)
        if isinstance(held, Live) and held.depth == 0:
            held.polls += code is None
            _look(self, held)
        return code

    return poll


def _signalling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def send_signal(self: Any, sig: int) -> None:
        held = getattr(self, _HELD, None)
        if isinstance(held, Stub):
            held.polls = 0
            if held.exited is not None:
                exited, held.exited = held.exited, None
                held.settle()
                exited()
            return
        if not isinstance(held, Live):
            original(self, sig)
            return
        if self.returncode is None:
            held.signals.append(int(sig))
        held.depth += 1
        try:
            original(self, sig)
        finally:
            held.depth -= 1

    return send_signal


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807 — it stands in for one
        done = original(self, *error)
        held = getattr(self, _HELD, None)
        if isinstance(held, Live):
            _look(self, held, whole=True)
        return done

    return __exit__


def _collected(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __del__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
        held = getattr(self, _HELD, None)
        if isinstance(held, Stub):
            held.settle(waiting=False)
            return
        original(self, *args, **kwargs)
        if isinstance(held, Live):
            _look(self, held, whole=True)

    return __del__


# ---- os.system --------------------------------------------------------------------------------------------------


def _system(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def system(command: Any) -> int:
        step = _begin(lambda scope: commands.call_of(scope, command), sys._getframe(1))
        if step is None:
            return int(original(command))
        answer = step.ask()
        if answer is not None:
            given = boundary.give(step, answer)
            return Result(given).code
        live = Live(step)
        try:
            with step.body():
                code = int(original(command))
        except BaseException as error:
            step.fail(error)
            raise
        live.finish(code)
        return code

    return system


_SEAMS: Final = {
    "__init__": _starting,
    "_execute_child": _executing,
    "communicate": _communicating,
    "wait": _waiting,
    "poll": _polling,
    "send_signal": _signalling,
    "__exit__": _leaving,
    "__del__": _collected,
}


def held(popen: Any) -> Live | Stub | None:
    """What is known here of a ``Popen``."""
    found = getattr(popen, _HELD, None)
    return found if isinstance(found, Live | Stub) else None


def install() -> None:
    """Patch ``subprocess.Popen`` and ``os.system``, outside of all others that do."""
    for name, make in _SEAMS.items():
        _patches.replace(subprocess.Popen, name, make)
    _patches.replace(os, "system", _system)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
