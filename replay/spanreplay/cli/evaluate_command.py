"""``spanreplay evaluate``."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.filtering import Filters, filtering
from spanreplay.cli.joining import joining
from spanreplay.cli.judged import Reports, reporting
from spanreplay.cli.options import WrongUse, common, print_json, print_text, quiet, say
from spanreplay.replay.case import Ended

if TYPE_CHECKING:
    from spanreplay.replay.checking import Judgement
    from spanreplay.replay.inputs.report import UnreadableSource
    from spanreplay.replay.model import Run

_EXIT: Final[Mapping[Ended, int]] = {"passed": 0, "failed": 1, "error": 125}


@click.command("evaluate")
@click.argument("target", required=False)
@click.option("--check", "checks", multiple=True, required=True, metavar="FILE.py:FUNCTION", help="The check. May be repeated.")
@click.option("--at-least", type=float, metavar="SCORE", help="The lowest score that passes, from 0 to 1, where a check gives one.")
@click.option("--all", "every", is_flag=True, help="Every run of the store, or of a SOURCE.")
@reporting
@filtering
@joining
@fetching
@common
@click.pass_context
def command(
    context: click.Context,
    target: str | None,
    checks: tuple[str, ...],
    at_least: float | None,
    every: bool,
    reports: Reports,
    filters: Filters,
    store: Path | None,
    as_json: bool,
) -> None:
    """Judge recorded runs by a function of yours. No agent is executed and no model is called.

    The function takes the run, or its steps if its argument is named steps. It passes with None or True, fails with False or an
    AssertionError, or gives a score.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN.

    Exit code: 0 all passed, 1 one failed, 2 wrong use, 3 the input cannot be read, 125 a check raised,
    a recording cannot be read, or there was no run.

    \b
    spanreplay evaluate last --check checks.py:polite
    spanreplay evaluate --all --since 7d --check checks.py:grounded --at-least 0.8 --junit checks.xml
    """  # noqa: D301
    from spanreplay.cli.target import why_unreadable
    from spanreplay.replay.case import Case, worst
    from spanreplay.replay.checking import NoCheck, judge, load_check

    if filters.asked() and not every:
        raise click.UsageError("--agent, --since, --outcome, --grade, --tool and --session go with --all; name one run as TARGET")
    if at_least is not None and not 0 <= at_least <= 1:
        raise click.UsageError(f"--at-least: wanted a score from 0 to 1, found {at_least:g}")
    try:
        loaded = [load_check(reference) for reference in checks]
    except NoCheck as error:
        raise WrongUse(f"--check: {error}") from error
    judgements: list[Judgement] = []
    unreadable: list[UnreadableSource] = []
    for run in _all_runs(target, store, filters, unreadable) if every else _runs(target, store, unreadable):
        for check in loaded:
            judgement = judge(check, run, at_least=at_least)
            judgements.append(judgement)
            if not as_json and not (quiet() and judgement.ended == "passed"):
                print_text(_line(judgement))
    cases = [judgement.case() for judgement in judgements]
    for one in unreadable:
        cases.append(Case(group="recording", name=one.file, ended="error", word="error", message=why_unreadable(one)))
        if not as_json:
            print_text(_row("error", one.file, f"  {why_unreadable(one)}"))
    found = Counter(case.ended for case in cases)
    if as_json:
        results = [judgement.to_json() for judgement in judgements]
        told = [{"file": one.file, "detail": why_unreadable(one)} for one in unreadable]
        print_json({"schema": 1, "counts": {word: found[word] for word in _EXIT}, "results": results, "unreadable": told})
    elif cases:
        rest = [f"{found[word]} {word}" for word in _EXIT if found[word] and word != "passed"]
        print_text(", ".join([f"{found['passed']} of {len(cases)} passed", *rest]))
    else:
        say("no run was judged")
    reports.write(cases, name="spanreplay evaluate", as_json=as_json)
    context.exit(worst([_EXIT[case.ended] for case in cases]))


def _runs(target: str | None, store: Path | None, unreadable: "list[UnreadableSource]") -> "Sequence[Run]":
    from spanreplay.cli.target import is_bare_command, load

    loaded = load(target or "last", store)
    unreadable += loaded.unreadable
    return [run for run in loaded.runs if not is_bare_command(run, loaded.siblings)]


def _all_runs(target: str | None, store: Path | None, filters: Filters, unreadable: "list[UnreadableSource]") -> "Iterator[Run]":
    from spanreplay.cli.progress import counted, working
    from spanreplay.cli.units import every_run

    with every_run(target, store, filters, apart=True) as units, working("judging", total=len(units)) as advance:
        unreadable += units.unreadable
        yield from counted(units.every(), advance)


def _line(judgement: "Judgement") -> str:
    from spanreplay.replay.showing import short_id

    score = "" if judgement.score is None else f"  {judgement.score:g}"
    told = f"  {judgement.detail}" + (f"  ({judgement.where})" if judgement.where else "") if judgement.detail else ""
    who = f"{short_id(judgement.run.run_id)}  {judgement.run.agent_name or '-'}  {judgement.check}{score}"
    return _row(judgement.ended, who, told)


def _row(ended: Ended, who: str, told: str) -> str:
    from spanreplay.replay.lines import BAD, DIM, GOOD, Piece, rendered
    from spanreplay.replay.showing import safe

    return rendered([[Piece(f"{ended:<6}  ", GOOD if ended == "passed" else BAD), Piece(safe(who)), Piece(safe(told), DIM)]], None)
