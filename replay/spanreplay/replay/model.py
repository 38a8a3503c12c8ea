"""A run and its ordered steps: what every view, match, difference and report works on.

:func:`Run.to_json` is the stable JSON of the command line (schema 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from spanreplay.boundary.call import Kind, OutcomeName

SCHEMA: Final = 1

Grade: TypeAlias = Literal["exact", "semantic", "structure", "incomplete"]
GRADE_ORDER: Final[tuple[Grade, ...]] = ("exact", "semantic", "structure", "incomplete")
GRADE_WORDS: Final[Mapping[Grade, str]] = {
    "exact": "replays exactly",
    "semantic": "replays by meaning",
    "structure": "view only",
    "incomplete": "cut short",
}

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list, dict with string keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a step, or the run, has the grade it has."""

    code: str
    detail: str
    step: int | None = None
    """``seq`` of the step concerned."""
    field: str | None = None
    """Name of the attribute concerned."""
    size: int | None = None
    """Bytes that are left of it, where it was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The exact HTTP exchange behind a model call or an ``io`` step."""

    provider: str | None
    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int | None
    """``None`` when no response came (connection refused, time-out)."""
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    """The bytes received, before content decoding."""
    chunks: tuple[tuple[int, int], ...]
    """(bytes, nanoseconds since the request) of each chunk, in order; the bytes add up to ``response_body``."""
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a run."""

    seq: int
    """Place in the run's total order, from 1."""
    kind: Kind
    name: str
    call_id: str | None
    trace_id: str
    span_id: str
    parent_seq: int | None
    requested_by: int | None
    attempt: int
    retry_of: int | None
    agent: str | None
    input: Json
    output: Json
    outcome: OutcomeName
    error: Json
    """``{"type": …, "message": …}`` or ``None``."""
    usage: Mapping[str, int]
    effect: str | None
    action_id: str | None
    decision: Json
    target: str | None
    resources: tuple[Json, ...]
    versions: Mapping[str, Json]
    started_ns: int
    ended_ns: int | None
    overlaps: tuple[int, ...]
    grade: Grade
    reasons: tuple[Reason, ...]
    dialect: str

    # What a re-execution or an export needs; not part of the JSON.
    conversation_id: str | None = None
    """The conversation or session that the step itself names."""
    every_setting: bool = False
    """The parameters in ``input`` are all that the model call had: what is not among them was not set."""
    path: str | None = None
    """Causal path, relative to the run; ``None`` for a step that spanreplay did not record."""
    process: str | None = None
    passed: bool = False
    """A tool that is an agent: a replay runs its body, and answers the calls in it."""
    seq_fork: int | None = None
    """The last place of that order that was taken when the task or thread that made the call was started."""
    clock_reads: str | None = None
    """What the program read of the clock before this step, see :mod:`spanreplay.boundary.clock_reads`."""
    orders: str | None = None
    """In which order jobs and results came before this step, see :mod:`spanreplay.boundary.orders`."""
    seq_start: int | None = None
    seq_end: int | None = None
    """Place in the process's monotonic order at start and at end."""
    turn: int | None = None
    """In which turn of its event loop it ended, see :func:`spanreplay.boundary.loops.turn_number`; ``None`` where that is not known."""
    typed_input: str | None = None
    """Typed JSON text of the arguments (tool, io, human, …); what a match compares."""
    typed_result: str | None = None
    """Typed JSON text of the result."""
    typed_error: str | None = None
    typed_items: str | None = None
    """Typed JSON list of what a streaming call gave."""
    wire: Wire | None = None
    requested_in: str | None = None
    """The run in which a model asked for the call, where it is not this one: the run before, which waited for a human."""
    answered_from: tuple[str, int] | None = None
    """Run and step whose record answered it, in a run that was recorded while another one was executed again."""
    stands_for: int | None = None
    """The step of the run forked from in place of which it was live."""
    changed: Json = None
    """What a fork changed of the call or of its result, by key."""
    typed_left: str | None = None
    """What the tool changed in place."""
    typed_sent: str | None = None
    """What a fork sent in place of ``typed_input``, as typed JSON text."""
    injected: str | None = None
    """The fault that a fork injected."""

    def to_json(self) -> dict[str, Json]:
        """The step as in ``spanreplay replay --json``."""
        return {
            "seq": self.seq,
            "kind": self.kind,
            "name": self.name,
            "call_id": self.call_id,
            "span_id": self.span_id,
            "trace_id": self.trace_id,
            "parent_seq": self.parent_seq,
            "requested_by": self.requested_by,
            "attempt": self.attempt,
            "retry_of": self.retry_of,
            "agent": self.agent,
            "input": self.input,
            "output": self.output,
            "outcome": self.outcome,
            "error": self.error,
            "usage": dict(self.usage),
            "effect": self.effect,
            "action_id": self.action_id,
            "decision": self.decision,
            "target": self.target,
            "resources": list(self.resources),
            "versions": dict(self.versions),
            "started_ns": str(self.started_ns),
            "ended_ns": None if self.ended_ns is None else str(self.ended_ns),
            "overlaps": list(self.overlaps),
            "grade": self.grade,
            "dialect": self.dialect,
            **({} if self.requested_in is None else {"requested_in": self.requested_in}),
            **self._fork_json(),
        }

    def _fork_json(self) -> dict[str, Json]:
        """Only in runs that are forks."""
        found: dict[str, Json] = {"stands_for": self.stands_for, "changed": self.changed, "injected": self.injected}
        if self.answered_from is not None:
            found["answered_from"] = {"run_id": self.answered_from[0], "step": self.answered_from[1]}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions seen in a run, each list in order of first use."""

    prompt: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()
    model: tuple[Json, ...] = ()
    skills: tuple[Json, ...] = ()
    code: Json = None
    dependencies: Json = None

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay replay --json``."""
        return {
            "prompt": list(self.prompt),
            "tools": list(self.tools),
            "model": list(self.model),
            "skills": list(self.skills),
            "code": self.code,
            "dependencies": self.dependencies,
        }


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Run:
    """One run: its definition, its input and output, its steps in total order."""

    run_id: str
    trace_ids: tuple[str, ...]
    session_id: str | None
    agent_name: str | None
    agent_version: str | None
    started_ns: int
    ended_ns: int | None
    outcome: OutcomeName
    error: Json
    grade: Grade
    grade_reasons: tuple[Reason, ...]
    definition: Json
    input: Json
    output: Json
    artifacts: tuple[Json, ...]
    versions: Versions
    steps: tuple[Step, ...]
    unclassified_spans: int
    orphan_spans: int

    # What a re-execution needs; not part of the JSON.
    path: str | None = None
    """Where in its process this run began (``spanreplay.run.path``)."""
    command_id: str | None = None
    is_command: bool = False
    exit_code: int | None = None
    typed_input: str | None = None
    typed_output: str | None = None
    typed_error: str | None = None
    """The exception that ended it."""
    ended_by: tuple[str, ...] | None = None
    """The same of each process that a command has started and an exception has ended; ``None`` where that is not known."""
    redaction: str | None = None
    """The redaction policy in force while recording, as its JSON text."""
    seed: str | None = None
    """What uuids and ``random`` were made from in a recorded command's top process."""
    random_seeded: bool = False
    """A block of a process was recorded, and ``random`` made from the seed when it began."""
    hash_seed: str | None = None
    """``PYTHONHASHSEED`` that was chosen for a recorded command."""
    clock_reads: tuple[str, ...] = ()
    """What it read of the clock before it began, as far as no step has it, and after its last step."""
    orders: tuple[str, ...] = ()
    """As a step's, before it began as far as no step has it, and after its last step."""
    code: Json = None
    """The working tree that a recorded command was started from, see :mod:`spanreplay.recording.code`."""
    state: Json = None
    """The files that a recorded command started from (``record --state``), see :mod:`spanreplay.recording.state`."""
    variables: Json = None
    """Names of its variables to marks of their values, see :func:`spanreplay.recording.definition.marks`."""
    dropped: int = 0
    untaped: tuple[Json, ...] = ()
    root: tuple[str, str] | None = None
    """Trace id and span id of the span that is the run."""
    forked_from: str | None = None
    """The run that was executed again, with live calls, while this one was recorded."""

    def to_json(self) -> dict[str, Json]:
        """The run as in ``spanreplay replay --json``."""
        return {
            "run_id": self.run_id,
            "trace_ids": list(self.trace_ids),
            "session_id": self.session_id,
            "agent": {"name": self.agent_name, "version": self.agent_version},
            "started_ns": str(self.started_ns),
            "ended_ns": None if self.ended_ns is None else str(self.ended_ns),
            "outcome": self.outcome,
            "grade": self.grade,
            "grade_reasons": [{"code": r.code, "step": r.step, "detail": r.detail} for r in self.grade_reasons],
            "definition": self.definition,
            "input": self.input,
            "output": self.output,
            "artifacts": list(self.artifacts),
            "versions": self.versions.to_json(),
            "steps": [s.to_json() for s in self.steps],
            "unclassified_spans": self.unclassified_spans,
            "orphan_spans": self.orphan_spans,
            **({} if self.forked_from is None else {"forked_from": self.forked_from}),
        }
