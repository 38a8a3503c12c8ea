"""``spanreplay show``."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.joining import joining
from spanreplay.cli.options import WrongUse, common, detail, print_json, print_text, verbose
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.replay.model import Run


@click.command("show")
@click.argument("target", default="last")
@click.option("--step", type=click.IntRange(1), metavar="N", help="One step, whole.")
@click.option("--tree", is_flag=True, help="Every span that was recorded, each under its parent.")
@joining
@fetching
@common
def command(target: str, step: int | None, tree: bool, store: Path | None, as_json: bool) -> None:
    """Show a run, step by step.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN.

    \b
    spanreplay show
    spanreplay show last~1 --step 3
    spanreplay show traces.json --tree
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.target import load
    from spanreplay.replay.reports.text import render_run, render_step, render_tree
    from spanreplay.spans.record import SpanRecord

    if step is not None and tree:
        raise click.UsageError("give --step or --tree, not both")
    loaded = load(target, store, alone=True)
    runs = [_with_command(run, loaded.siblings) for run in loaded.runs]
    if step is not None:
        run = loaded.one()
        found = next((s for s in run.steps if s.seq == step), None)
        if found is None:
            has = f"has steps 1 to {len(run.steps)}" if run.steps else "has no steps"
            raise WrongUse(f"run {short_id(run.run_id)} {has}; found --step {step}")
        if as_json:
            print_json({"schema": 1, "run_id": run.run_id, "step": found.to_json()})
        else:
            print_text(render_step(found))
    elif tree:
        traces = {t for run in loaded.runs for t in run.trace_ids}
        records = [r for r in loaded.records if r.trace_id in traces]
        if as_json:
            print_json({"schema": 1, "spans": list(_listed(r for r in records if isinstance(r, SpanRecord)))})
        else:
            print_text(render_tree(records))
    elif as_json:
        from spanreplay.replay.reports.json import document

        print_json(document(runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity))
    else:
        about(loaded)
        print_text("\n\n".join(render_run(r) for r in runs) or "no runs")
        if verbose():
            from spanreplay.replay.rebuilding.behaviour import behaviour_hash

            for run in runs:
                detail(f"run {short_id(run.run_id)}: behaviour {behaviour_hash(run)}")


def _with_command(run: "Run", siblings: "Sequence[Run]") -> "Run":
    """The run, told as well what its command did outside every seam before or after it."""
    from spanreplay.replay.model import Reason
    from spanreplay.replay.reasons import UNTAPED, untaped
    from spanreplay.replay.reexecution.missing_state import is_kept

    around = next((r for r in siblings if r.is_command and r.command_id == run.command_id and r.run_id != run.run_id), None)
    if around is None or run.command_id is None:
        return run
    of_state = {untaped(item) for item in (*run.untaped, *around.untaped) if is_kept([around], item)}
    kept = tuple(reason for reason in run.grade_reasons if reason.code != UNTAPED or reason.detail not in of_state)
    known = {reason.detail for reason in run.grade_reasons if reason.code == UNTAPED}
    more = dict.fromkeys(text for text in map(untaped, around.untaped) if text not in known | of_state)
    reasons = [Reason(code=UNTAPED, detail=f"its command, {text}") for text in more]
    return replace(run, grade_reasons=(*kept, *reasons)) if reasons or of_state else run


def _listed(spans: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """A span a row, parents by id: JSON nested as deep as spans can be would be more than readers take."""
    for span in spans:
        yield {
            "trace_id": span.trace_id,
            "span_id": span.span_id,
            "parent_span_id": span.parent_span_id,
            "name": span.name,
            "started_ns": str(span.start_ns),
            "ended_ns": None if span.end_ns is None else str(span.end_ns),
            "status": span.status,
            "status_message": span.status_message,
        }
