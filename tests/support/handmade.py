"""Runs and steps made by hand."""

from typing import Any

from spanreplay.replay.model import Run, Step, Versions


def step(seq: int, path: str | None, asked: str, *, end: int | None = None, **changes: Any) -> Step:
    """A step whose kind and name are those of its path."""
    kind, _, name = (path or "tool_call:t#0").rpartition("/")[2].rpartition("#")[0].partition(":")
    given: dict[str, Any] = {
        "seq": seq,
        "kind": kind,
        "name": name,
        "call_id": None,
        "trace_id": "1" * 32,
        "span_id": f"{seq:016x}",
        "parent_seq": None,
        "requested_by": None,
        "attempt": 1,
        "retry_of": None,
        "agent": None,
        "input": None,
        "output": None,
        "outcome": "ok",
        "error": None,
        "usage": {},
        "effect": None,
        "action_id": None,
        "decision": None,
        "target": None,
        "resources": (),
        "versions": {},
        "started_ns": seq,
        "ended_ns": seq + 1,
        "overlaps": (),
        "grade": "exact",
        "reasons": (),
        "dialect": "spanreplay",
        "path": path,
        "process": "p",
        "seq_start": seq * 10,
        "seq_end": seq * 10 + 5 if end is None else end,
        "typed_input": asked,
    }
    return Step(**{**given, **changes})


def run(*steps: Step, **changes: Any) -> Run:
    """A run of these steps."""
    given: dict[str, Any] = {
        "run_id": "r",
        "trace_ids": (),
        "session_id": None,
        "agent_name": "a",
        "agent_version": None,
        "started_ns": 0,
        "ended_ns": None,
        "outcome": "ok",
        "error": None,
        "grade": "exact",
        "grade_reasons": (),
        "definition": None,
        "input": None,
        "output": None,
        "artifacts": (),
        "versions": Versions(),
        "steps": steps,
        "unclassified_spans": 0,
        "orphan_spans": 0,
    }
    return Run(**{**given, **changes})


def given(told: Any) -> dict[str, Any]:
    """Attributes by name, as keyword arguments: a type checker takes their names for those of the other parameters."""
    return dict(told)
