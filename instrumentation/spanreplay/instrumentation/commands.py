"""Commands that an agent runs, as the Boundary takes them: what was asked of the system, and what came of it.

A step of kind ``io`` named by the program. Its input is ``{"command": [words] or text, "cwd", "stdin"}``, the last two where they are known
at the start; its result::

    {"exit_code": int, "stdout": text, "stderr": text, "stdin": text, "stdin_open": true, "signals": [int], "polls": int,
     "timeouts": int, "timed_out": [seconds], "open": [name], "files": {path: …}}

``stdout`` and ``stderr`` are ``null`` where the agent did not take them, by a pipe or into a file of its own; everything behind them is
there only where there is something. ``stdin`` is what the agent wrote to the command while that ran, ``stdin_open`` that it may not be all:
the agent had not closed it by the end, or could not write on. ``exit_code`` is ``null`` where the agent has left the command running, or
did not wait for its end. ``signals`` are those that the agent sent, ``polls`` how often it asked and was told that the command still ran,
``timeouts`` how often it waited in vain, ``timed_out`` how long it had waited as it was told, where that is not what it had asked for,
``open`` the streams that had not ended when it sent the first signal, or left. For ``files`` see
:mod:`spanreplay.instrumentation.commands_files`.
"""

import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from spanreplay.boundary.call import AttributeValue, Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.codec import Encoded
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation import commands_files
from spanreplay.instrumentation.commands_files import Snapshot
from spanreplay.semconv import attributes as names

LAYER: Final = "command"
LIMIT: Final = 16 * 2**20
"""Bytes kept of each stream of a command; what has more is cut, and its step is graded down."""

_CONTAINERS: Final = frozenset({"agent", "handoff"})
_TEMPORARY: Final = "$TMPDIR"
_ASSIGNED: Final = "="
_EACH_TIME: Final = frozenset({"TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR", "TRACEPARENT"})


def makes_a_step(scope: Scope) -> bool:
    """Whether a command started here is the agent's own: inside any other step it belongs to that step."""
    return scope.step is None or scope.step.call.passed or scope.step.call.kind in _CONTAINERS


def call_of(
    scope: Scope, command: object, *, cwd: object = None, env: Mapping[Any, Any] | None = None, stdin: str | bytes | None = None
) -> Call:
    """The call that starting a command is.

    Args:
        scope: where it is started.
        command: as given to ``Popen``: words, or a text for the shell.
        cwd: folder to run it in, if one is given.
        env: the command's environment, if one is given.
        stdin: all that it will be given to read, where that is known now.

    Raises:
        TypeError: there is no such command.
    """
    words, asked = _words(command, scope.session.redactor)
    program = _program(words) if isinstance(asked, list) else _first_of(words)
    given: dict[str, object] = {"command": [program, *asked[1:]] if isinstance(asked, list) else asked}
    attributes: dict[str, AttributeValue] = {names.PROCESS_EXECUTABLE_NAME: program, names.PROCESS_COMMAND_ARGS: words}
    if cwd is not None:
        folder = os.fsdecode(cwd)  # type: ignore[arg-type]
        attributes[names.PROCESS_WORKING_DIRECTORY] = os.path.abspath(folder)  # noqa: PTH100 — quick
        given["cwd"] = _from_here(folder, scope.session.redactor)
    if env is not None:
        attributes[names.ENVIRONMENT_DIGEST] = environment_digest({os.fsdecode(k): os.fsdecode(v) for k, v in env.items()})
    if stdin is not None:
        given["stdin"] = stdin
    encoded = codec.encode(given)
    return Call(
        kind="io",
        name=program,
        input=Encoded(text=_without_temporary(encoded.text), lossy=encoded.lossy, typed=encoded.typed),
        attributes=attributes,
        effect="unknown",
        layer=LAYER,
        ending=_ending,
    )


def environment_digest(environment: Mapping[str, str]) -> str:
    """Digest of a child's variables, without those that a recording or a replay gives every process: they differ each time."""
    kept = {name: value for name, value in environment.items() if name not in _EACH_TIME and not name.startswith("SPANREPLAY_")}
    return digest(canonical_json(kept))


