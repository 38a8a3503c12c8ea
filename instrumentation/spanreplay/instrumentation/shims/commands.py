"""The commands that an agent's own code runs are steps; a replay answers them and starts nothing.

Seams: ``subprocess.Popen``, which ``run``, ``check_output``, ``os.popen`` and asyncio's subprocesses pass, ``os.system``, and ``os.kill``
of such a command. A stubbed command goes through all of ``Popen`` but the fork: its pipes are real, and hold what was recorded. Here is how
commands start; for what comes then see ``command_waits`` and ``command_ends``, for asyncio ``commands_asyncio``.

A Python program that takes part in the recording is run in a replay too, where its own steps are in the record: it answers its own calls.
"""

import functools
import inspect
import itertools
import os
import stat
import subprocess
import threading
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.instrumentation import commands
from spanreplay.instrumentation.commands import Live, Result
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.probes import only_looks
from spanreplay.instrumentation.shims import command_ends, command_pipes, command_waits, processes, untaped
from spanreplay.instrumentation.shims.command_stubs import Stub, by_pid, held, hold, running
from spanreplay.instrumentation.shims.own_code import caller

_patches = Patches()
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
        frame = caller()

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
            _start(self, step, lambda: original(self, *args, **kwargs), streams, fed=_known_input(frame) is None)
        elif answer.error is not None:
            boundary.give(step, answer)
        else:
            stub = Stub(step, answer)
            hold(self, stub)
            original(self, *args, **kwargs)
            if _known_input(frame) is None:
                command_waits.feed(self, stub)

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


def _start(popen: Any, step: Step, original: Callable[[], Any], streams: dict[str, Any], *, fed: bool) -> None:
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
    hold(popen, live)
    by_pid[popen.pid] = popen
    command_waits.tap(popen, live)
    if fed:
        command_waits.feed(popen, live)


def _known_input(frame: FrameType | None) -> str | bytes | None:
    """What the command will read, where that is known at its start: the ``input`` of ``subprocess.run``."""
    given = frame.f_locals.get("input") if frame is not None and frame.f_code is subprocess.run.__code__ else None
    return given if isinstance(given, str | bytes) else None


def _executing(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _execute_child(self: Any, *args: Any) -> None:
        stub = held(self)
        if not isinstance(stub, Stub):
            original(self, *args)
            return
        ends = {name: fd for name, fd in signature.bind(self, *args).arguments.items() if name[:3] in ("p2c", "c2p", "err")}
        self.pid = _pids()
        by_pid[self.pid] = self
        self._child_created = True
        if ends["p2cread"] != -1 and ends["p2cwrite"] != -1:
            start_new_thread(command_pipes.drain, (os.dup(ends["p2cread"]),))
        for name, fd in (("stdout", ends["c2pwrite"]), ("stderr", ends["errwrite"])):
            if fd == -1:
                continue
            ends_later = name in stub.result.open and (stub.result.left or bool(stub.result.signals))
            end = os.dup(fd)
            command_pipes.feed(end, stub.result.stream(name), close=not ends_later)
            if ends_later:
                stub.ends.append(end)
        self._close_pipe_fds(*(ends[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))

    return _execute_child


def leave() -> None:
    """A recording or a replay is over: commands that nobody has waited for are left running."""
    for known in list(running):
        if isinstance(known, Live):
            known.leave()
        else:
            known.settle(waiting=False)
    running.clear()


# ---- os.system --------------------------------------------------------------------------------------------------


def _system(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def system(command: Any) -> int:
        step = _begin(lambda scope: commands.call_of(scope, command), caller())
        if step is None:
            return int(original(command))
        answer = step.ask()
        if answer is not None:
            given = boundary.give(step, answer)
            return Result(given).code
        replaying = step.session.mode == "replay" and not step.runs
        live = None if replaying else Live(step)
        permit.now = replaying
        try:
            with step.body():
                code = int(original(processes.told_in_shell(command)))
        except BaseException as error:
            step.fail(error)
            raise
        finally:
            permit.now = False
        if live is None:
            step.succeed(None)
        else:
            live.finish(code)
        return code

    return system


_SEAMS: Final = {
    "__init__": _starting,
    "_execute_child": _executing,
    "communicate": command_waits.communicating,
    "wait": command_waits.waiting,
    "poll": command_waits.polling,
    "send_signal": command_ends.signalling,
    "__exit__": command_ends.leaving,
    "__del__": command_ends.collected,
}


def install() -> None:
    """Patch ``subprocess.Popen``, ``os.system`` and ``os.kill``, outside of all others that do."""
    for name, make in _SEAMS.items():
        _patches.replace(subprocess.Popen, name, make)
    _patches.replace(os, "system", _system)
    for name, make in (("kill", command_ends.killing), ("killpg", command_ends.killing), ("getpgid", command_ends.grouping)):
        _patches.replace(os, name, make)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
