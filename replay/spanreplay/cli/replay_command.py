"""``spanreplay replay``."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.how import how
from spanreplay.cli.joining import asked_join, joining
from spanreplay.cli.main import user_command
from spanreplay.cli.options import WrongUse, common, complain, detail, many, print_json, print_text, say
from spanreplay.replay.model import GRADE_ORDER
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.options import Options


@click.command("replay")
@click.argument("target", default="last")
@click.option("--rerun", is_flag=True, help="Re-execute the recorded command instead of one given after --.")
@click.option("--yes", is_flag=True, help="Do not ask before --rerun.")
@how
@click.option("--require", type=click.Choice(GRADE_ORDER), help="Exit 125 unless every run has this grade or a better one.")
@joining
@fetching
@common
@click.pass_context
def command(
    context: click.Context,
    target: str,
    rerun: bool,
    yes: bool,
    options: "Options",
    require: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Rebuild a run; or re-execute a command with every call answered from it.

    Without a command nothing is executed. With one, it runs here, its model and tool calls are answered from the record, and
    what it would do outside is refused. With --json the command's own output goes to standard error.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN. With last, all
    runs of that run's command must come again; with a run id only that one.

    Exit code: 0 equal or rebuilt, 1 a difference, 2 wrong use, 3 the input cannot be read, 4 an action on the outside was
    refused, 125 the record cannot judge it.

    \b
    spanreplay replay last
    spanreplay replay last -- python agent.py
    spanreplay replay traces.json#4f2a -- python agent.py
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.target import load
    from spanreplay.replay.reports.json import document
    from spanreplay.replay.reports.text import render_run

    argv = user_command(context)
    if argv is not None and rerun:
        raise click.UsageError("give a command after -- or --rerun, not both")
    if argv is not None and not argv:
        raise click.UsageError("there is no command after --")
    loaded = load(target, store)
    about(loaded)
    cwd = None
    if rerun:
        argv, cwd = _recorded_command(loaded, yes)
    if argv is None:
        if as_json:
            print_json(document(loaded.runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity))
        else:
            print_text("\n\n".join(render_run(r) for r in loaded.runs) or "no runs")
            say(f"rebuilt only, no code was run ({many(loaded.spans, 'span')}, {many(len(loaded.runs), 'run')})")
        code = 0
    else:
        code = _re_execute(loaded, argv, options, as_json=as_json, cwd=cwd)
    worst = max((GRADE_ORDER.index(r.grade) for r in loaded.runs), default=0)
    if require is not None and worst > GRADE_ORDER.index(require) and code == 0:
        complain(f"the grade {require} is required; found {GRADE_ORDER[worst]}")
        code = 125
    context.exit(code)


def _re_execute(
    loaded: "Loaded",
    argv: list[str],
    options: "Options",
    *,
    as_json: bool,
    cwd: Path | None = None,
) -> int:
    from spanreplay.replay.reexecution.command import CommandMissing, replay_command
    from spanreplay.replay.reports.json import document
    from spanreplay.replay.reports.verdict import render_verdict

    runs = loaded.siblings
    focus = [r.run_id for r in loaded.runs if not r.is_command] if loaded.asked else []
    try:
        done = replay_command(
            runs,
            loaded.records,
            argv,
            focus=focus,
            options=options,
            join=asked_join(),
            cwd=cwd,
            output=sys.stderr if as_json else None,
        )
    except CommandMissing as error:
        raise WrongUse(str(error)) from error
    if as_json:
        made = document(loaded.runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity)
        print_json({**made, "replay": {**done.verdict.to_json(), "command": list(done.argv), "command_exit_code": done.exit_code}})
    else:
        print_text(render_verdict(done.verdict, done.runs))
    if done.verdict.processes == 0:
        from spanreplay.cli.interpreters import nobody_reported

        complain(nobody_reported(argv))
    elif done.verdict.exit_code == 125 and done.verdict.cut_short:
        run_id, step = done.verdict.cut_short[0]
        where = f"at step {step}" if step else "before its first step"
        complain(
            f"cannot be judged: the record of run {short_id(run_id)} is cut short {where}, and what came then is not known; "
            "--accept-incomplete judges as far as it goes"
        )
    elif done.verdict.exit_code == 0 and done.exit_code != 0 and not as_json:
        say(f"the command itself exited with {done.exit_code}; every call of it is as recorded")
    detail(f"the command exited with {done.exit_code}; {many(done.verdict.processes, 'Python process', 'Python processes')} took part")
    return done.verdict.exit_code


def _recorded_command(loaded: "Loaded", yes: bool) -> tuple[list[str], Path | None]:
    """The argv and working directory that were recorded into this store, shown and confirmed."""
    if loaded.store is None:
        raise WrongUse("--rerun takes runs of your own store only; give the command after -- to replay a file")
    definition = next((r.definition for r in loaded.siblings if r.is_command and isinstance(r.definition, dict)), None)
    argv = definition.get("argv") if definition else None
    if definition is None or not isinstance(argv, list) or not argv:
        raise WrongUse("the run has no recorded command; give one after --")
    cwd = definition.get("cwd")
    complain(f"recorded command: {shlex.join(map(str, argv))}" + (f"  (in {cwd})" if cwd else ""))
    if not yes:
        try:
            agreed = click.confirm("run it again, answered from the record?", err=True)
        except click.Abort:
            agreed = False
        if not agreed:
            raise WrongUse("not run; --yes runs it without asking")
    return [str(a) for a in argv], Path(cwd) if isinstance(cwd, str) else None
