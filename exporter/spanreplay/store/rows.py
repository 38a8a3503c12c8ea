"""The rows that are derived from spans: runs and their steps, as the database has them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run. Times are nanoseconds since the epoch; ``*_json`` values are JSON texts."""

    run_id: str
    trace_ids: tuple[str, ...]
    """Traces it has spans in; kept in the table ``run_traces``."""
    session_id: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    model: str | None = None
    """The models called, joined by a comma."""
    service: str | None = None
    started_ns: int = 0
    ended_ns: int | None = None
    outcome: str = "unknown"
    grade: str = "incomplete"
    n_steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    command_id: str | None = None
    is_command: bool = False
    origin: str | None = None
    """Who delivered its spans: recorder, exporter, import, receiver. Left out, the store fills it in."""
    dropped: int = 0
    error_type: str | None = None
    error_message: str | None = None
    input: str | None = None
    """JSON text."""
    output: str | None = None
    """JSON text."""
    versions: str | None = None
    """JSON text: an object of what the run saw, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step of a run; ``(run_id, seq)`` names it."""

    run_id: str
    seq: int
    kind: str
    name: str
    call_id: str | None = None
    trace_id: str
    span_id: str
    parent_seq: int | None = None
    requested_by: int | None = None
    attempt: int = 1
    retry_of: int | None = None
    agent: str | None = None
    outcome: str = "unknown"
    error_type: str | None = None
    error_message: str | None = None
    effect: str | None = None
    action_id: str | None = None
    target: str | None = None
    decision: str | None = None
    """JSON text."""
    started_ns: int = 0
    ended_ns: int | None = None
    grade: str = "incomplete"
    dialect: str = ""
    path: str | None = None
    input: str | None = None
    """JSON text."""
    output: str | None = None
    """JSON text."""
    versions: str | None = None
    """JSON text: an object, what was in force at this step by kind."""
    input_tokens: int | None = None
    output_tokens: int | None = None
