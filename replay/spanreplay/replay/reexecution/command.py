"""Re-execution of a command: a process of its own, whose every Python process answers its calls from the record."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from spanreplay.exporter import environment_variables as env
from spanreplay.recording.children import child_environment, finish_command
from spanreplay.recording.definition import HASH_SEED, timezone
from spanreplay.replay.isolation import naming
from spanreplay.replay.isolation.state import paths_of
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.joins import Join
from spanreplay.replay.reexecution import descendants, raised
from spanreplay.replay.reexecution.crashes import told
from spanreplay.replay.reexecution.credentials import PLACEHOLDER, needed_credentials
from spanreplay.replay.reexecution.cut import cut_of
from spanreplay.replay.reexecution.cut import judged as judged_part
from spanreplay.replay.reexecution.ending import GRACE_S, QUIET_S, EndsTogether
from spanreplay.replay.reexecution.hosts import model_hosts
from spanreplay.replay.reexecution.ledger import Difference, Ledger, Totals, expected_runs, read_ledgers
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.replay.reexecution.plan import ENDS, ENVIRONMENT, LEDGERS, TEMPORARY, Plan, lay_out
from spanreplay.replay.reexecution.policy import PolicyError
from spanreplay.replay.reexecution.stepping import window
from spanreplay.replay.reexecution.uncalled import enter_unreached
from spanreplay.replay.reexecution.verdict import Verdict, verdict
from spanreplay.replay.reexecution.versions_now import present_code, recorded_command
from spanreplay.spans.record import Record
from spanreplay.store.errors import StoreError
from spanreplay.store.folder import JOURNALS, check_writable, make_folder
from spanreplay.store.store import Store

_GRACE_S: Final = 3
"""How long a command that is asked to end may take."""
_QUICK_TELEMETRY: Final = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
"""Nothing is exported during a replay, so the command's own exporters need not try for long."""

_EXTRAS: Final = {"opentelemetry-instrument": 'it comes with the extra "auto": pip install "spanreplay[auto]"'}
"""Programs that an extra of ours brings, and the line that installs them."""


class CommandMissing(Exception):  # noqa: N818 — reads as what happened
    """The command to run cannot be found."""