def _words(command: object, redactor: Redactor) -> tuple[list[str], list[str] | str]:
    """A command without secrets, in words, and as it was asked."""
    if isinstance(command, Sequence) and not isinstance(command, str | bytes):
        given = [os.fsdecode(word) for word in command]
        words = redactor.arguments(given)
        there = [_without_temporary(word) for word in given]  # first: a replay's redactor names their folder as it was
        return words, words if there == given else redactor.arguments(there)
    text = os.fsdecode(command)  # type: ignore[arg-type]
    words, asked = _parted(text, redactor)
    lasting = _without_temporary(text)
    return words, asked if lasting == text else _parted(lasting, redactor)[1]


def _parted(text: str, redactor: Redactor) -> tuple[list[str], str]:
    try:
        parted = shlex.split(text)
    except ValueError:  # the shell knows more quotes than Python does
        parted = text.split()
    kept = redactor.arguments(parted)
    whole, secrets = redactor.text(text)
    has_none = not secrets and kept == [redactor.text(word)[0] for word in parted]
    return kept, whole if has_none else " ".join(kept)


def _from_here(folder: str, redactor: Redactor) -> str:
    """A folder from the working folder; a replay, whose temporary folder lies elsewhere, goes by what that was called."""
    near = os.path.relpath(folder)
    return near if _without_temporary(near) != near else os.path.relpath(redactor.text(os.path.abspath(folder))[0])  # noqa: PTH100 — quick


def _program(words: Sequence[str]) -> str:
    return PurePath(words[0]).name if words and words[0] else "command"


def _first_of(words: Sequence[str]) -> str:
    return _program([word for word in words if _ASSIGNED not in word][:1])


def _without_temporary(text: str) -> str:
    """Paths that :mod:`tempfile` made have a new name in every execution."""
    from spanreplay.instrumentation.shims import untaped

    here = tempfile.gettempdir()
    if here in text and len(untaped.temporary()) <= commands_files.MOST:
        for path in sorted(untaped.temporary(), key=len, reverse=True):
            text = text.replace(path, f"{_TEMPORARY}/…")
    return text


def _ending(given: object) -> OutcomeName | None:
    code = given.get("exit_code") if isinstance(given, Mapping) else None
    return "tool_error" if code else None


# ---- while it runs ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Taken:
    """What was read of a stream, up to :data:`LIMIT`."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    over: bool = False
    """The stream has been read to its end, or closed."""
    seen: bool = False
    """Nothing of it was read in a way that is not seen here."""

    until_now: bytes = b""
    """What there was when the agent had waited in vain; the whole comes later, if the agent reads on."""

    def until(self, data: object) -> None:
        """The agent has waited in vain, and knows what there is up to now."""
        self.seen = True
        self.until_now = data[:LIMIT] if isinstance(data, bytes) else b""

    def add(self, data: bytes) -> None:
        """Take a further piece."""
        if data and self.size < LIMIT:
            self.parts.append(bytes(data[: LIMIT - self.size]))
        self.size += len(data)

    @property
    def cut(self) -> bool:
        """Whether there was more."""
        return self.size > LIMIT

    def value(self) -> str | bytes:
        """The text, or the bytes where they are none."""
        whole = b"".join(self.parts) or self.until_now
        try:
            return whole.decode()
        except UnicodeDecodeError:
            return whole


class Fed(Taken):
    """What the agent writes to a command, up to :data:`LIMIT`; ``over`` when it has closed that."""

    past = False
    """``communicate`` writes now, and has told what."""
    broken = False
    """The command has read no further."""

    def all(self, data: object, encoding: str | None = None, errors: str | None = None) -> None:
        """The last of it, as ``communicate`` is given it; what comes later does not count."""
        if not self.over and data:
            self.add(data.encode(encoding or "utf-8", errors or "strict") if isinstance(data, str) else bytes(data))  # type: ignore[call-overload]
        self.over = True

    def told(self) -> dict[str, Any]:
        """As a result has it."""
        value = self.value()
        open_ = {} if self.over and not self.broken else {"stdin_open": True}
        return {"stdin": _without_temporary(value) if isinstance(value, str) else value, **open_}


class Into:
    """A file of the agent's own that a command writes one of its streams to."""

    def __init__(self, fd: int) -> None:
        import fcntl  # not on every system

        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        self._start = os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
        self._fd = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)  # the agent may close or delete it, and may only write to it

    def written(self) -> bytes:
        """What is there now that was not before, up to one byte more than is kept; once."""
        with open(self._fd, "rb") as file:  # noqa: PTH123 — it has no path
            file.seek(self._start)
            return file.read(LIMIT + 1)


