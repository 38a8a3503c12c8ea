"""Who is acting: what the Python stack says about an audit event."""

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Final

from spanreplay.instrumentation.probes import Look, is_installed, is_named, is_standard
from spanreplay.replay.isolation.frames import current_frames
from spanreplay.replay.isolation.known import TELEMETRY

IMPORT_WRITER: Final = "<frozen importlib._bootstrap_external>"
"""``co_filename`` of the code that writes ``.pyc`` files."""
TEMPORARY: Final = tempfile.mkstemp.__code__.co_filename
"""``co_filename`` of the code that makes and removes temporary files."""

_PROGRAMS: Final = (
    f"{os.sep}bin{os.sep}spanreplay",
    f"{os.sep}Scripts{os.sep}spanreplay",
    f"{os.sep}spanreplay{os.sep}replay{os.sep}proxy{os.sep}serving.py",
)
"""Ends of the names of files of ours whose module is ``__main__``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What was found between the act and the bottom of the stack."""

    where: str
    """``file:line`` of the nearest frame of the user's own code, else of an installed package, else of the standard library."""
    nearest: str
    """``co_filename`` of the nearest frame that is not ours."""
    importing: bool
    """An import runs between the act and the nearest frame of the user's own code (neither standard library nor site-packages)."""
    probing: bool
    """The act only looks at the machine, see :mod:`spanreplay.instrumentation.probes`."""
    telemetry: bool
    """A frame of :data:`~spanreplay.replay.isolation.known.TELEMETRY` is on the stack."""


def read(frame: FrameType | None) -> Caller:
    """Read the stack from ``frame`` outwards; it takes no lock and touches no frame."""
    where = installed = fallback = nearest = ""
    telemetry = False
    look = Look()
    while frame is not None:
        module = _text(frame.f_globals.get("__name__"))
        code = frame.f_code
        file = code.co_filename
        if is_ours(module, file):
            frame = frame.f_back
            continue
        nearest = nearest or file
        at = f"{file}:{frame.f_lineno}"
        if look.at(module, code.co_name, file):
            where = where or at
        elif is_installed(file):
            installed = installed or at
        else:
            fallback = fallback or at
        telemetry = telemetry or is_named(TELEMETRY, module, code.co_name)
        frame = frame.f_back
    return Caller(
        where=where or installed or fallback or "unknown",
        nearest=nearest,
        importing=look.importing,
        probing=look.probing,
        telemetry=telemetry,
    )


def is_ours(module: str, file: str) -> bool:
    """Whether a frame is spanreplay's own: a module of it, its console script, or the proxy. The demo's agent stands for a user's."""
    return (module.startswith("spanreplay.") and module != "spanreplay.cli.demo_agent") or file.endswith(_PROGRAMS)


def user_line(frame: FrameType | None) -> str | None:
    """``file:line`` of the nearest frame of the user's own code; ``None`` where there is none."""
    found = user_frame(frame)
    return None if found is None else f"{found.f_code.co_filename}:{found.f_lineno}"


def user_line_of_all(frame: FrameType | None) -> str | None:
    """The same; where it has none, as in a thread that a framework has started, that of the main thread, which waits for it."""
    main = current_frames().get(threading.main_thread().ident or 0)
    waiting = user_line(main)
    return user_line(frame) or (None if waiting is None else f"{waiting} (where the main thread is)")


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of the user's own code; ``None`` where there is none."""
    while frame is not None:
        file = frame.f_code.co_filename
        library = file.startswith("<") or is_standard(file) or is_installed(file)
        if not library and not is_ours(_text(frame.f_globals.get("__name__")), file):
            return frame
        frame = frame.f_back
    return None


def thread_name() -> str:
    """Name the running thread without ``current_thread``, which takes a lock and may make a thread object."""
    ident = threading.get_ident()
    known: Mapping[int, threading.Thread] = getattr(threading, "_active", {})
    thread = known.get(ident)
    return f"thread {ident}" if thread is None else thread.name


def _text(value: object) -> str:
    return value if type(value) is str else ""
