"""``spanreplay replay``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.bisecting import OPTION as BISECT
from spanreplay.cli.fetching import fetching
from spanreplay.cli.filtering import Filters, filtering
from spanreplay.cli.how import how
from spanreplay.cli.joining import asked_join, joining
from spanreplay.cli.judged import Reports, reporting
from spanreplay.cli.living import mixing, of_target
from spanreplay.cli.main import user_command
from spanreplay.cli.options import common, complain, many, print_json, print_text, say
from spanreplay.cli.sections import Sectioned, under
from spanreplay.cli.stepping import check_steps, check_terminal, shown_part, stepping
from spanreplay.replay.model import GRADE_ORDER

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.options import Options


_RESULT: Final = (
    click.option("--require", type=click.Choice(GRADE_ORDER), help="Exit 125 unless every run has this grade or a better one."),
    click.option(BISECT, is_flag=True, help="Exit as git bisect run wants it: 0 equal, 1 different or refused, 125 skip, 128 stop."),
    click.option(
        "--check-determinism",
        "replays",
        type=click.IntRange(1),
        metavar="K",
        help="Replay K times, scheduling, day and machine shuffled, and say what still differs.",
    ),
)
_MANY: Final = (
    click.option("--all", "every", is_flag=True, help="Re-execute every run of the store, or of a SOURCE, several at once."),
    click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="With --all: so many at once. Default: one for each core."),
    click.option(
        "--limit",
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="With --all: how long a run may take; 0: for ever. Default: ten times as long as recorded, and 60 at least.",
    ),
)


@click.command("replay", cls=Sectioned)
@click.argument("target", required=False)
@click.option("--rerun", is_flag=True, help="Re-execute the recorded command instead of one given after --.")
@click.option("--yes", is_flag=True, help="Do not ask before --rerun.")
@how
@stepping
@mixing
@under("Result", *_RESULT)
@reporting
@under("Many runs", *_MANY)
@filtering
@joining
@fetching
@common
@click.pass_context
def command(
    context: click.Context,
    target: str | None,
    rerun: bool,
    yes: bool,
    options: "Options",
    require: str | None,
    bisect: bool,
    replays: int | None,
    reports: Reports,
    every: bool,
    jobs: int | None,
    limit: float | None,
    filters: Filters,
    store: Path | None,
    as_json: bool,
) -> None:
    """Rebuild a run; or re-execute a command with every call answered from it.

    Without a command nothing is executed. With one, it runs here, its model and tool calls are answered from the record, and
    what it would do outside is refused. With --json the command's own output goes to standard error.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN. With last, all
    runs of that run's command must come again; with a run id only that one.

    With --until N the agent is stopped, with success, once steps 1 to N are answered; with --from N what it asks for before step N is
    answered whatever it is, and what differs counts from there on. Without a command both say which steps are shown.

    With --live models the models are asked, and tools are answered from the record; with --live TOOL that tool runs; with --only N one
    step does. What they give is compared, and kept as a new run; a command that then ends with another exit code than 0, and than
    when it was recorded, is a difference.

    With --all every run that meets --agent, --since … is re-executed: with --rerun the command that each was recorded in, else the
    command after --; {input} and {run} in it stand for a run's input and id. A line for each, then a summary by cause.

    Exit code: 0 equal or rebuilt, 1 a difference, 2 wrong use, 3 the input cannot be read, 4 an action on the outside was
    refused, 125 the record cannot judge it. With --all: 4 if one run has it, else 1, else 125, else 0.

    \b
    spanreplay replay last
    spanreplay replay last -- python agent.py
    spanreplay replay traces.json#4f2a -- python agent.py
    spanreplay replay last --break-at 3 -- python agent.py
    spanreplay replay last --live models --set model=gpt-5-mini -- python agent.py
    spanreplay replay --all --since 7d --rerun --yes --junit replay.xml
    git bisect run spanreplay replay 4f2a --bisect -- python agent.py
    """  # noqa: D301
    argv = user_command(context)
    if options.policy and (every or (argv is None and not rerun)):
        raise click.UsageError("what is live is executed, one command at a time: give it after --, or --rerun, and leave out --all")
    _checked(argv, options, rerun=rerun, every=every, bisect=bisect, require=require, jobs=jobs, filters=filters, reports=reports)
    if limit is not None and not every:
        raise click.UsageError("--limit goes with --all")
    if replays is not None and (every or bisect or reports.asked or options.stepping or options.policy or (argv is None and not rerun)):
        raise click.UsageError("--check-determinism replays one command: give it after --, or --rerun, without other ways of replaying")
    if every:
        from spanreplay.cli.fleet import replay_all

        workers = jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs or os.cpu_count() or 1
        code = replay_all(target, store, filters, argv, options, yes=yes, workers=workers, limit=limit, reports=reports, as_json=as_json)
        context.exit(code)
    from spanreplay.cli.about import about
    from spanreplay.cli.target import load, why_unreadable

    loaded = load(target or "last", store)
    about(loaded)
    check_steps(loaded, options)
    check_terminal(options, as_json=as_json)
    cwd = None
    if rerun:
        from spanreplay.cli.rerunning import confirmed_command

        argv, cwd = confirmed_command(loaded, yes=yes)
    if argv is not None and replays is not None:
        from spanreplay.cli.determinism import check_determinism

        code = check_determinism(loaded, argv, options, replays, as_json=as_json, cwd=cwd)
    elif argv is None:
        _rebuild(shown_part(loaded, options), as_json=as_json)
        code = 0
    else:
        from spanreplay.cli.bisecting import never_began
        from spanreplay.cli.ended import exit_code
        from spanreplay.cli.executing import re_execute

        options = of_target(options, loaded)
        done = re_execute(loaded, argv, options, reports=reports, as_json=as_json, cwd=cwd, store=store)
        code = 125 if bisect and never_began(done) else exit_code(done, loaded.siblings, options.policy)
        if code == 0 and loaded.unreadable:
            complain(f"{loaded.unreadable[0].file} cannot be judged: {why_unreadable(loaded.unreadable[0])}")
            code = 125
    worst = max((GRADE_ORDER.index(r.grade) for r in loaded.runs), default=0)
    if require is not None and worst > GRADE_ORDER.index(require) and code == 0:
        complain(f"the grade {require} is required; found {GRADE_ORDER[worst]}")
        code = 125
    context.exit(code)


def _checked(
    argv: list[str] | None,
    options: "Options",
    *,
    rerun: bool,
    every: bool,
    bisect: bool,
    require: str | None,
    jobs: int | None,
    filters: Filters,
    reports: Reports,
) -> None:
    """Options that do not go together, or would do nothing."""
    if argv is not None and rerun:
        raise click.UsageError("give a command after -- or --rerun, not both")
    if argv is not None and not argv:
        raise click.UsageError("there is no command after --")
    executes = argv is not None or rerun
    if every and not executes:
        raise click.UsageError("--all re-executes: give a command after --, or --rerun for each run's own")
    if not executes and (bisect or reports.asked):
        raise click.UsageError("--bisect, --junit and --github judge a re-execution: give a command after --, or --rerun")
    if not executes and (options.fast or options.stepping.break_at is not None):
        raise click.UsageError("--fast and --break-at are for a re-execution: give a command after --, or --rerun")
    if every and options.stepping:
        raise click.UsageError("--break-at, --from and --until name the steps of one run; leave out --all")
    if every and (bisect or require is not None or asked_join() is not None):
        raise click.UsageError("--bisect, --require and --join are for one run; --all has --grade to choose by")
    if not every and (jobs is not None or filters.asked()):
        raise click.UsageError("-j, --agent, --since, --outcome, --grade, --tool and --session go with --all; name one run as TARGET")


def _rebuild(loaded: "Loaded", *, as_json: bool) -> None:
    from spanreplay.replay.reports.json import document
    from spanreplay.replay.reports.text import render_run

    if as_json:
        print_json(document(loaded.runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity))
    else:
        print_text("\n\n".join(render_run(r) for r in loaded.runs) or "no runs")
        say(f"rebuilt only, no code was run ({many(loaded.spans, 'span')}, {many(len(loaded.runs), 'run')})")
