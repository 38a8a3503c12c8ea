"""``spanreplay runs``."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from spanreplay.cli.options import common, print_json, print_text, store_path

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


def _since(text: str | None) -> int | None:
    if text is None:
        return None
    if text[:-1].isdigit() and text[-1] in _UNITS:
        moment = datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise click.BadParameter(f"wanted 30m, 2h, 7d or a date such as 2026-11-29, found {text!r}", param_hint="--since") from None
        if moment.tzinfo is None:
            moment = moment.astimezone()
    return int(moment.timestamp() * 1e9)


@click.command("runs")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--since", help="Only runs begun since: 30m, 2h, 7d, or a date.")
@click.option("--outcome", help="Only runs that ended so: ok, error, timeout, unknown …")
@click.option("--grade", type=click.Choice(["exact", "semantic", "structure", "incomplete"]), help="Only runs of this grade.")
@click.option("--tool", help="Only runs that called this tool.")
@click.option("--session", help="Only runs of this session.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many, newest first.")
@common
def command(
    agent: str | None,
    since: str | None,
    outcome: str | None,
    grade: str | None,
    tool: str | None,
    session: str | None,
    limit: int,
    store: Path | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """List the recorded runs, newest first.

    \b
    spanreplay runs --agent refunds --since 2d --outcome error
    """  # noqa: D301
    from spanreplay.cli.target import ready_store
    from spanreplay.replay.reports.text import render_runs

    with ready_store(store_path(store)) as opened:
        rows = opened.find_runs(agent=agent, since_ns=_since(since), outcome=outcome, grade=grade, tool=tool, session=session, limit=limit)
    if as_json:
        listed = [{**asdict(r), "started_ns": str(r.started_ns), "ended_ns": None if r.ended_ns is None else str(r.ended_ns)} for r in rows]
        print_json({"schema": 1, "runs": listed})
    else:
        print_text(render_runs(rows))
