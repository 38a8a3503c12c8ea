"""The one way from a request into the store: its records into a journal, the journal onto the disk, and only then the answer.

A single thread does it, so that requests which arrive together share one sync, and no more than one body is unpacked at a time.
"""

import asyncio
import logging
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanreplay.receiver.answers import Answer, taken
from spanreplay.receiver.reading import Request, read
from spanreplay.receiver.unpacking import TooLargeError
from spanreplay.spans.errors import REJECTED, FormatError, Problem
from spanreplay.spans.record import LogRecord, SpanRecord
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process

ORIGIN: Final = "receiver"
RETRY_BUSY_S: Final = 1
RETRY_UNAVAILABLE_S: Final = 2
"""Short: the SDK of Python gives up after 10 seconds in all."""

_log: Final = logging.getLogger("spanreplay.receiver")
_TOGETHER: Final = 64
_TOGETHER_BYTES: Final = 8_000_000
_JOURNAL_BYTES: Final = 64_000_000
_JOURNAL_SECONDS: Final = 300.0
_MANY_PROBLEMS: Final = 1_000


@dataclass(slots=True)
class Counts:
    """What was received since the start."""

    requests: int = 0
    spans: int = 0
    logs: int = 0
    rejected: int = 0


@dataclass(slots=True)
class _Job:
    request: Request | None
    reserved: int
    done: "asyncio.Future[Answer]"


