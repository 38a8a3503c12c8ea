"""``spanreplay hold``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spanreplay.cli.options import WrongUse, common, print_json, print_text, say, store_path

if TYPE_CHECKING:
    from spanreplay.store.holds import Hold
    from spanreplay.store.retention import Retention


@click.command("hold")
@click.argument("target", required=False)
@click.option("--session", metavar="ID", help="Hold every run of this session, those to come too.")
@click.option("--reason", metavar="TEXT", help="Why it is held, or released.")
@click.option("--release", "released", metavar="HOLD", help="Take this hold off.")
@click.option("--all", "everything", is_flag=True, help="List the holds that were released, too.")
@common
def command(
    target: str | None, session: str | None, reason: str | None, released: str | None, everything: bool, store: Path | None, as_json: bool
) -> None:
    """Keep a run, or a session, from being pruned; without a TARGET: list what is held.

    TARGET is last, last~2, a run id or its beginning. Who placed and who released a hold, when and why, stays in the table holds.

    \b
    spanreplay hold last --reason "complaint 4711"
    spanreplay hold --session conv-7 --reason "audit 2026"
    spanreplay hold --release 3f2a… --reason "complaint 4711 is settled"
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store
    from spanreplay.store.retention import Retention

    path = store_path(store)
    if sum(given is not None for given in (target, session, released)) > 1:
        raise click.UsageError("one of a TARGET, --session and --release")
    if (target is not None or session is not None or released is not None) and not (reason or "").strip():
        raise click.UsageError("--reason says why, for whoever reads it in a year")
    with ready_store(path):
        retention = Retention(path)
    if released is not None:
        _release(retention, released, reason or "")
    elif target is not None or session is not None:
        _place(retention, target, session, reason or "", path)
    holds = retention.holds(released=everything or released is not None)
    if as_json:
        print_json({"schema": 1, "holds": [_json(hold) for hold in holds]})
    elif target is None and session is None and released is None:
        _print(holds)


def _release(retention: "Retention", name: str, reason: str) -> None:
    found = [hold.hold_id for hold in retention.holds() if hold.hold_id.startswith(name.removesuffix("…"))]
    if len(found) != 1 or not retention.release(found[0], reason):
        raise WrongUse(f"{len(found) or 'no'} hold{'s' * (len(found) != 1)} in force begin with {name!r}; spanreplay hold lists them")
    say(f"released {found[0]}")


def _place(retention: "Retention", target: str | None, session: str | None, reason: str, path: Path) -> None:
    run_id = None
    if target is not None:
        from spanreplay.cli.target import is_source, load

        if is_source(target):
            raise WrongUse(f"{target} is not in the store {path}; a hold keeps what prune would take from there")
        run_id = load(target, path).one().run_id
    hold = retention.hold(run_id=run_id, session_id=session, reason=reason)
    say(f"held {f'session {session}' if run_id is None else f'run {run_id}'} as {hold.hold_id}")


def _print(holds: "list[Hold]") -> None:
    from spanreplay.replay.reports.tables import render_table

    if not holds:
        print_text("nothing is held")
        return
    rows = [
        [
            hold.hold_id,
            f"run {hold.run_id}" if hold.run_id is not None else f"session {hold.session_id}",
            _when(hold.placed_ns),
            hold.placed_by,
            hold.reason,
            "" if hold.released_ns is None else f"{_when(hold.released_ns)} by {hold.released_by}: {hold.release_reason}",
        ]
        for hold in holds
    ]
    print_text(render_table(["hold", "of", "since", "by", "reason", "released"], rows))


def _when(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _json(hold: "Hold") -> dict[str, object]:
    return {
        "hold_id": hold.hold_id,
        "run_id": hold.run_id,
        "session_id": hold.session_id,
        "reason": hold.reason,
        "placed_ns": str(hold.placed_ns),
        "placed_by": hold.placed_by,
        "released_ns": None if hold.released_ns is None else str(hold.released_ns),
        "released_by": hold.released_by,
        "release_reason": hold.release_reason,
    }
