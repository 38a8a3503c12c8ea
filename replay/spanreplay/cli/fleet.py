"""``spanreplay replay --all``: every recorded command executed again, by several processes at once."""

import json
import shlex
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreplay.cli.failing import QUERY_INTERRUPTED
from spanreplay.cli.filtering import Filters
from spanreplay.cli.judged import Reports
from spanreplay.cli.options import WrongUse, complain, detail, many, print_json, print_text, quiet, say
from spanreplay.cli.progress import working
from spanreplay.cli.rerunning import agree, own_command
from spanreplay.cli.target import why_unreadable
from spanreplay.cli.units import Unit, Units, every_run

if TYPE_CHECKING:
    from spanreplay.replay.reexecution.fleet import Job, Result
    from spanreplay.replay.reexecution.options import Options

_NAMED: Final = 5
_TIMES, _LEAST_S = 10, 60
"""A run has so many times the seconds that were recorded, and so many at least."""
_PLACES: Final = ("{input}", "{run}")
"""What stands in a command for something of one run."""


def replay_all(
    target: str | None,
    store: Path | None,
    filters: Filters,
    argv: Sequence[str] | None,
    options: "Options",
    *,
    yes: bool,
    workers: int,
    limit: float | None,
    reports: Reports,
    as_json: bool,
) -> int:
    """Re-execute every run that meets the filters; gives the exit code, the worst of all.

    Args:
        target: see :func:`spanreplay.cli.units.every_run`.
        store: the same.
        filters: the same.
        argv: the command for each recorded command, or, where ``{input}`` or ``{run}`` is in it, for each run, whose input and id these
            stand for; ``None``: each run's own.
        options: how each is replayed.
        yes: do not ask before the runs' own commands are executed.
        workers: how many at once.
        limit: seconds that each has; 0: no limit; ``None``: by how long it took when it was recorded.
        reports: what to write besides.
        as_json: one JSON document instead of lines.

    Raises:
        WrongUse: the runs' own commands were not agreed to.
        KeyboardInterrupt, SystemExit: it was told to end; what had been judged until then is summed up.
    """
    from spanreplay.replay.case import worst
    from spanreplay.replay.reexecution.fleet import executed
    from spanreplay.replay.reexecution.summary import document
    from spanreplay.replay.reports.fleet import render_result, render_summary

    apart = argv is not None and any(name in word for word in argv for name in _PLACES)
    results: list[Result] = []
    stopped: BaseException | None = None
    with (
        _ended_by_sigterm() as stop,
        every_run(target, store, filters, apart=apart) as units,
        tempfile.TemporaryDirectory(prefix="spanreplay-") as folder,
    ):
        if not units:
            say(f"no run of {units.path} {'meets the filters' if filters.asked() else 'is there'}")
        if argv is None and not yes:
            _confirm(units)
        with working("replaying", total=len(units)) as advance:
            jobs = _jobs(units, Path(folder), argv, options, limit)
            try:
                with closing(executed(jobs, max(1, min(workers, len(units))))) as replayed:
                    for result in chain(_unreadable(units), replayed):
                        advance(int(result.file is None))
                        results.append(result)
                        if not as_json and not (quiet() and result.exit_code == 0):
                            print_text(render_result(result))
                        if result.exit_code:
                            detail(result.text + ("\n" + result.said if result.said else ""))
            except (KeyboardInterrupt, SystemExit, RuntimeError) as error:
                stopped = stop.meant_by(error)
                results.append(_rest(units, len(results)))
    results.sort(key=lambda result: result.number)
    if as_json:
        print_json(document(results))
    elif results:
        print_text("\n" + render_summary(results))
    reports.write([result.case() for result in results], name="spanreplay replay", as_json=as_json)
    if stopped is not None:
        raise stopped
    return worst([result.exit_code for result in results])


