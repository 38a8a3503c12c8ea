"""A dialect reads the spans of one kind of instrumentation; this module says what it has to give and finds all of them.

A new dialect is one file in ``dialects/`` with a module-level ``DIALECT``. Of those that claim a span, the one with the lowest
``PRIORITY`` reads it; where it found no content, what the next ones find is added.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Protocol

from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay import dialects
from spanreplay.replay.model import Grade, Json, Reason, Wire
from spanreplay.spans.record import LogRecord, SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraft:
    """What a span says about the run that it is the root of."""

    run_id: str | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    session_id: str | None = None
    outcome: OutcomeName = "unknown"
    error: Json = None
    definition: Json = None
    input: Json = None
    output: Json = None
    artifacts: tuple[Json, ...] = ()
    versions: Mapping[str, Json] = field(default_factory=dict)
    grade: Grade = "exact"
    reasons: tuple[Reason, ...] = ()
    path: str | None = None
    command_id: str | None = None
    is_command: bool = False
    exit_code: int | None = None
    typed_input: str | None = None
    typed_output: str | None = None
    typed_error: str | None = None
    ended_by: tuple[str, ...] | None = None
    redaction: str | None = None
    seed: str | None = None
    random_seeded: bool = False
    hash_seed: str | None = None
    clock_reads: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    code: Json = None
    state: Json = None
    variables: Json = None
    dropped: int = 0
    untaped: tuple[Json, ...] = ()
    forked_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDraft:
    """What one span says about the step it is, before its place in the run is known.

    Fields that a :class:`spanreplay.replay.model.Step` has too mean the same here.
    """

    kind: Kind
    name: str
    grade: Grade
    reasons: tuple[Reason, ...] = ()
    outcome: OutcomeName
    call_id: str | None = None
    agent: str | None = None
    session_id: str | None = None
    input: Json = None
    output: Json = None
    error: Json = None
    usage: Mapping[str, int] = field(default_factory=dict)
    effect: str | None = None
    action_id: str | None = None
    decision: Json = None
    target: str | None = None
    resources: tuple[Json, ...] = ()
    versions: Mapping[str, Json] = field(default_factory=dict)
    """``model``, ``prompt``, ``tool``, ``tools`` (as offered), ``skill``, ``code``; see :mod:`spanreplay.replay.reading.versions`."""
    attempt: int = 1
    path: str | None = None
    process: str | None = None
    seq_fork: int | None = None
    clock_reads: str | None = None
    orders: str | None = None
    passed: bool = False
    seq_start: int | None = None
    seq_end: int | None = None
    turn: int | None = None
    typed_input: str | None = None
    typed_result: str | None = None
    typed_error: str | None = None
    typed_items: str | None = None
    wire: Wire | None = None
    answered_from: tuple[str, int] | None = None
    stands_for: int | None = None
    changed: Json = None
    typed_left: str | None = None
    typed_sent: str | None = None
    injected: str | None = None

    parent_span: str | None = None
    """Span id of the step inside which this one ran, where the span says so itself."""
    requested_by_span: str | None = None
    requested_in: str | None = None
    """The run of that span, where it is another one."""
    retry_of_span: str | None = None
    response_id: str | None = None
    """The id that the model's provider gave its answer: two spans with one id are one call."""
    every_setting: bool = False
    """The parameters of the model call are all that it had: what is not among them was not set."""
    serves: bool = False
    """The server's side of a call; the client's side may be another span, around it."""
    transport: bool = False
    """Only carries the call of the step around it, as an MCP ``tools/call`` does; a step of its own where no other is around it."""
    run: RunDraft | None = None
    """What the span says about a run, if it may be the root of one."""
    root: bool = False
    """The span says that it is the root of a run. Without it, an outermost ``agent`` that has a ``run`` is the root."""
    perhaps_text: str | None = None
    """The result as written, which is JSON but may have been a text; the model is told of anything but a text as Python shows it."""
    frame: bool = False
    """No step: a chain, a task, a wrapper of a framework. It is the root of a run if everything in the run happened inside it."""
    if_asked: "StepDraft | None" = None
    """Of a frame that may be a tool: the call that it is, where a model asked for just that."""


OWN: Final = 0
"""``PRIORITY`` of the dialect of our own spans, which nobody knows better."""


class Dialect(Protocol):
    """Reads the spans of one kind of instrumentation."""

    NAME: str
    PRIORITY: int
    """Lower is asked first: 0 for our own, below 900 for whatever is recognised by names of its own, 900 for the general conventions."""

    def claims(self, span: SpanRecord) -> bool:
        """Whether this dialect is the one to read the span. Cheap: looks at names, and at a value only where they do not tell."""
        ...

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` where the span is none (it is then counted as unclassified).

        Args:
            span: as recorded, completed by the events that hold its content.
            logs: log records written in the span, in order of time.
        """
        ...


@cache
def registry() -> tuple[Dialect, ...]:
    """All dialects, the first to be asked first."""
    found: list[Dialect] = [
        importlib.import_module(f"{dialects.__name__}.{module.name}").DIALECT for module in pkgutil.iter_modules(dialects.__path__)
    ]
    return tuple(sorted(found, key=lambda dialect: (dialect.PRIORITY, dialect.NAME)))
