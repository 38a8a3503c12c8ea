"""How a recording is read: what ``expected.json`` holds."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import Record

HERE: Final = Path(__file__).parent
HEAD: Final = ("framework", "version", "instrumentation", "content", "made")
"""What is said of a recording by hand."""


def recordings() -> Iterator[Path]:
    """The folders of all recordings, by name."""
    yield from sorted(path.parent for path in HERE.glob("*/*/expected.json"))


def spans_file(folder: Path) -> Path:
    """What was exported, whatever its format."""
    return next(path for path in sorted(folder.iterdir()) if path.stem == "spans")


def as_read(path: Path) -> dict[str, Any]:
    """A recording as the project reads it, without ids and times, which every making of it changes."""
    opened = open_source(str(path))
    runs = runs_as_read(opened.records)
    return {"format": opened.format, "fidelity": [entry["code"] for entry in opened.report.fidelity], "runs": runs}


def runs_as_read(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The runs that records make, as in ``expected.json``."""
    return [_run(run) for run in build_runs(records)]


def _run(run: Run) -> dict[str, Any]:
    return {
        "agent": run.agent_name,
        "session_id": run.session_id,
        "outcome": run.outcome,
        "grade": run.grade,
        "reasons": list(dict.fromkeys(reason.code for reason in run.grade_reasons)),
        "unclassified_spans": run.unclassified_spans,
        "orphan_spans": run.orphan_spans,
        "input": run.input,
        "output": run.output,
        "steps": [_step(step) for step in run.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "seq": step.seq,
        "kind": step.kind,
        "name": step.name,
        "call_id": step.call_id,
        "agent": step.agent,
        "outcome": step.outcome,
        "grade": step.grade,
        "dialect": step.dialect,
        "parent": step.parent_seq,
        "requested_by": step.requested_by,
        "input": step.input,
        "output": step.output,
        "error": step.error,
    }