class _Stop:
    """Whether this process was told to end."""

    code: int | None = None

    def __call__(self, number: int, _: object) -> None:
        self.code = 128 + number
        raise SystemExit(self.code)

    def meant_by(self, error: BaseException) -> BaseException:
        """What the signal raised, also where DuckDB has put its own error in place of that.

        Raises:
            RuntimeError: the error is no interruption.
        """
        if not isinstance(error, RuntimeError):
            return error
        if str(error) != QUERY_INTERRUPTED:
            raise error
        return KeyboardInterrupt() if self.code is None else SystemExit(self.code)


@contextmanager
def _ended_by_sigterm() -> Iterator[_Stop]:
    """SIGTERM ends this process as an exception does: with its workers, and what they execute."""
    stop = _Stop()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _unreadable(units: Units) -> "Iterator[Result]":
    """Recordings of which nothing can be judged: they count all the same."""
    from spanreplay.replay.reexecution.fleet import CANNOT_JUDGE, Result

    for number, error in enumerate(units.unreadable, len(units)):
        yield Result(number=number, runs=(), exit_code=CANNOT_JUDGE, failed=why_unreadable(error), file=error.file)


def _rest(units: Units, done: int) -> "Result":
    """What was not judged because the whole was told to end."""
    from spanreplay.replay.reexecution.fleet import CANNOT_JUDGE, Result

    every = len(units) + len(units.unreadable)
    told = f"stopped: {every - done} of {every} were not judged"
    return Result(number=every, runs=(), exit_code=CANNOT_JUDGE, failed=told, file=str(units.path))


def _seconds(unit: Unit, limit: float | None) -> float:
    from spanreplay.replay.reexecution.fleet import FOREVER

    if limit is not None:
        return limit or FOREVER
    took = max((run.ended_ns - run.started_ns for run in unit.siblings if run.ended_ns is not None), default=0)
    return float(max(_LEAST_S, _TIMES * took // 10**9))


def _jobs(units: Units, folder: Path, argv: Sequence[str] | None, options: "Options", limit: float | None) -> "Iterator[Job]":
    from spanreplay.replay.outgoing import of_runs
    from spanreplay.replay.reexecution.fleet import Job
    from spanreplay.spans import otlp_json

    for number, unit in enumerate(units):
        recording = folder / f"{number}.json"
        recording.write_text(json.dumps(otlp_json.encode(of_runs(unit.records, unit.siblings))), encoding="utf-8")
        failed = None
        try:
            words, cwd = own_command(unit) if argv is None else (_filled(argv, unit), None)
        except WrongUse as error:
            words, cwd, failed = [], None, error.message
        yield Job(
            number=number,
            agents=tuple(run.agent_name or "" for run in unit.runs if run.agent_name),
            runs=tuple(run.run_id for run in unit.siblings),
            named=tuple(run.run_id for run in unit.runs),
            focus=unit.focus,
            recording=recording,
            argv=tuple(words),
            cwd=cwd,
            options=options.to_json(),
            limit=_seconds(unit, limit),
            failed=failed,
        )


def _filled(argv: Sequence[str], unit: Unit) -> list[str]:
    """A command for one run: ``{input}`` and ``{run}`` as words of their own, or inside of one."""
    run = unit.runs[0]
    asked = run.input if isinstance(run.input, str) else "" if run.input is None else json.dumps(run.input, ensure_ascii=False)
    return [word.replace("{run}", run.run_id).replace("{input}", asked) for word in argv]


def _confirm(units: Units) -> None:
    """The recorded commands are shown and agreed to before the first is executed."""
    commands = dict.fromkeys(shlex.join(own_command(unit)[0]) for unit in units)
    shown = [*commands][:_NAMED]
    if not shown:
        return
    complain(f"recorded commands, {many(len(units), 'time')} in all:")
    for text in shown:
        complain(f"  {text}")
    if len(shown) < len(commands):
        complain(f"  and {len(commands) - len(shown)} more")
    agree("run them again, answered from the record?", "not run; --yes runs them without asking")
