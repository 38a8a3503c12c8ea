"""Which process writes: the first line of every journal."""

import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """One operating system process that records.

    ``process_id`` is random (16 hex digits), so that a reused pid or a second host is never taken for the same process. It is the value of
    ``spanreplay.process.id``.
    """

    host: str
    pid: int
    process_id: str
    started_ns: int
    argv: tuple[str, ...] = ()
    """What runs, already redacted: it is written as it is."""
    python: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of distributions that shape the record, by name."""
    forked_from: str | None = None
    """``process_id`` of the process this one was forked from."""


_current: ProcessInfo | None = None


def current_process() -> ProcessInfo:
    """This process. The same object until the process forks; a child gets an identity of its own."""
    global _current  # noqa: PLW0603 - one identity for the whole process
    known = _current
    if known is not None and known.pid == os.getpid():
        return known
    _current = ProcessInfo(
        host=socket.gethostname(),
        pid=os.getpid(),
        process_id=secrets.token_hex(8),
        started_ns=time.time_ns(),
        argv=known.argv if known else _program(),
        python=sys.version.split()[0],
        versions=known.versions if known else _versions(),
        forked_from=known.process_id if known else None,
    )
    return _current


def _program() -> tuple[str, ...]:
    """Interpreter and script. Arguments can be secrets; the run's definition keeps them, redacted."""
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    return tuple(part for part in (sys.executable, script if Path(script).name else "") if part)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"spanreplay": version("spanreplay")}
    except PackageNotFoundError:
        return {}
