"""``spanreplay runs``."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spanreplay.cli.filtering import Filters, filtering
from spanreplay.cli.options import common, detail, many, print_json, print_text, say, say_some, store_path

if TYPE_CHECKING:
    from spanreplay.store.rows import RunRow
    from spanreplay.store.store import Store


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
    from spanreplay.replay.reports.tables import render_runs
    from spanreplay.replay.showing import short_id

    path = store_path(store)
    with ready_store(path) as opened:
        with opened.reading():
            rows = opened.find_runs(**filters.asked(), limit=limit + 1)
            any_at_all = bool(rows) or bool(opened.find_runs(limit=1))
            left = None if any_at_all else opened.unloaded()
            more, rows = len(rows) > limit, rows[:limit]
            unsettled = opened.unsettled([row.run_id for row in rows if row.grade == "incomplete"])
            others, in_runs = opened.unsettled_elsewhere([row.run_id for row in rows])
        behaviours = _behaviours(opened, rows) if as_json else {}
    if as_json:
        listed = [
            {
                **asdict(r),
                "started_ns": str(r.started_ns),
                "ended_ns": None if r.ended_ns is None else str(r.ended_ns),
                "behaviour": behaviours.get(r.run_id),
                "unsettled": [{"step": seq, "name": name, "effect": effect} for run, seq, name, effect in unsettled if run == r.run_id],
            }
            for r in rows
        ]
        print_json({"schema": 1, "runs": listed})
    elif rows or not any_at_all:
        print_text(render_runs(rows))
    else:
        print_text("no run meets the filters")
    if left is not None and not left:
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


def _behaviours(store: "Store", rows: "Sequence[RunRow]") -> dict[str, str]:
    """What tells whether runs did the same, by the run's id."""
    from spanreplay.cli.progress import counted, working
    from spanreplay.cli.units import Row, read_runs
    from spanreplay.replay.rebuilding.behaviour import behaviour_hash

    damaged: list[str] = []
    with working("reading runs", total=len(rows)) as advance:
        found = {run.run_id: behaviour_hash(run) for run in counted(read_runs(store, [*map(Row.of, rows)], damaged), advance)}
    say_some([*dict.fromkeys(damaged)])
    return found
