"""A command executed again, every call answered from the record, and what that showed."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spanreplay.cli.ended import exit_code, failed, say_failed
from spanreplay.cli.joining import asked_join
from spanreplay.cli.judged import Reports
from spanreplay.cli.options import WrongUse, complain, detail, many, print_json, print_text, quiet, say, store_path, verbose
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.command import CommandReplay
    from spanreplay.replay.reexecution.options import Options


def re_execute(
    loaded: "Loaded",
    argv: Sequence[str],
    options: "Options",
    *,
    reports: Reports,
    as_json: bool,
    cwd: Path | None = None,
    store: Path | None = None,
) -> "CommandReplay":
    """Execute ``argv`` and say what differs.

    Args:
        loaded: the runs that answer.
        argv: the command.
        options: how.
        reports: what to write besides.
        as_json: one JSON document instead of text; the command's own output goes to standard error.
        cwd: where to run it.
        store: where the new run is kept, if anything is live; else where the TARGET is from, or the default.

    Raises:
        WrongUse: there is no such program, what is to be live does not fit the runs, or what is kept has no store that can be written.
    """
    from spanreplay.replay.reexecution.command import CommandMissing, replay_command
    from spanreplay.replay.reexecution.policy import PolicyError
    from spanreplay.replay.reports.json import document
    from spanreplay.replay.reports.verdict import render_verdict
    from spanreplay.store.errors import StoreError

    if options.policy.lets_models_run:
        _ask_for_credentials(loaded)
    began = time.monotonic()
    asked = [loaded.one()] if options.stepping else loaded.runs if loaded.asked else []
    focus = [r.run_id for r in asked if options.stepping or not r.is_command]
    try:
        done = replay_command(
            loaded.siblings,
            loaded.records,
            argv,
            focus=focus,
            options=options,
            join=asked_join(),
            cwd=cwd,
            output=sys.stderr if as_json else None,
            store=(loaded.store or store_path(store)) if options.policy.is_kept else None,
            announce=not quiet(),
        )
    except (CommandMissing, PolicyError, StoreError) as error:
        raise WrongUse(str(error)) from error
    if as_json:
        made = document(loaded.runs, format=loaded.format, spans=loaded.spans, fidelity=loaded.fidelity)
        code = exit_code(done, loaded.siblings, options.policy)
        told = {**done.verdict.to_json(), "exit_code": code, "command": list(done.argv), "command_exit_code": done.exit_code}
        print_json({**made, "replay": told})
    else:
        print_text(render_verdict(done.verdict, done.runs, whole=verbose()))
    _remark(done, options, as_json=as_json)
    if failed(done, loaded.siblings, options.policy) and not done.verdict.exit_code:
        say_failed(done, loaded.store or store_path(store))
    if reports.asked:
        _report(loaded, done, reports, seconds=time.monotonic() - began, as_json=as_json)
    return done


def _ask_for_credentials(loaded: "Loaded") -> None:
    """Say which credentials the recorded command had and this one has not: nothing that is live can do without."""
    from spanreplay.replay.reexecution.credentials import needed_credentials

    missing = sorted(name for name in needed_credentials(loaded.siblings, os.environ) if name not in os.environ)
    if missing:
        complain(f"not set here: {', '.join(missing)}; what is live and needs it will be turned away")


def _remark(done: "CommandReplay", options: "Options", *, as_json: bool) -> None:
    verdict = done.verdict
    if options.stepping.since > 1 or options.stepping.until is not None:
        first, last = options.stepping.since, options.stepping.until
        say(
            f"compared: the steps from {first} on" if last is None else f"compared: steps {first} to {last}; what comes later need not come"
        )
    if verdict.processes == 0:
        from spanreplay.cli.interpreters import nobody_reported

        complain(nobody_reported(done.argv))
    elif options.policy.is_kept and not done.kept:
        complain("nothing of it is kept: the command made no call, and began no run of an agent")
    elif verdict.exit_code == 125 and verdict.cut_short:
        run_id, step = verdict.cut_short[0]
        where = f"at step {step}" if step else "before its first step"
        complain(
            f"cannot be judged: the record of run {short_id(run_id)} is cut short {where}, and what came then is not known; "
            "--accept-incomplete judges as far as it goes"
        )
    elif verdict.exit_code == 0 and done.exit_code != 0 and done.command_id is None and not as_json and not options.stepping:
        say(f"the command itself exited with {done.exit_code}; every call of it is as recorded")
    detail(f"the command exited with {done.exit_code}; {many(verdict.processes, 'Python process', 'Python processes')} took part")


def _report(loaded: "Loaded", done: "CommandReplay", reports: Reports, *, seconds: float, as_json: bool) -> None:
    from spanreplay.replay.rebuilding.behaviour import behaviour_hash
    from spanreplay.replay.reexecution.fleet import Result
    from spanreplay.replay.reports.verdict import render_verdict

    result = Result(
        runs=tuple(run.run_id for run in loaded.runs),
        agents=tuple(run.agent_name for run in loaded.runs if run.agent_name),
        exit_code=done.verdict.exit_code,
        command_exit_code=done.exit_code,
        verdict=done.verdict.to_json(),
        text=render_verdict(done.verdict, done.runs, colour=False),
        behaviours={run.run_id: behaviour_hash(run) for run in loaded.runs},
        seconds=seconds,
    )
    reports.write([result.case()], name="spanreplay replay", as_json=as_json)
