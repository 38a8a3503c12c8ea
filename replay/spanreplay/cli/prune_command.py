"""``spanreplay prune``."""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.options import WrongUse, common, many, print_json, print_text, say, say_some, store_path, verbose
from spanreplay.cli.progress import working
from spanreplay.cli.when import moment

if TYPE_CHECKING:
    from spanreplay.store.bundles import Bundle
    from spanreplay.store.retention import Limits, Plan, Pruned

_SIZE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([kKMGT]?)(i?)B?")
_SHOWN: Final = 10
"""How many lines of what goes are printed without ``-v``."""
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_WHY: Final = {"age": "older than asked for", "count": "beyond the number to keep", "size": "beyond the size", "session": "of the session"}


@click.command("prune")
@click.option("--older-than", metavar="AGE", help="Runs in which nothing has happened since: 30d, 12h, 4w, or a date.")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="All but the latest N runs.")
@click.option("--max-size", metavar="SIZE", help="The oldest runs, until the database has about this size: 500MB, 20GB.")
@click.option("--session", "sessions", multiple=True, metavar="ID", help="Only runs of this session; alone: all of them. May be repeated.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def command(
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    sessions: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    store: Path | None,
    as_json: bool,
) -> None:
    """Delete runs that are beyond a limit, for ever, and give their space back.

    Of several limits each counts. A run goes with all its spans, and with the runs that share a trace with it; content of others stays.
    Runs on hold (spanreplay hold) and runs that are still being recorded are kept. The table pruned says which went, when and why.

    \b
    spanreplay prune --older-than 90d --dry-run
    spanreplay prune --keep 10000 --max-size 20GB --yes
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store
    from spanreplay.store.retention import Limits, Retention

    if older_than is None and keep is None and max_size is None and not sessions:
        raise click.UsageError("say what is to go: --older-than, --keep, --max-size or --session")
    limits = Limits(
        before_ns=None if older_than is None else moment(older_than, "--older-than"),
        keep=keep,
        max_bytes=None if max_size is None else _bytes(max_size),
        sessions=frozenset(sessions),
    )
    path = store_path(store)
    with ready_store(path):
        retention = Retention(path)
        plan = retention.plan(limits)
    nothing = not plan.going and not plan.loose_logs
    if not as_json:
        _print(plan)
    done = None
    if not dry_run and not nothing:
        _ask(plan, yes=yes)
        with working("pruning"):
            done = retention.prune(limits)
        if not as_json:
            left = in_words(path.joinpath("runs.duckdb").stat().st_size)
            say(f"pruned {many(done.runs, 'run')}, {many(done.spans, 'span')}; the database has {left}, {in_words(done.bytes)} less")
    if as_json:
        print_json(_json(plan, limits, done, dry_run=dry_run))


def _ask(plan: "Plan", *, yes: bool) -> None:
    if yes:
        return
    if not _somebody_is_there():
        raise WrongUse("nothing was deleted: nobody can be asked here. With --yes it goes, with --dry-run it is only said what would")
    if not click.confirm(f"Delete {many(plan.runs, 'run')} for ever?", err=True):
        raise click.Abort


def _somebody_is_there() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"wanted a size such as 500MB or 20GB, found {text!r}", param_hint="--max-size")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].upper()])


def in_words(number: int) -> str:
    """A number of bytes, for people."""
    size, unit, units = float(number), "B", ["kB", "MB", "GB", "TB"]
    while abs(size) >= 1000 and units:
        size, unit = size / 1000, units.pop(0)
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _print(plan: "Plan") -> None:
    from spanreplay.replay.reports.tables import render_table

    if not plan.going and not plan.loose_logs:
        print_text("nothing goes" if plan.kept else "nothing is beyond the limits")
    else:
        going = [one for one in plan.going if not one.bundle.serves]
        shown = going if verbose() else going[:_SHOWN]
        rows = [[*_row(one.bundle), _WHY[one.why]] for one in shown]
        print_text(render_table(["run", "last", "agent", "session", "spans", "goes, being"], [[str(cell) for cell in row] for row in rows]))
        if len(shown) < len(going):
            print_text(f"and {len(going) - len(shown)} more, {many(plan.runs, 'run')} in all; -v lists them")
    if plan.loose_logs:
        say(f"and {many(plan.loose_logs, 'log record')} of no run")
    say_some([f"kept, being {why}: {_row(bundle)[0]}" for bundle, why in plan.kept])


def _row(bundle: "Bundle") -> list[object]:
    from spanreplay.replay.showing import short_id

    names = [short_id(run.run_id) for run in bundle.listed or bundle.runs] or [f"trace {short_id(bundle.traces[0])}"]
    last = datetime.fromtimestamp(bundle.last_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    agents = ", ".join(dict.fromkeys(run.agent for run in bundle.listed or bundle.runs if run.agent))
    return [
        " ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
        last,
        agents,
        ", ".join(sorted(bundle.sessions)),
        bundle.spans,
    ]


def _json(plan: "Plan", limits: "Limits", done: "Pruned | None", *, dry_run: bool) -> dict[str, object]:
    def listed(bundle: "Bundle", why: str) -> dict[str, object]:
        return {
            "runs": [run.run_id for run in bundle.listed],
            "sessions": sorted(bundle.sessions),
            "traces": bundle.traces,
            "spans": bundle.spans,
            "last_ns": str(bundle.last_ns),
            "why": why,
        }

    before = None if limits.before_ns is None else str(limits.before_ns)
    return {
        "schema": 1,
        "dry_run": dry_run,
        "before_ns": before,
        "going": [listed(one.bundle, one.why) for one in plan.going],  # with no run: a command all of whose runs go
        "kept": [listed(bundle, why) for bundle, why in plan.kept],
        "loose_logs": plan.loose_logs,
        "database_bytes": plan.size,
        "pruned": None
        if done is None
        else {"runs": done.runs, "spans": done.spans, "logs": done.logs, "contents": done.contents, "bytes": done.bytes},
    }
