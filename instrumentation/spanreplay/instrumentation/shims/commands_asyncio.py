"""Commands that are started on an event loop: what its transports receive is kept, and a stubbed command ends in its turn.

asyncio starts them with ``subprocess.Popen``, see :mod:`spanreplay.instrumentation.shims.commands`, reads their pipes itself and waits with
a child watcher. uvloop starts processes of its own and is not seen.
"""

import asyncio
import functools
from asyncio import base_subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from spanreplay.instrumentation.commands import Fed, Live, Taken
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.command_stubs import Stub, held

_STREAMS: Final = {1: "stdout", 2: "stderr"}
_WATCHERS: Final = ("ThreadedChildWatcher", "PidfdChildWatcher", "_ThreadedChildWatcher", "_PidfdChildWatcher")

_patches = Patches()
_tasks: Final[set[Any]] = set()


def _receiving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _pipe_data_received(self: Any, fd: int, data: bytes) -> None:
        live = held(self._proc)
        if isinstance(live, Live) and fd in _STREAMS:
            live.streams.setdefault(_STREAMS[fd], Taken()).add(data)
        original(self, fd, data)

    return _pipe_data_received


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _call_connection_lost(self: Any, exc: Any) -> None:
        live = held(self._proc)
        if isinstance(live, Live):
            for taken in live.streams.values():
                taken.seen = True
            live.finish(self._returncode)
        original(self, exc)

    return _call_connection_lost


def _communicating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def communicate(self: Any, input: Any = None) -> Any:  # noqa: A002 — as it is called there
        known = held(self._transport.get_extra_info("subprocess"))
        if known is not None and self.stdin is not None:
            known.fed = Fed()
            with suppress(TypeError, ValueError):  # what is odd about it is for the function to say
                known.fed.all(input)
            if isinstance(known, Stub):
                known.compare_input()
        return await original(self, input)

    return communicate


def _watching(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add_child_handler(self: Any, pid: int, callback: Any, *args: Any) -> None:
        stub = next((found for arg in args if isinstance(found := held(getattr(arg, "_proc", None)), Stub)), None)
        if stub is None:
            original(self, pid, callback, *args)
            return
        exited = functools.partial(callback, pid, stub.result.code, *args)
        if stub.result.signals or stub.result.left:  # it ends when the agent ends it
            stub.exited = exited
            return
        task = asyncio.get_running_loop().create_task(_exit(stub, exited))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    return add_child_handler


async def _exit(stub: Stub, exited: Callable[[], object]) -> None:
    await stub.settle_async()
    exited()


def install() -> None:
    """Patch asyncio's transports and watchers."""
    _patches.replace(base_subprocess.BaseSubprocessTransport, "_pipe_data_received", _receiving)
    _patches.replace(base_subprocess.BaseSubprocessTransport, "_call_connection_lost", _ending)
    _patches.replace(asyncio.subprocess.Process, "communicate", _communicating)
    events = asyncio.unix_events if hasattr(asyncio, "unix_events") else None
    for name in _WATCHERS:
        watcher = getattr(events, name, None)
        if watcher is not None:
            _patches.replace(watcher, "add_child_handler", _watching)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()
