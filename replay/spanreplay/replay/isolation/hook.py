"""The one audit hook of the process, and wrappers for the few functions that raise no audit event.

``sys.addaudithook`` cannot be undone and costs about 0.2 us an audited event for ever, so this is installed at the first arming and
never while recording. The hook keeps no "busy" flag: the code below it uses no call whose event has a rule, so it cannot trigger
itself, and an act done by ``__del__`` while it works is judged like any other. It takes no lock, as it runs inside the garbage
collector too.
"""

import importlib
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any, Final

from spanreplay.replay.isolation import carry
from spanreplay.replay.isolation.acts import RULES
from spanreplay.replay.isolation.addresses import text
from spanreplay.replay.isolation.arming import Sentries, active

_WITHOUT_EVENT: Final = (
    ("_posixsubprocess", "fork_exec"),  # multiprocessing spawn and forkserver; subprocess has an event of its own
    ("os", "mkfifo"),
    ("os", "mknod"),
    ("os", "setpriority"),
    ("os", "sched_setaffinity"),
    ("os", "sched_setparam"),
    ("os", "sched_setscheduler"),
    ("signal", "pidfd_send_signal"),
)

_installing: Final = threading.Lock()
_installed: list[bool] = []


def install() -> None:
    """Install the hook once, and see that the wrappers are in place. Idempotent; never call it while recording."""
    with _installing:
        if not _installed:
            _installed.append(True)
            sys.addaudithook(_hook)
        carry.install()
        for module, name in _without_event():
            _announce(module, name)
        if not carry.is_wrapped(socket.getaddrinfo):
            socket.getaddrinfo = carry.mark(_telling(socket.getaddrinfo), socket.getaddrinfo)


def is_installed() -> bool:
    """Tell whether the audit hook is there (for good, then)."""
    return bool(_installed)


def _hook(
    event: str,
    args: tuple[Any, ...],
    # Bound here because module globals may be gone while the interpreter ends.
    rules: Mapping[str, object] = RULES,
    active: Callable[[], Sentries] = active,
) -> None:
    if event not in rules:
        return
    watching = active()
    if not watching:
        return
    first: BaseException | None = None
    try:
        for sentry in watching:
            refused = sentry.check(event, args)
            first, refused = first or refused, None
        if first is not None:
            raise first
    finally:
        first = None  # a cycle through the traceback would keep the acting code's objects alive


@cache
def _without_event() -> tuple[tuple[ModuleType, str], ...]:
    """Those of this Python and this system."""
    found = []
    for module_name, name in _WITHOUT_EVENT:
        with suppress(ImportError):
            module = importlib.import_module(module_name)
            if hasattr(module, name):
                found.append((module, name))
    return tuple(found)


def _announce(module: ModuleType, name: str) -> None:
    original: Callable[..., Any] = getattr(module, name)
    if carry.is_wrapped(original):
        return

    def announced(*args: Any, **kwargs: Any) -> Any:
        _hook(f"{module.__name__}.{name}", (*args, *kwargs.values()))
        return original(*args, **kwargs)

    setattr(module, name, carry.mark(announced, original))


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    """Connections go to what a look-up gave: who lets a host through must know."""

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(host, *args, **kwargs)
        for sentry in active() if host else ():
            sentry.looked_up(text(host), [str(entry[4][0]) for entry in found])
        return found

    return getaddrinfo
