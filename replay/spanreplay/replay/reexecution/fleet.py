"""Many re-executions at once: each recorded command, or run, by one of several worker processes.

A worker (:mod:`spanreplay.replay.reexecution.fleet_worker`) is asked in lines of JSON and answers in such; a worker that dies takes one
re-execution with it, and another one takes its place. What is recorded goes to it as a file, one job a worker at a time, so memory does not
grow with the number of runs.
"""

import json
import queue
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from spanreplay.replay.case import EXIT_CODES, Case
from spanreplay.replay.showing import short_id

_WORKER: Final = (sys.executable, "-P", "-m", "spanreplay.replay.reexecution.fleet_worker")
CANNOT_JUDGE: Final = 125
FOREVER: Final = 10.0**9
"""Seconds: no limit that anybody sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command to re-execute."""

    number: int
    agents: tuple[str, ...]
    """Names of the agents of its runs."""
    runs: tuple[str, ...]
    """Ids of all runs of the recorded command."""
    named: tuple[str, ...]
    """Ids of those that it is about; all of the command's agents where none was chosen."""
    focus: tuple[str, ...]
    """See :func:`spanreplay.replay.reexecution.command.replay_command`."""
    recording: Path
    """Their spans, as OTLP JSON. Deleted once it is read."""
    argv: tuple[str, ...]
    cwd: str | None
    options: Mapping[str, Any]
    limit: float = FOREVER
    """Seconds that it has."""
    failed: str | None = None
    """Why it cannot be executed."""

    def to_json(self) -> dict[str, Any]:
        """What a worker is sent."""
        return {
            "runs": self.runs,
            "named": self.named,
            "focus": self.focus,
            "recording": str(self.recording),
            "argv": self.argv,
            "cwd": self.cwd,
            "options": self.options,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a re-execution showed, in plain JSON values."""

    number: int = 0
    runs: tuple[str, ...]
    """Ids of the runs that it is about."""
    agents: tuple[str, ...] = ()
    exit_code: int
    command_exit_code: int | None = None
    verdict: Mapping[str, Any] = field(default_factory=dict)
    """:meth:`spanreplay.replay.reexecution.verdict.Verdict.to_json`; empty where there is none."""
    text: str = ""
    """The verdict for people."""
    behaviours: Mapping[str, str] = field(default_factory=dict)
    """Behaviour hash of each of these runs, as recorded."""
    seconds: float = 0.0
    said: str = ""
    """The end of what the command printed."""
    failed: str | None = None
    """Why there is no verdict."""
    file: str | None = None
    """A recording that cannot be read, so that nobody knows its runs."""

    @property
    def word(self) -> str:
        """``equal``, ``different``, ``refused`` or ``cannot judge``."""
        return EXIT_CODES.get(self.exit_code, EXIT_CODES[CANNOT_JUDGE])[1]

    @property
    def label(self) -> str:
        """The runs, short, and their agents; or the recording."""
        if self.file is not None:
            return self.file
        ids = [short_id(run) for run in self.runs[:1]] + ([f"and {len(self.runs) - 1} more"] if len(self.runs) > 1 else [])
        return "  ".join([" ".join(ids), ", ".join(dict.fromkeys(self.agents)) or "-"])

    @property
    def first(self) -> Mapping[str, Any] | None:
        """The first difference."""
        return next(iter(self.verdict.get("differences", ())), None)

    def message(self) -> str:
        """One line: what is wrong with it, or how many steps were answered."""
        from spanreplay.replay.reexecution.ledger import Difference

        if self.failed is not None:
            return self.failed
        refusals = self.verdict.get("refusals") or ()
        if refusals:
            return f"refused: {refusals[0].get('text')}"
        if self.first is not None:
            return Difference(**self.first).summary()
        if self.exit_code == CANNOT_JUDGE:
            if not self.verdict.get("processes"):
                return "no Python process with spanreplay in it reported in"
            return "the record is cut short"
        steps = self.verdict.get("steps", {}).get("matched", 0)
        return f"{steps} step{'' if steps == 1 else 's'}"

    def case(self) -> Case:
        """For CI systems."""
        ended, word = EXIT_CODES.get(self.exit_code, EXIT_CODES[CANNOT_JUDGE])
        first, refusals = self.first, self.verdict.get("refusals") or ()
        where = refusals[0].get("where") if refusals else first.get("where") if first else None
        properties = {"run": ", ".join(self.runs), **{f"behaviour.{run}": found for run, found in self.behaviours.items()}}
        if len(self.behaviours) == 1:
            properties = {"run": ", ".join(self.runs), "behaviour": next(iter(self.behaviours.values()))}
        return Case(
            group=", ".join(dict.fromkeys(self.agents)) or "replay",
            name=self.file
            or " ".join([f"run {short_id(run)}" for run in self.runs[:3]] + (["…"] if len(self.runs) > 3 else []))
            or "replay",
            ended=ended,
            word=word,
            message="" if ended == "passed" else self.message(),
            text=self.text,
            said=self.said,
            seconds=self.seconds,
            where=where,
            properties=properties,
        )

    def to_json(self) -> dict[str, Any]:
        """A row of ``spanreplay replay --all --json``."""
        return {
            "runs": list(self.runs),
            "agents": list(self.agents),
            "result": self.word,
            "exit_code": self.exit_code,
            "command_exit_code": self.command_exit_code,
            "seconds": round(self.seconds, 3),
            "behaviours": dict(self.behaviours),
            "failed": self.failed,
            "file": self.file,
            "replay": dict(self.verdict) or None,
        }


def executed(jobs: Iterable[Job], workers: int) -> Generator[Result, None, None]:
    """Every job done, each result as it comes.

    Args:
        jobs: taken as workers get free.
        workers: how many at once.
    """
    free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    started = [_Worker() for _ in range(workers)]
    for worker in started:
        free.put(worker)

    def work(job: Job) -> Result:
        worker = free.get()
        try:
            return worker.done(job)
        finally:
            job.recording.unlink(missing_ok=True)
            free.put(worker)

    pending: set[Future[Result]] = set()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="spanreplay-fleet")
    try:
        for job in jobs:
            pending.add(pool.submit(work, job))
            while len(pending) > workers:  # one is ready for whoever is free first
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        for worker in started:
            worker.end()
        pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """A process that re-executes one command after the other; started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._ended = False

    def done(self, job: Job) -> Result:
        """Re-execute a command."""
        if job.failed is not None:
            return Result(number=job.number, runs=job.named, agents=job.agents, exit_code=CANNOT_JUDGE, failed=job.failed)
        try:
            answer = self._ask(job.to_json())
        except (OSError, ValueError) as error:  # the next one gets another process
            process = self._process
            if process is not None:
                process.kill()
                process.wait()
                self._closed(process)
            answer = {"failed": f"the worker died: {error}", "exit_code": CANNOT_JUDGE}
        return Result(number=job.number, runs=job.named, agents=job.agents, **answer)

    def _ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if self._ended:
            raise ValueError("it was ended")
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 — our own worker
                _WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        into, out = _streams(self._process)
        into.write(json.dumps(asked) + "\n")
        into.flush()
        line = out.readline()
        if not line:
            code = self._process.wait()
            self._closed(self._process)
            raise ValueError(f"exit code {code}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _closed(self, process: "subprocess.Popen[str]") -> None:
        self._process = None
        for stream in _streams(process):
            with suppress(OSError):
                stream.close()

    def end(self) -> None:
        """It ends, and with it what it executes."""
        self._ended = True
        process = self._process
        if process is None:
            return
        with suppress(OSError):
            _streams(process)[0].close()  # it ends where it would read the next job
        process.terminate()  # which it hands on to the command that it executes
        process.wait()
        self._closed(process)


def _streams(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None  # noqa: S101 — both were asked for
    assert process.stdout is not None  # noqa: S101
    return process.stdin, process.stdout