class Live:
    """A command that runs while it is recorded."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.streams: dict[str, Taken] = {}
        self.into: dict[str, Into] = {}
        self.fed: Fed | None = None
        """What the agent writes to it, where that is seen."""
        self.signals: list[int] = []
        self.open: list[str] = []
        """The streams that had not ended when the agent sent the first signal."""
        self.polls = 0
        self.timeouts = 0
        self.timed_out: list[float] = []
        """How long it had waited, as it was told."""
        self.depth = 0
        """Of the functions of ``Popen`` that call each other."""
        self.done = False
        self.forgotten = False
        """The agent has only the streams left."""
        self.code: int | None = None
        """The exit code that it was told before that."""
        self._odd_waits = False
        self._process = os.getpid()
        self._before: Snapshot | None = commands_files.snapshot()

    def writes_to(self, name: str, fd: int) -> None:
        """A stream goes into a file: what comes there is read at the end."""
        self.streams[name] = Taken(over=True)
        self.into[name] = Into(fd)

    def signalled(self, number: int) -> None:
        """The agent sends a signal."""
        if not self.signals:
            self.open = self._unended()
        self.signals.append(number)

    def _unended(self) -> list[str]:
        return [name for name, taken in self.streams.items() if not taken.over]

    def waited(self, asked: object, told: float) -> None:
        """The agent has waited in vain.

        Args:
            asked: seconds that it was to wait.
            told: seconds that it was told to have waited; ``subprocess.run`` without pipes tells what was left of them at some moment.
        """
        self.timeouts += 1
        self.timed_out.append(told)
        self._odd_waits = self._odd_waits or asked != told

    def leave(self, code: int | None = None) -> None:
        """The agent is over, or has forgotten the command, and has not waited for its end, unless it knows the exit code."""
        if self.done or self._process != os.getpid():  # what a forked process inherits is not its own
            return
        if not self.signals:
            self.open = self._unended()
        for taken in self.streams.values():
            taken.seen = True
        self.finish(code, outcome="abandoned" if code is None else None)

    def finish(self, code: int | None, *, outcome: OutcomeName | None = None) -> None:
        """The command is over; once."""
        if self.done:
            return
        self.done = True
        try:
            for name, into in self.into.items():
                self.streams[name].add(into.written())
                self.streams[name].seen = True
            self.step.succeed(self._result(code), attributes=self._lost(), outcome=outcome)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.step.session.failed(f"the end of {self.step.path}")

    def _result(self, code: int | None) -> dict[str, Any]:
        made: dict[str, Any] = {"exit_code": code, "stdout": None, "stderr": None}
        made |= {name: taken.value() for name, taken in self.streams.items()}
        counted: dict[str, object] = {"signals": self.signals, "polls": self.polls, "timeouts": self.timeouts, "open": self.open}
        counted["timed_out"] = self.timed_out if self._odd_waits else []
        made |= {name: value for name, value in counted.items() if value}
        made |= {} if self.fed is None else self.fed.told()
        if self._before is not None and (changed := commands_files.changes(self._before)):
            made["files"] = changed
        return made

    def _lost(self) -> dict[str, Any] | None:
        lost = any(taken.cut or not (taken.seen or taken.size) for taken in self.streams.values())
        return {names.STEP_LOSSY: canonical_json([names.STEP_RESULT])} if lost else None


class Result:
    """The record of a command, as a replay needs it; odd values count as absent."""

    def __init__(self, recorded: object) -> None:
        held: Mapping[str, Any] = recorded if isinstance(recorded, Mapping) else {}
        self.signals = held.get("signals") or ()
        self.left = "exit_code" in held and held["exit_code"] is None
        """The agent did not wait for its end."""
        last = _integer(self.signals[-1]) if isinstance(self.signals, list) and self.signals else None
        self.code = (-last if self.left and last else _integer(held.get("exit_code"))) or 0
        self.open = held.get("open") or ()
        self.polls = _integer(held.get("polls")) or 0
        self.timeouts = _integer(held.get("timeouts")) or 0
        waits = held.get("timed_out")
        self.timed_out = [wait for wait in waits if isinstance(wait, int | float)] if isinstance(waits, list) else []
        self._held = held

    def stream(self, name: str) -> bytes:
        """What the command wrote to ``stdout`` or ``stderr``."""
        value = self._held.get(name)
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value if isinstance(value, bytes) else b""


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None
