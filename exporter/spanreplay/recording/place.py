"""Where this process stands in a recorded command, and what its children are told of it.

The first Python process of a command is its top: it keeps the command's root span. A child goes on with the run, at the causal path where
it was started. All of it travels in environment variables, which :mod:`spanreplay.exporter.environment_variables` lists.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from spanreplay.exporter import environment_variables as env


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A process's place. Ids are lower-case hex."""

    command_id: str
    command_run: str
    """Id of the run that the command itself is."""
    run_id: str
    """Id of the run this process goes on with; the command's own in the top process."""
    path: str
    """Causal path at which this process was started; empty in the top process."""
    trace_id: str
    span_id: str
    """Of the command's root span."""
    parent_span_id: str | None = None

    @property
    def top(self) -> bool:
        """Whether this process keeps the command's root span."""
        return not self.path

    def environment(self, pid: int | None = None) -> dict[str, str]:
        """What a child of the process ``pid`` (default: this one) is told, wherever in it the child is started."""
        root = f"{self.trace_id}-{self.span_id}"
        return {
            env.SPANREPLAY_COMMAND_ID: self.command_id,
            env.SPANREPLAY_COMMAND_RUN: self.command_run,
            env.SPANREPLAY_COMMAND_ROOT: root if self.parent_span_id is None else f"{root}-{self.parent_span_id}",
            env.SPANREPLAY_RUN_ID: self.run_id,
            env.SPANREPLAY_PLACE: f"{os.getpid() if pid is None else pid}:{self.path}",
        }


def find_place(environ: Mapping[str, str] | None = None, pid: int | None = None) -> Place:
    """The place of this process: a new command's top, unless the environment says otherwise.

    Args:
        environ: the environment; this process's own by default.
        pid: this process's id, by default the real one.
    """
    environ = os.environ if environ is None else environ
    trace_id, span_id, parent = _root(environ)
    command_id = environ.get(env.SPANREPLAY_COMMAND_ID) or os.urandom(16).hex()
    run_id = environ.get(env.SPANREPLAY_RUN_ID)
    command_run = environ.get(env.SPANREPLAY_COMMAND_RUN) or run_id or os.urandom(16).hex()
    return Place(
        command_id=command_id,
        command_run=command_run,
        run_id=run_id or command_run,
        path=_path(environ, os.getpid() if pid is None else pid),
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
    )


def _path(environ: Mapping[str, str], pid: int) -> str:
    given = environ.get(env.SPANREPLAY_RUN_PATH, "")
    setter, colon, parent = environ.get(env.SPANREPLAY_PLACE, "").partition(":")
    if not colon:
        return given
    if setter == str(pid):  # the same process, running another program
        return parent
    if given and given != parent:
        return given
    return f"{parent}/~process" if parent else "~process"  # started past every seam: os.system, posix_spawn


def _root(environ: Mapping[str, str]) -> tuple[str, str, str | None]:
    parts = environ.get(env.SPANREPLAY_COMMAND_ROOT, "").split("-")
    if len(parts) >= 2 and _is_hex(parts[0], 32) and _is_hex(parts[1], 16):
        return parts[0], parts[1], parts[2] if len(parts) == 3 and _is_hex(parts[2], 16) else None
    outer = traceparent(environ.get(env.TRACEPARENT, ""))
    if outer is not None:
        return outer[0], os.urandom(8).hex(), outer[1]
    return os.urandom(16).hex(), os.urandom(8).hex(), None


def traceparent(text: str) -> tuple[str, str, int] | None:
    """Trace id, span id and flags of a W3C ``traceparent``; ``None`` if it is not one."""
    parts = text.strip().split("-")
    if len(parts) < 4 or not (_is_hex(parts[1], 32) and _is_hex(parts[2], 16) and _is_hex(parts[3], 2)):
        return None
    if not (int(parts[1], 16) and int(parts[2], 16)):
        return None
    return parts[1], parts[2], int(parts[3], 16)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and all(letter in "0123456789abcdef" for letter in text)
