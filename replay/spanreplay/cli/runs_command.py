"""``spanreplay runs``."""

from dataclasses import asdict
from pathlib import Path

import click

from spanreplay.cli.filtering import Filters, filtering
from spanreplay.cli.options import common, detail, many, print_json, print_text, say, say_some, store_path


@click.command("runs")
@filtering
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", default=50, show_default=True, help="At most so many, newest first.")
@common
def command(filters: Filters, limit: int, store: Path | None, as_json: bool) -> None:
    """List the recorded runs, newest first.

    \b
    spanreplay runs
    spanreplay runs --agent refunds --since 2d --outcome error
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store
    from spanreplay.replay.reports.text import render_runs
    from spanreplay.replay.showing import short_id

    path = store_path(store)
    with ready_store(path) as opened:
        rows = opened.find_runs(**filters.asked(), limit=limit + 1)
        any_at_all = bool(rows) or bool(opened.find_runs(limit=1))
        more, rows = len(rows) > limit, rows[:limit]
        unsettled = opened.unsettled([row.run_id for row in rows if row.grade == "incomplete"])
        others, in_runs = opened.unsettled_elsewhere([row.run_id for row in rows])
    if as_json:
        listed = [
            {
                **asdict(r),
                "started_ns": str(r.started_ns),
                "ended_ns": None if r.ended_ns is None else str(r.ended_ns),
                "unsettled": [{"step": seq, "name": name, "effect": effect} for run, seq, name, effect in unsettled if run == r.run_id],
            }
            for r in rows
        ]
        print_json({"schema": 1, "runs": listed})
    elif rows or not any_at_all:
        print_text(render_runs(rows))
    else:
        print_text("no run meets the filters")
    if not any_at_all:
        say(f"the store {path} has no run yet. Record one with: spanreplay record -- python agent.py")
    if more:
        say(f"these are the newest {limit}; --limit shows more")
    say_some(
        [
            f"run {short_id(run_id)}: step {seq}, {name} (effect {effect}), began and has no end: it may have acted"
            for run_id, seq, name, effect in unsettled
        ]
    )
    if others:
        verb, acted = ("has", "it may have acted") if others == 1 else ("have", "they may have acted")
        where = f"{many(in_runs, 'run')} that {'is' if in_runs == 1 else 'are'} not listed here"
        say(f"{many(others, 'step')} of {where} began and {verb} no end: {acted}")
    for row in rows:
        session_text = f", session {row.session_id}" if row.session_id else ""
        command_text = f", of the recorded command {row.command_id}" if row.command_id else ""
        detail(f"run {row.run_id}: from {row.origin or 'an unknown origin'}{session_text}{command_text}")