class Overran(Exception):  # noqa: N818 — reads as what happened
    """A command did not end in the time that it has, and was ended, with the processes of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReplay:
    """What re-executing a command showed."""

    argv: tuple[str, ...]
    exit_code: int
    """Exit code of the command itself; of the replay, see the verdict."""
    verdict: Verdict
    runs: tuple[Run, ...]
    """What it was judged against."""
    command_id: str | None = None
    """Of the command that this was recorded as, where anything was live."""
    kept: bool = False
    """It stands in the store. Not so what made no call at all, and began no agent run: nothing of the agent was executed."""
    overran: bool = False
    """It did not end in its time: the verdict knows what it had done until then, and not what it left undone."""


def replay_command(
    runs: Sequence[Run],
    records: Iterable[Record],
    argv: Sequence[str],
    *,
    focus: Collection[str] = (),
    options: Options = STRICT,
    join: Join | None = None,
    cwd: Path | None = None,
    output: IO[Any] | None = None,
    errors: IO[Any] | None = None,
    stdin: int | None = None,
    store: Path | None = None,
    announce: bool = False,
    limit: float | None = None,
) -> CommandReplay:
    """Run ``argv`` with every call of its agents answered from ``runs``, but those that ``options.policy`` lets be live.

    Args:
        runs: one run, or all runs of the recorded command.
        records: the spans they were rebuilt from.
        argv: the command.
        focus: ids of the runs that were asked for: only these must come. Empty: all of them.
        options: what it may do, and how it is compared.
        join: how the runs were made of several traces, if they were.
        cwd: where to run it.
        output: where its standard output goes; ours by default.
        errors: where its standard error goes; ours by default.
        stdin: its standard input, as :class:`subprocess.Popen` takes it; ours by default.
        announce: say, before its first step, what has changed since the runs were recorded.
        store: where the run is kept that this is, if anything is live; ``SPANREPLAY_STORE``, else ``./.spanreplay``, by default.
        limit: seconds that it has, see :func:`run_attached`.

    Raises:
        CommandMissing: there is no such program.
        PolicyError: what is to be live does not fit the runs.
        StoreError: it is to be kept, and the store cannot be written.
    """
    policy, command_id, overran = options.policy, os.urandom(16).hex(), False
    if policy:
        cut_of(runs, policy)  # raises before anything is executed
    kept = env.store_folder(store) if policy.is_kept else None
    if kept is not None:
        check_writable(kept)  # raises before anything is executed
    scratch = Path(tempfile.mkdtemp(prefix="spanreplay-"))
    try:
        options = _with_live(options, runs, kept)
        traces = {t for run in runs for t in run.trace_ids}
        plan = Plan(
            runs=tuple(r.run_id for r in runs),
            focus=tuple(focus),
            options=options,
            join=join,
            announce=announce,
        )
        lay_out(scratch, plan, (r for r in records if r.trace_id in traces), present_code(runs, (cwd or Path.cwd()).absolute()))
        environment = child_environment(command_id, os.urandom(16).hex(), scratch if kept is None else kept, "replay")
        temporary = str(scratch / TEMPORARY)
        environment |= _QUICK_TELEMETRY
        environment |= {ENVIRONMENT: str(scratch), "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, "SQLITE_TMPDIR": temporary}
        environment |= _varied(options) | same_surroundings(runs)
        for name in needed_credentials(runs, environment):
            environment.setdefault(name, PLACEHOLDER)
        with (
            naming.Watch(
                scratch,
                Ledger(scratch / LEDGERS / "kernel.ledger"),
                environment,
                allow_write=options.allow_write,
                allow_connect=options.allow_connect,
                state=[path for run in runs for path in paths_of(run.state)],
            )
            if options.isolate != "hook"
            else nullcontext()
        ):
            try:
                code = run_attached(
                    argv,
                    environment,
                    cwd,
                    output=output,
                    errors=errors,
                    stdin=stdin,
                    limit=limit,
                    marks=scratch / ENDS,
                    quiet_s=GRACE_S if policy else QUIET_S,  # who waits for a live call does not only wait
                )
            except Overran:
                code, overran = 128 + signal.SIGTERM, True
        totals = read_ledgers(scratch / LEDGERS)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    is_kept = kept is not None and not _came_to_nothing(kept, totals)
    if is_kept:
        finish_command(environment, code)
    else:
        totals.begun.clear()
    judged = window(judged_part(expected_runs(runs, totals, focus), policy, totals), totals, options.stepping, focus)
    whole = not policy and totals.enough is None and (all(r.run_id in totals.runs_matched or r.is_command for r in runs) if focus else True)
    if not overran:
        _finish(totals, judged, code, options, None if not whole else next((r.exit_code for r in runs if r.is_command), None))
    whole_enough = options.accept_incomplete or policy.is_fork
    judgement = verdict(totals, judged, accept_incomplete=whole_enough, command=recorded_command(runs), policy=policy)
    made = None if kept is None else command_id
    return CommandReplay(
        argv=tuple(argv), exit_code=code, verdict=judgement, runs=tuple(judged), command_id=made, kept=is_kept, overran=overran
    )


def _came_to_nothing(store: Path, totals: Totals) -> bool:
    """Nothing of the agent was executed, and what was written of it is gone again: it hides no run that came to something."""
    done = totals.used or totals.covered or totals.live or totals.left or totals.runs_matched or totals.differences or totals.refusals
    if done:
        return False
    try:
        return Store.open(store).discard(totals.journals)
    except (StoreError, OSError):
        return False


def _with_live(options: Options, runs: Sequence[Run], store: Path | None) -> Options:
    """What live calls need: the hosts of models, and where what they do is written down."""
    policy = options.policy
    if policy.lets_models_run and options.isolate == "net":
        raise PolicyError("--isolate=net leaves no way to a model or a tool, so nothing can be live; leave it out")
    if policy.lets_models_run:
        hosts = dict.fromkeys([*options.allow_connect, *model_hosts(runs, os.environ)])
        options = replace(options, allow_connect=tuple(hosts))
    if store is not None:
        make_folder(store)
        options = replace(options, allow_write=(*options.allow_write, store / JOURNALS))
    # The kernel cannot tell what a live tool does from what the agent does besides.
    return replace(options, isolate="hook") if policy.lets_tools_run else options


def same_surroundings(runs: Sequence[Run]) -> dict[str, str]:
    """What makes randomness, the order of sets and the time zone what they were when the command was recorded."""
    command = next((r for r in runs if r.is_command), None)
    if command is None:
        return {}
    defined = command.definition if isinstance(command.definition, dict) else {}
    recorded = defined.get("environment")
    kept = recorded if isinstance(recorded, dict) else {}
    zone = defined.get("timezone")
    elsewhere = zone if zone != timezone() else None
    found = {
        env.SPANREPLAY_SEED: command.seed,
        env.SPANREPLAY_SEED_SECRETS: kept.get(env.SPANREPLAY_SEED_SECRETS),
        HASH_SEED: kept.get(HASH_SEED, command.hash_seed),
        "TZ": kept.get("TZ", elsewhere),
    }
    return {name: value for name, value in found.items() if isinstance(value, str) and "\0" not in value}


def _varied(options: Options) -> dict[str, str]:
    """What another machine would have otherwise, where the record does not say what it was."""
    return {} if options.shuffled is None else {HASH_SEED: str(options.shuffled % 2**32)}


def _finish(totals: Totals, runs: Sequence[Run], code: int, options: Options, wanted: int | None) -> None:
    ledger = Ledger()
    ledger.totals = totals
    if totals.processes == 0:
        return
    enter_unreached(runs, ledger, all_differences=options.comparing.all_differences)
    if wanted is None or totals.differences or totals.refusals:
        return
    ended = raised.of_command(runs, totals, options.comparing) if wanted == code else None
    if ended is not None:
        ledger.differ(ended)
    if wanted != code:
        ledger.differ(
            Difference(
                kind="exit_code",
                run_id=None,
                step=None,
                name="the command",
                field="exit code",
                recorded=str(wanted),
                actual=str(code),
                detail=told(totals.crashes[0]) if totals.crashes else "",
                where=totals.crashes[0].get("where") if totals.crashes else None,
            )
        )


def run_attached(
    argv: Sequence[str],
    environment: dict[str, str],
    cwd: Path | None = None,
    *,
    output: IO[Any] | None = None,
    errors: IO[Any] | None = None,
    stdin: int | None = None,
    limit: float | None = None,
    marks: Path | None = None,
    quiet_s: float = QUIET_S,
) -> int:
    """Run a command on our own stdin, stdout and stderr; returns its exit code (128 + n for signal n, as shells do).

    Ctrl-C is the command's to deal with: a terminal sends it to both of us, so we wait for what it makes of it. SIGTERM and SIGHUP,
    which may have been meant for us alone, are handed on.

    Args:
        argv: the command.
        environment: all of its variables.
        cwd: where to run it.
        output: where its standard output goes; ours by default.
        errors: where its standard error goes; ours by default.
        stdin: its standard input, as :class:`subprocess.Popen` takes it; ours by default.
        limit: seconds that it has; it is then a process group of its own, which is ended as a whole and with all that it has started, also
            where we are told to end.
        marks: where its processes say that they were stopped, which ends all of it, see :mod:`spanreplay.replay.reexecution.ending`.
        quiet_s: seconds without work after which a command so marked is ended.

    Raises:
        CommandMissing: there is no such program, or no such folder to run it in.
        Overran: it had not ended within ``limit``.
    """
    started: list[subprocess.Popen[bytes]] = []
    others: set[int] = set()
    if limit is not None:
        descendants.adopt_orphans()
        others = {process.pid for process in descendants.descendants()}

    def hand_on(number: int, _: object) -> None:
        if number != signal.SIGINT:
            for child in started:
                if limit is None:
                    child.send_signal(number)
                else:
                    _end_group(child, others)

    # A handler, not SIG_IGN, which the command would inherit.
    before = {
        s: signal.signal(s, hand_on) for s in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
    }
    try:
        child = subprocess.Popen(  # noqa: S603 — the user's own command
            list(argv), env=environment, cwd=cwd, stdin=stdin, stdout=output, stderr=errors, start_new_session=limit is not None
        )
        started.append(child)
        with nullcontext() if marks is None else EndsTogether(child, marks, errors, quiet_s=quiet_s):
            code = child.wait(limit)
    except subprocess.TimeoutExpired as error:
        _end_group(started[0], others)
        raise Overran(f"no end after {limit:g} s") from error
    except OSError as error:
        if cwd is not None and not cwd.is_dir():
            raise CommandMissing(f"{cwd}, where the command was recorded, is no folder any more") from error
        advice = _EXTRAS.get(Path(argv[0]).name, "what stands after -- is run as it is, without a shell")
        raise CommandMissing(f"{argv[0]}: {error.strerror}; {advice}") from error
    except ValueError as error:
        raise CommandMissing(f"{argv[0]}: {error}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def _end_group(child: "subprocess.Popen[bytes]", others: set[int]) -> None:
    """A command and what it has started end: asked to, then made to; all but others of our children."""
    group = getattr(os, "killpg", None)
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with suppress(ProcessLookupError, PermissionError):
            if group is None:
                child.send_signal(number)
            else:
                group(child.pid, number)
        descendants.end([p for p in descendants.descendants() if p.pid not in others and p.group != child.pid], number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
    descendants.end_all(others)
