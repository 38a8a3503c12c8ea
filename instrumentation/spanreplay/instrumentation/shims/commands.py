"""The commands that an agent's own code runs are steps; a replay answers them and starts nothing.

Seams: ``subprocess.Popen``, which ``run``, ``check_output``, ``os.popen`` and asyncio's subprocesses pass, ``os.system``, and ``os.kill``
of such a command. A stubbed
command goes through all of ``Popen`` but the fork: its pipes are real, and hold what was recorded. For asyncio see
:mod:`spanreplay.instrumentation.shims.commands_asyncio`.

A Python program that takes part in the recording is run in a replay too, where its own steps are in the record: it answers its own calls.
"""

import functools
import inspect
import itertools
import os
import stat
import subprocess
import sys
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
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
_by_pid: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
"""The commands that were started here and are still held."""
_STANDARD: Final = 2
"""The last descriptor of a process's own streams."""
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
        self.runs_on = self.result.left
        """Until the agent ends it."""
        self.ends: list[int] = []
        """Of pipes that end when the command does, and that is when the agent ends it."""
        self._settled = False

    def end(self) -> None:
        """The agent ends the command, or forgets it."""
        self.runs_on = False
        for fd in self.ends:
            os.close(fd)
        self.ends = []

    def settle(self, *, waiting: bool = True) -> None:
        """The agent has got what it waited for: siblings that came later in the record may follow."""
        if self._settled:
            return
        self._settled = True
        self.end()
        if self.result.left:  # its end was the end of all
            self.step.succeed(encoded=boundary.again(self.answer.result or "null"), outcome=self.answer.outcome)
        elif waiting:
            boundary.give(self.step, self.answer)
            return
        if self.answer.turn is not None:
            self.answer.turn.given()

    async def settle_async(self) -> None:
        """As :meth:`settle`, on an event loop."""
        if not self._settled:
            self._settled = True
            await boundary.agive(self.step, self.answer)


_running: Final["weakref.WeakSet[Live | Stub]"] = weakref.WeakSet()


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
            streams = _streams(signature, (self, *args), kwargs)
            _start(self, step, lambda: original(self, *args, **kwargs), streams)
        elif answer.error is not None:
            boundary.give(step, answer)
        else:
            stub = Stub(step, answer)
            setattr(self, _HELD, stub)
            _running.add(stub)
            original(self, *args, **kwargs)

    return __init__


def _streams(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    given = signature.bind(*args, **kwargs).arguments
    return {name: given[name] for name in ("stdout", "stderr") if given.get(name) is not None}


def _into_files(live: Live, streams: dict[str, Any]) -> None:
    """See which streams go into files of the agent's own; that of a process's own output is not taken by the agent."""
    known: set[tuple[int, int]] = set()
    for name, target in streams.items():
        try:
            fd = target if isinstance(target, int) else target.fileno()
            there = os.fstat(fd) if fd > _STANDARD else None
        except (AttributeError, OSError, TypeError, ValueError):  # PIPE and its like, and what is odd: for the function to say
            continue
        if there is not None and stat.S_ISREG(there.st_mode) and (there.st_dev, there.st_ino) not in known:
            known.add((there.st_dev, there.st_ino))
            with suppress(OSError, ImportError):
                live.writes_to(name, fd)


def _start(popen: Any, step: Step, original: Callable[[], Any], streams: dict[str, Any]) -> None:
    """Let it run: it is recorded, or takes part in the replay."""
    replaying = step.session.mode == "replay" and not step.runs
    live = None if replaying else Live(step)
    if live is not None:
        _into_files(live, streams)
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
    _by_pid[popen.pid] = popen
    _running.add(live)
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
        _by_pid[self.pid] = self
        self._child_created = True
        if ends["p2cread"] != -1 and ends["p2cwrite"] != -1:
            start_new_thread(command_pipes.drain, (os.dup(ends["p2cread"]),))
        for name, fd in (("stdout", ends["c2pwrite"]), ("stderr", ends["errwrite"])):
            if fd == -1:
                continue
            ends_later = name in held.result.open and (held.result.left or bool(held.result.signals))
            end = os.dup(fd)
            command_pipes.feed(end, held.result.stream(name), close=not ends_later)
            if ends_later:
                held.ends.append(end)
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
            if self.returncode is None and (held.polls > 0 or held.runs_on):
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
            _end_stub(held)
            return
        if not isinstance(held, Live):
            original(self, sig)
            return
        if self.returncode is None:
            held.signalled(int(sig))
        held.depth += 1
        try:
            original(self, sig)
        finally:
            held.depth -= 1

    return send_signal


def _end_stub(stub: Stub) -> None:
    stub.polls = 0
    stub.end()
    if stub.exited is not None:
        exited, stub.exited = stub.exited, None
        stub.settle()
        with suppress(RuntimeError):  # the loop is closed, as it may have been then
            exited()


def _killing(original: Callable[..., Any]) -> Callable[..., Any]:
    """``os.kill`` and ``os.killpg``, of a command or the group that it leads."""

    @functools.wraps(original)
    def kill(pid: int, signal: int, /) -> None:
        popen = _by_pid.get(pid) if _by_pid else None
        there = None if popen is None or popen.returncode is not None else getattr(popen, _HELD, None)
        if isinstance(there, Stub):
            if signal:
                _end_stub(there)
            return
        if isinstance(there, Live) and there.depth == 0 and signal:
            there.signalled(int(signal))
        original(pid, signal)

    return kill


def _grouping(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getpgid(pid: int, /) -> int:
        popen = _by_pid.get(pid) if _by_pid else None
        return pid if popen is not None and isinstance(getattr(popen, _HELD, None), Stub) else int(original(pid))

    return getpgid


def leave() -> None:
    """A recording or a replay is over: commands that nobody has waited for are left running."""
    for held in list(_running):
        if isinstance(held, Live):
            held.leave()
        else:
            held.settle(waiting=False)
    _running.clear()


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
            if not sys.is_finalizing():
                held.settle(waiting=False)
            return
        original(self, *args, **kwargs)
        if isinstance(held, Live):
            _look(self, held, whole=True)
            held.leave()

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
    """Patch ``subprocess.Popen``, ``os.system`` and ``os.kill``, outside of all others that do."""
    for name, make in _SEAMS.items():
        _patches.replace(subprocess.Popen, name, make)
    _patches.replace(os, "system", _system)
    for name, make in (("kill", _killing), ("killpg", _killing), ("getpgid", _grouping)):
        _patches.replace(os, name, make)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
