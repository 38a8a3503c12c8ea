"""Runs and steps as the rows that the database keeps of them."""

from collections.abc import Iterable, Mapping
from typing import Final

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.fields import strict
from spanreplay.replay.reading.growing import PerElement
from spanreplay.replay.rebuilding.written import written
from spanreplay.store.rows import RunRow, StepRow


def run_row(run: Run, services: Mapping[str, str]) -> RunRow:
    """A run as the database has it.

    Args:
        run: the run.
        services: the service that each trace is from, by trace id.
    """
    models = [step for step in run.steps if step.kind == "model_call"]
    error = run.error if isinstance(run.error, dict) else {}
    return RunRow(
        run_id=run.run_id,
        trace_ids=run.trace_ids,
        session_id=run.session_id,
        agent=run.agent_name,
        agent_version=run.agent_version,
        model=", ".join(dict.fromkeys(step.name for step in models)) or None,
        service=next((services[trace] for trace in run.trace_ids if trace in services), None),
        started_ns=run.started_ns,
        ended_ns=run.ended_ns,
        outcome=run.outcome,
        grade=run.grade,
        n_steps=len(run.steps),
        model_calls=len(models),
        tool_calls=sum(step.kind == "tool_call" for step in run.steps),
        input_tokens=_total(models, "input_tokens"),
        output_tokens=_total(models, "output_tokens"),
        command_id=run.command_id,
        is_command=run.is_command,
        dropped=run.dropped,
        error_type=error.get("type"),
        error_message=error.get("message"),
        input=_json(run.input),
        output=_json(run.output),
        versions=_json(run.versions.to_json()),
    )


def step_row(run: Run, step: Step) -> StepRow:
    """A step as the database has it."""
    error = step.error if isinstance(step.error, dict) else {}
    return StepRow(
        run_id=run.run_id,
        seq=step.seq,
        kind=step.kind,
        name=step.name,
        call_id=step.call_id,
        trace_id=step.trace_id,
        span_id=step.span_id,
        parent_seq=step.parent_seq,
        requested_by=step.requested_by,
        attempt=step.attempt,
        retry_of=step.retry_of,
        agent=step.agent,
        outcome=step.outcome,
        error_type=error.get("type"),
        error_message=error.get("message"),
        effect=step.effect,
        action_id=step.action_id,
        target=step.target,
        decision=_json(step.decision),
        started_ns=step.started_ns,
        ended_ns=step.ended_ns,
        grade=step.grade,
        dialect=step.dialect,
        path=step.path,
        input=_json(step.input),
        output=_json(step.output),
        versions=_json(dict(step.versions) or None),
        input_tokens=step.usage.get("input_tokens"),
        output_tokens=step.usage.get("output_tokens"),
    )


def _json(value: Json) -> str | None:
    # Strict, because SQL's JSON functions refuse NaN.
    if value is None:
        return None
    try:
        return _view(value) if type(value) is dict and type(value.get("messages")) is list else written(value)
    except (ValueError, TypeError):
        return written(strict(value))


def _view(view: dict[str, Json]) -> str:
    """The same as ``written`` gives, of messages that were said before without writing them again."""
    pieces: list[str] = []
    for name, value in view.items():
        pieces.append(f"{',' if pieces else '{'}{written(name)}:")
        if type(value) is list and value:
            first, *others = _elements.of(value)
            pieces += ("[", first[1:], *others, "]")
        else:
            pieces.append(written(value))
    return "".join((*pieces, "}"))  # once: it is long


_elements: Final = PerElement(lambda element: f",{written(element)}")


def _total(steps: Iterable[Step], kind: str) -> int | None:
    counts = [step.usage[kind] for step in steps if kind in step.usage]
    return sum(counts) if counts else None
