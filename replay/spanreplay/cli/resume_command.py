"""``spanreplay resume``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.how import how
from spanreplay.cli.judged import Reports
from spanreplay.cli.living import not_from_here, of_target
from spanreplay.cli.main import user_command
from spanreplay.cli.options import WrongUse, common, complain, many, print_json, say, store_path
from spanreplay.cli.sections import Sectioned
from spanreplay.replay.showing import safe, short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.model import Run, Step
    from spanreplay.replay.reexecution.options import Options


@click.command("resume", cls=Sectioned)
@click.argument("target", default="last")
@click.option("--rerun", is_flag=True, help="Execute the recorded command instead of one given after --.")
@click.option("--yes", is_flag=True, help="Do not ask before --rerun.")
@click.option(
    "--decide",
    "decided",
    multiple=True,
    metavar="STEP=WHAT",
    help="What became of a call that began and never ended: STEP=done:JSON, it acted and gave that; STEP=again, it did not, and is made "
    "now; STEP=fail, the agent is told that it failed. RUN:STEP where several runs of the command have crashed. May be repeated.",
)
@click.option("--again", is_flag=True, help="Resume it though an earlier resumption has acted: what that did is done again.")
@how
@fetching
@common
@click.pass_context
def command(
    context: click.Context,
    target: str,
    rerun: bool,
    yes: bool,
    decided: tuple[str, ...],
    again: bool,
    options: "Options",
    store: Path | None,
    as_json: bool,
) -> None:
    """Finish a run that crashed: what had ended is answered from the record, and the rest is done.

    A call that had begun, may have acted and never ended is nobody's to guess at: each needs a decision. Without it nothing is executed,
    and what has to be decided is listed. From the first step that is not in the record on, the command is live and acts as it would have.
    What is executed is kept as a new run. A run that was resumed already is resumed again only with --again, where that has acted.

    Exit code: 0 done, 1 a difference in what had ended, or the command itself ended otherwise than with 0, also by a signal or Ctrl-C,
    2 wrong use, 3 the input cannot be read, 4 what --decide gives does not fit the tool, 125 a decision is missing.

    \b
    spanreplay resume 4f2a -- python agent.py
    spanreplay resume 4f2a --decide 6=again -- python agent.py
    spanreplay resume 4f2a --decide '6=done:{"id": 17}' -- python agent.py
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.ended import exit_code
    from spanreplay.cli.executing import re_execute
    from spanreplay.cli.target import load
    from spanreplay.replay.reexecution.cut import undecided
    from spanreplay.replay.reexecution.policy import Decision, Policy, PolicyError

    argv = user_command(context)
    if bool(argv) == rerun:
        raise click.UsageError("give the command after --, or --rerun for the recorded one")
    not_from_here(options)
    try:
        policy = Policy(finish=True, decisions=tuple(Decision.read(text) for text in decided))
    except PolicyError as error:
        raise click.UsageError(str(error)) from error
    loaded = load(target, store)
    if target == "last":
        loaded = _meant(loaded, store)
    about(loaded)
    if not any(run.outcome == "unknown" for run in loaded.siblings):
        if not any(run.steps for run in loaded.siblings) and any(run.outcome != "ok" for run in loaded.siblings):
            raise WrongUse("the command ended before any call was made, so there is nothing to resume: run it again")
        raise WrongUse("the run has ended; what has not crashed is forked: spanreplay fork")
    options = of_target(replace(options, policy=policy), loaded)
    open_ = [(run, step) for run in loaded.siblings for step in undecided([run], options.policy)]
    if open_:
        _ask(open_, as_json=as_json)
        context.exit(125)
    _tell_earlier(loaded, store, again=again)
    cwd = None
    if argv is None or rerun:
        from spanreplay.cli.rerunning import confirmed_command

        argv, cwd = confirmed_command(loaded, yes=yes)
    done = re_execute(loaded, argv, options, reports=Reports(junit=None, github=False), as_json=as_json, cwd=cwd, store=store)
    context.exit(exit_code(done, loaded.siblings, options.policy))


def _meant(loaded: "Loaded", store: Path | None) -> "Loaded":
    """What ``last`` means here: a resumption that came to nothing does not stand before the run that it was to finish."""
    from spanreplay.cli.target import NoRunInStore, load
    from spanreplay.replay.reexecution.resumed import came_to_nothing

    run = loaded.runs[0]
    if run.forked_from is None:
        return loaded
    try:
        origin = load(run.forked_from, loaded.store or store)
    except NoRunInStore:
        return loaded
    if not came_to_nothing(run, origin.siblings):
        return loaded
    of = short_id(run.forked_from)
    say(f"last is run {short_id(run.run_id)}, which went on from run {of} and came to nothing: it is run {of} that is resumed")
    return origin


def _tell_earlier(loaded: "Loaded", store: Path | None, *, again: bool) -> None:
    """Say which runs go on from the crashed one already.

    Raises:
        WrongUse: one has acted, and that was not allowed to happen again.
    """
    from datetime import UTC, datetime

    from spanreplay.cli.stored import ready_store, records_of, runs_of
    from spanreplay.replay.reexecution.resumed import acted_in, continued
    from spanreplay.store.folder import is_store

    path, crashed = loaded.store or store_path(store), loaded.siblings
    if not is_store(path):
        return
    with ready_store(path) as opened:
        traces = opened.traces_of_forks([run.run_id for run in crashed], min(run.started_ns for run in crashed))
        later = continued(crashed, runs_of(opened, records_of(opened, traces)) if traces else [])
    for run in later:
        when = datetime.fromtimestamp(run.started_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
        told = f"already resumed or forked as run {short_id(run.run_id)} ({when})"
        acted = acted_in(run, crashed)
        if acted and not again:
            steps = ", ".join(f"{s.kind} {s.name}" for s in acted[:3]) + (f" and {len(acted) - 3} more" if len(acted) > 3 else "")
            raise WrongUse(safe(f"{told}, which has acted, or may have: {steps}; --again does it again. To go on from that: {_show(run)}"))
        complain(told)


def _show(run: "Run") -> str:
    return f"spanreplay show {short_id(run.run_id)}"


def _ask(open_: "list[tuple[Run, Step]]", *, as_json: bool) -> None:
    """Say what has to be decided."""
    if as_json:
        found = [
            {"run_id": run.run_id, "step": s.seq, "kind": s.kind, "name": s.name, "effect": s.effect, "input": s.input} for run, s in open_
        ]
        print_json({"schema": 1, "undecided": found})
        return
    complain(f"{many(len(open_), 'call')} began, may have acted, and never ended. Find out, and decide:")
    several = len({run.run_id for run, _ in open_}) > 1
    for run, step in open_:
        place = f"{short_id(run.run_id)}:{step.seq}" if several else f"{step.seq}"
        effect = step.effect or "unknown"
        complain(safe(f"  step {step.seq} of run {short_id(run.run_id)}: {step.kind} {step.name} (effect {effect})"))
        complain(f"    --decide '{place}=done:JSON' where it acted and gave JSON, --decide {place}=again, or --decide {place}=fail")
