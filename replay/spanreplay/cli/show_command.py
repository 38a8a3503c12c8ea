"""``spanreplay show``."""

from pathlib import Path

import click

from spanreplay.cli.options import common, print_json, print_text


@click.command("show")
@click.argument("target", default="last")
@click.option("--step", type=click.IntRange(1), help="One step, whole.")
@click.option("--tree", is_flag=True, help="The span tree.")
@common
def command(target: str, step: int | None, tree: bool, store: Path | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Show a run, step by step.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, or FILE#RUN.

    \b
    spanreplay show last --step 3
    """  # noqa: D301
    from spanreplay.cli.target import load
    from spanreplay.replay.reports.json import document
    from spanreplay.replay.reports.text import render_run, render_step, render_tree

    loaded = load(target, store)
    if step is not None:
        run = loaded.one()
        found = next((s for s in run.steps if s.seq == step), None)
        if found is None:
            raise click.UsageError(f"run {run.run_id[:12]} has steps 1 to {len(run.steps)}; found --step {step}")
        if as_json:
            print_json({"schema": 1, "run_id": run.run_id, "step": found.to_json()})
        else:
            print_text(render_step(found))
    elif tree:
        print_text(render_tree(loaded.records))
    elif as_json:
        print_json(document(loaded.runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity))
    else:
        print_text("\n\n".join(render_run(r) for r in loaded.runs))