class Intake:
    """Takes requests from one event loop.

    Args:
        store: the store's folder.
        limit: bytes of a body, unpacked.
        waiting_bytes: bytes of bodies that may be held at once.
        waiting_requests: how many requests may wait.
    """

    def __init__(self, store: Path, *, limit: int, waiting_bytes: int, waiting_requests: int) -> None:
        self.limit = limit
        self.counts = Counts()
        self.failing = ""
        """Why nothing can be kept at present; empty while all is well."""
        self.taken_at = 0.0
        """When something was taken last, on the monotonic clock."""
        self._room = waiting_bytes
        self._requests = waiting_requests
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = JournalWriter(store, process=current_process())
        self._journal_bytes = 0
        self._journal_since = 0.0
        self._thread = threading.Thread(target=self._work, name="spanreplay-intake", daemon=True)
        self._stopping = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    # ---- in the event loop ------------------------------------------------------------------------------------------

    def reserve(self, size: int) -> bool:
        """Room for so many more bytes of a body; whoever got it gives it back with :meth:`release`."""
        if size > self._room:
            return False
        self._room -= size
        return True

    def release(self, size: int) -> None:
        """Give room back."""
        self._room += size

    async def take(self, request: Request, reserved: int) -> Answer:
        """What became of a request; it is on the disk when the answer says that it was taken.

        Args:
            request: the request.
            reserved: room that was got for it. It is given back here, once the body is let go of, even if whoever asks is cancelled.
        """
        if self._stopping or self._requests <= 0:
            self.release(reserved)
            return stopping() if self._stopping else busy()
        self._requests -= 1
        job = _Job(request, reserved, asyncio.get_running_loop().create_future())
        self._jobs.put(job)
        return await asyncio.shield(job.done)

    def _give(self, job: _Job, answer: Answer) -> None:
        self._requests += 1
        self.release(job.reserved)
        if not job.done.done():
            job.done.set_result(answer)

    def stop(self, patience_s: float) -> None:
        """Finish what was given, close the journal. Blocks."""
        self._stopping = True
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join(patience_s)
        self._writer.close()

    # ---- in the thread ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (jobs := self._next())[-1] is not None:
            self._do([job for job in jobs if job is not None])
        self._do([job for job in jobs if job is not None])

    def _next(self) -> "list[_Job | None]":
        jobs = [self._jobs.get()]
        size = 0
        while jobs[-1] is not None and len(jobs) < _TOGETHER and size < _TOGETHER_BYTES:
            request = jobs[-1].request
            size += len(request.body) if request is not None else 0
            try:
                jobs.append(self._jobs.get_nowait())
            except queue.Empty:
                break
        return jobs

    def _do(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        try:
            answers = self._answers(jobs)
        except Exception:  # noqa: BLE001 — whatever it is, those who wait get an answer
            _log.exception("requests could not be taken")
            answers = [_fault()] * len(jobs)
        self.taken_at = time.monotonic()
        loop = jobs[0].done.get_loop()
        for job, answer in zip(jobs, answers, strict=True):
            self.counts.requests += 1
            self.counts.rejected += answer.rejected
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._give, job, answer)

    def _answers(self, jobs: list[_Job]) -> list[Answer]:
        self._make_room()
        before, records = self._writer.dropped, self.counts.spans + self.counts.logs
        answers = [self._answer(job) for job in jobs]
        self._writer.sync()
        error = self._writer.last_error if self._writer.dropped != before else None
        if not isinstance(error, OSError):
            if self.counts.spans + self.counts.logs > records:
                self.failing = ""
            return answers
        self.failing = error.strerror or type(error).__name__
        # Nobody can tell whose records were hit: all send again, and what is known already is the same.
        _log.warning("nothing can be kept at present: %s", error)
        again = Answer(verdict="unavailable", message=f"the store cannot be written: {self.failing}", retry_s=RETRY_UNAVAILABLE_S)
        return [again if answer.verdict == "taken" else answer for answer in answers]

    def _answer(self, job: _Job) -> Answer:
        request, job.request = job.request, None  # its body is not needed any longer than this takes
        if request is None:
            return _fault()
        told: list[str] = []
        rejected = 0

        def note(problem: Problem) -> None:
            nonlocal rejected
            rejected += problem.code == REJECTED
            if len(told) < _MANY_PROBLEMS:
                told.append(str(problem))

        try:
            for number, record in enumerate(read(request, self.limit, note)):
                wrong = self._keep(record, request)
                if wrong is not None:
                    rejected += wrong[0]
                    told.append(f"record {number}: {wrong[1]}")
        except TooLargeError:
            return too_large(self.limit)
        except FormatError as error:
            return Answer(verdict="malformed", message=str(error)[:1_000])
        except Exception:  # noqa: BLE001 — the other requests are none the worse
            _log.exception("a request could not be read")
            return _fault()
        if told:
            _log.info("%d record(s) of a request left out: %s", rejected, told[0])
        self._journal_bytes += len(request.body)
        return taken(told, rejected)

    def _keep(self, record: SpanRecord | LogRecord, request: Request) -> tuple[int, str] | None:
        """Writes one record. What is wrong with it: 1 if it was left out, 0 if only a part of it was, and why."""
        writer = self._writer
        before = writer.dropped
        if isinstance(record, SpanRecord) and request.signal == "spans":
            writer.write_span(record, ORIGIN)
            self.counts.spans += 1
        elif isinstance(record, LogRecord) and request.signal == "logs":
            writer.write_log(record, ORIGIN)
            self.counts.logs += 1
        else:
            return 1, f"not what belongs here; wanted {request.signal}"
        if writer.dropped == before or isinstance(writer.last_error, OSError):
            return None
        kept = isinstance(record, SpanRecord) and writer.seen(record.trace_id, record.span_id)
        return (0 if kept else 1), f"{'a part of it' if kept else 'it'} could not be kept: {type(writer.last_error).__name__}"

    def _make_room(self) -> None:
        """A journal that has grown large or old is ended, so that the compactor can load and remove it."""
        now = time.monotonic()
        if self._journal_since == 0.0:
            self._journal_since = now
        elif self._journal_bytes > _JOURNAL_BYTES or now - self._journal_since > _JOURNAL_SECONDS:
            self._writer.close()
            self._journal_bytes, self._journal_since = 0, now


def busy() -> Answer:
    """Too much at once."""
    return Answer(verdict="busy", message="too much is waiting; send it again", retry_s=RETRY_BUSY_S)


def too_large(limit: int) -> Answer:
    """More than is taken in one request."""
    return Answer(verdict="too-large", message=f"the body is larger than {limit} bytes; send smaller batches")


def stopping() -> Answer:
    """Not any more, or not yet."""
    return Answer(verdict="unavailable", message="spanreplay serve is stopping", retry_s=RETRY_UNAVAILABLE_S)


def _fault() -> Answer:
    return Answer(verdict="failed", message="a fault of spanreplay; its log says more")
