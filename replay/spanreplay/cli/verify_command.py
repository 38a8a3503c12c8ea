"""``spanreplay verify``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.joining import joining
from spanreplay.cli.options import common, many, print_json, print_text, verbose

if TYPE_CHECKING:
    from spanreplay.cli.target import NoRunInStore
    from spanreplay.replay.model import Run
    from spanreplay.replay.rebuilding.completeness import Gap
    from spanreplay.replay.rebuilding.same_calls import SameCalls
    from spanreplay.replay.rebuilding.unasked_calls import UnaskedCall
    from spanreplay.replay.rebuilding.unread_results import UnreadResults
    from spanreplay.replay.rebuilding.unreferred import Unreferred
    from spanreplay.replay.rebuilding.unrun_calls import UnrunCall

    Remark = SameCalls | Unreferred | UnreadResults | UnrunCall | UnaskedCall

_SHOWN = 20
_LONG = 100
"""Characters of a name that others gave."""
"""Gaps of a run that are printed without ``-v``."""


@click.command("verify")
@click.argument("target", default="last")
@joining
@fetching
@common
@click.pass_context
def command(context: click.Context, target: str, store: Path | None, as_json: bool) -> None:
    """Is the record of a run whole? Names every span and field of which something is missing or was cut, and what to change.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN.

    Exit code: 0 nothing is missing, 1 something is, or there is no run, 2 wrong use, 3 the input cannot be read.

    \b
    spanreplay verify
    spanreplay verify traces.json
    """  # noqa: D301
    from spanreplay.cli.target import NoRunInStore, load
    from spanreplay.replay.rebuilding.changed import with_changes
    from spanreplay.replay.rebuilding.completeness import gaps, losses
    from spanreplay.replay.rebuilding.same_calls import same_calls
    from spanreplay.replay.rebuilding.unasked_calls import unasked_calls
    from spanreplay.replay.rebuilding.unread_results import unread_results
    from spanreplay.replay.rebuilding.unreferred import unreferred
    from spanreplay.replay.rebuilding.unrun_calls import unrun_calls
    from spanreplay.store.store import Store

    try:
        loaded = load(target, store, damaged=[], alone=True)
    except NoRunInStore as error:
        context.exit(_gone(error, as_json))
    found = gaps(loaded.runs, loaded.records)
    left: list[Unreferred] = []
    if loaded.store is not None and loaded.runs:
        found = with_changes(Store.open(loaded.store), loaded.runs, found)
        left = unreferred(Store.open(loaded.store))
    lost = losses(loaded.fidelity)
    remarks: list[Remark] = [*left, *same_calls(loaded.runs, loaded.records)]
    remarks += [*unrun_calls(loaded.runs, found), *unread_results(loaded.runs, found), *unasked_calls(loaded.runs, found)]
    whole = bool(found) and not lost and not any(found.values())
    if as_json:
        source = {"format": loaded.format, "spans": loaded.spans, "fidelity": list(loaded.fidelity)}
        runs = [{"run_id": i, "whole": not listed, "gaps": [gap.to_json() for gap in listed]} for i, listed in found.items()]
        print_json({"schema": 1, "source": source, "whole": whole, "runs": runs, "remarks": [one.to_json() for one in remarks]})
    else:
        _print(loaded.runs, found, lost, remarks)
    context.exit(0 if whole else 1)


def _gone(error: "NoRunInStore", as_json: bool) -> int:
    """A run that is not there any more although the store has something of it; else it never was."""
    from spanreplay.replay.rebuilding.changed import changed
    from spanreplay.replay.showing import safe
    from spanreplay.store.store import Store

    found = changed(Store.open(error.store), (), () if error.run_id is None else (error.run_id,))
    if not found:
        raise error
    if as_json:
        run = {"run_id": error.run_id, "whole": False, "gaps": [gap.to_json() for gap in found]}
        print_json({"schema": 1, "source": {"format": "store", "spans": 0, "fidelity": []}, "whole": False, "runs": [run], "remarks": []})
    else:
        lines = [str(error), *map(_line, found[:_SHOWN]), f"  → {found[0].advice}"]
        print_text("\n".join(safe(line) for line in lines))
    return 1


def _named(name: str | None) -> str | None:
    """A name that others gave, as long as a line bears."""
    return name if name is None or len(name) <= _LONG else f"{name[: _LONG - 1]}…"


def _line(gap: "Gap") -> str:
    span = " ".join(filter(None, ("span", gap.span_id, _named(gap.span_name)))) if gap.span_id else ""
    place = " ".join(filter(None, (f"step {gap.step}" if gap.step is not None else "", span)))
    return f"  {place}{': ' if place else ''}{gap.detail}  ({gap.code})"


def _print(
    runs: "Sequence[Run]",
    found: "Mapping[str, Sequence[Gap]]",
    lost: Sequence[Mapping[str, Any]],
    remarks: "Sequence[Remark]",
) -> None:
    from spanreplay.replay.showing import safe, short_id

    lines = ["; ".join(filter(None, (f"the source: {entry['spans']} {entry['detail']}", str(entry.get("advice", ""))))) for entry in lost]
    for run in runs:
        listed = found[run.run_id]
        name = f"run {short_id(run.run_id)}{f' ({_named(run.agent_name)})' if run.agent_name else ''}, {many(len(run.steps), 'step')}"
        lines.append(f"{name}: {many(len(listed), 'gap') if listed else 'whole'}")
        shown = listed if verbose() else listed[:_SHOWN]
        lines += [_line(gap) for gap in shown]
        if len(shown) < len(listed):
            lines.append(f"  and {len(listed) - len(shown)} more; -v lists all")
        lines += [f"  → {advice}" for advice in dict.fromkeys(gap.advice for gap in listed if gap.advice)]
    lines += [f"note: {one.detail}" for one in remarks[:_SHOWN]]
    lines += [f"  → {advice}" for advice in dict.fromkeys(one.advice for one in remarks)]
    if not runs:
        lines.append("no runs: there is nothing to verify")
    print_text("\n".join(safe(line) for line in lines))
