"""Who is acting: what the Python stack says about an audit event."""

import os
import sysconfig
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Final

from spanreplay.replay.isolation.known import PROBES, TELEMETRY

IMPORT_WRITER: Final = "<frozen importlib._bootstrap_external>"
"""``co_filename`` of the code that writes ``.pyc`` files."""

_IMPORT: Final = "<frozen importlib._bootstrap>"
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SCRIPT: Final = (f"{os.sep}bin{os.sep}spanreplay", f"{os.sep}Scripts{os.sep}spanreplay")
_STDLIB: Final = tuple(
    {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")}
    | {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}
)


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
    """The act is one of :data:`~spanreplay.replay.isolation.known.PROBES`."""
    telemetry: bool
    """A frame of :data:`~spanreplay.replay.isolation.known.TELEMETRY` is on the stack."""


def read(frame: FrameType | None) -> Caller:
    """Read the stack from ``frame`` outwards; it takes no lock and touches no frame."""
    where = installed = fallback = nearest = ""
    importing = probing = telemetry = user_seen = False
    while frame is not None:
        module = _text(frame.f_globals.get("__name__"))
        if is_ours(module, frame.f_code.co_filename):
            frame = frame.f_back
            continue
        code = frame.f_code
        file = code.co_filename
        nearest = nearest or file
        standard = file.startswith(("<frozen ", *_STDLIB)) and not _installed(file)
        if standard:
            importing = importing or (file == _IMPORT and not user_seen)
            probing = probing or (not where and not installed and _named(PROBES, module, code.co_name))
            fallback = fallback or f"{file}:{frame.f_lineno}"
        elif _installed(file):
            installed = installed or f"{file}:{frame.f_lineno}"
        else:
            where = where or f"{file}:{frame.f_lineno}"
            user_seen = True
        telemetry = telemetry or _named(TELEMETRY, module, code.co_name)
        frame = frame.f_back
    return Caller(
        where=where or installed or fallback or "unknown", nearest=nearest, importing=importing, probing=probing, telemetry=telemetry
    )


def is_ours(module: str, file: str) -> bool:
    """Whether a frame is spanreplay's own: a module of it, or its console script. The demo's agent stands for a user's."""
    return (module.startswith("spanreplay.") and module != "spanreplay.cli.demo_agent") or file.endswith(_SCRIPT)


def user_line(frame: FrameType | None) -> str | None:
    """``file:line`` of the nearest frame of the user's own code; ``None`` where there is none."""
    while frame is not None:
        file = frame.f_code.co_filename
        library = file.startswith(("<", *_STDLIB)) or _installed(file)
        if not library and not is_ours(_text(frame.f_globals.get("__name__")), file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def thread_name() -> str:
    """Name the running thread without ``current_thread``, which takes a lock and may make a thread object."""
    ident = threading.get_ident()
    known: Mapping[int, threading.Thread] = getattr(threading, "_active", {})
    thread = known.get(ident)
    return f"thread {ident}" if thread is None else thread.name


def _installed(file: str) -> bool:
    return any(part in file for part in _INSTALLED)


def _named(table: Mapping[str, frozenset[str]], module: str, function: str) -> bool:
    name = module
    while name:
        functions = table.get(name)
        if functions is not None:
            return not functions or function in functions
        name = name.rpartition(".")[0]
    return False


def _text(value: object) -> str:
    return value if type(value) is str else ""
