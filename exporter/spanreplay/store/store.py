"""The store of recorded runs, as everybody else sees it."""

import contextlib
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from spanreplay.spans.record import LogRecord, Record, SpanRecord
from spanreplay.store import compaction, derived, integrity, querying, reading, source_losses, steps, sweeping
from spanreplay.store.compaction import CompactionReport
from spanreplay.store.database import WAIT_SECONDS, Database, transaction
from spanreplay.store.errors import MissingStoreError
from spanreplay.store.folder import folder_error, is_store, make_folder, no_store
from spanreplay.store.histories import Histories
from spanreplay.store.importing import Gained, Importer
from spanreplay.store.integrity import Change
from spanreplay.store.querying import QueryResult
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.whole import Derive, WholeTraces, summed_up

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_TRACES_AT_ONCE: Final = 64
_MUCH: Final = 2_000_000


@dataclass(slots=True, kw_only=True)
class AddReport:
    """What became of the records given to :meth:`Store.add`."""

    new: int = 0
    same: int = 0
    """Known already, with the same content."""
    changed: int = 0
    """Known with other content: the fuller one is current, the other is kept beside it."""
    beside: int = 0
    """Recorded here with other content: what was recorded stays current, the other is kept beside it."""
    rejected: int = 0
    """No row can be made of them: no usable id, or nested too deeply."""
    stale: int | None = None
    """Traces of the store whose runs were still to be derived when the last of it was written; ``None`` where nothing was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """What was recorded and cannot be asked for yet."""

    journals: int
    """Files, one a process, that hold more than was loaded."""
    bytes: int
    """How much more."""
    traces: int
    """Traces that are loaded, and whose runs are not derived."""

    def __bool__(self) -> bool:
        return bool(self.bytes or self.traces)


class Store:
    """A folder with journals and a database. Open it with :meth:`open`.

    Every method opens the database for a moment and closes it again, so any number of processes share a store. Methods raise a
    :class:`~spanreplay.store.errors.StoreError` when the database is missing, damaged, locked for too long, from a newer version, or
    cannot be written.
    """

    def __init__(self, path: Path, wait_s: float = WAIT_SECONDS) -> None:
        self.path = path
        self._database = Database(path, wait_s)
        self._seen_stale: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path, *, create: bool = False, wait_s: float = WAIT_SECONDS) -> "Store":
        """The store in this folder.

        Args:
            path: the folder.
            create: make it if it is not there.
            wait_s: how many seconds to wait for another process that holds the store.

        Raises:
            MissingStoreError: there is none, and ``create`` is false.
            StoreError: it cannot be made.
        """
        path = Path(path).absolute()
        if not is_store(path):
            if not create:
                raise MissingStoreError(no_store(path))
            try:
                make_folder(path)
            except OSError as error:
                raise folder_error(error, "cannot make a store", path) from error
        return cls(path, wait_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """``with store.reading():`` reads that belong together share one connection and see one state. Do not write inside."""
        with self._database.holding():
            yield

    # ---- in ---------------------------------------------------------------------------------------------------------

    def compact(self, *, held_s: float | None = None, locked_s: float | None = None) -> CompactionReport:
        """Loads what the journals have that the database has not, each record exactly once; see :func:`spanreplay.store.steps.load`."""
        return steps.load(self._database, self.path, held_s=held_s, locked_s=locked_s)

    def discard(self, journals: Collection[str]) -> bool:
        """Removes journals whose writers have ended, as if they had never been; ``False`` where anything of them is loaded already.

        Args:
            journals: names of the files.
        """
        if not journals:
            return True
        with self._database.writing() as connection:
            return compaction.discard(connection, self.path, journals)

    def unloaded(self) -> Unloaded:
        """What :meth:`compact` would load, and what is loaded and no run yet, without writing anything."""
        with self._database.reading() as connection:
            waiting = compaction.unloaded(connection, self.path)
            return Unloaded(journals=len(waiting), bytes=sum(waiting.values()), traces=len(derived.stale_traces(connection)))

    def add(self, records: Iterable[Record], *, origin: str, derive: Derive | None = None) -> AddReport:
        """Stores records of others. Adding the same ones again changes nothing.

        Args:
            records: read in batches; the store is locked only while a batch is written.
            origin: ``import`` or ``receiver``.
            derive: gives the runs of records; those of traces that are here whole are stored at once. The other traces are stale, as all
                are without it.
        """
        report = AddReport()
        importer = Importer(origin, batch_records=compaction.BATCH_RECORDS, batch_bytes=compaction.BATCH_BYTES)
        whole = WholeTraces()
        largest = 0
        for batch, last in importer.batches(records):
            if not batch.size and not whole:
                continue
            largest = max(largest, batch.content_bytes)  # what a batch begins a later one may end
            with self._database.writing(much=True, size=largest) as connection, transaction(connection):
                generation = compaction.next_generation(connection)
                effects = batch.load(connection, generation)
                if derive is not None:
                    whole.take(batch, generation)
                    for ended in whole.ended(everything=last):
                        _put_ended(connection, ended, derive, origin)
                report.stale = derived.count_stale(connection)
            report.new += effects["new"]
            report.same += effects["same"]
            report.changed += effects["changed"]
            report.beside += effects["beside"]
            report.rejected += batch.rejected
            del batch  # before the next one is filled
        report.rejected += importer.refused
        return report

    def put_source_losses(self, losses: Mapping[str, Iterable[str]], whole: Mapping[str, int] | None = None) -> None:
        """Remembers what an input had lost, by trace id, and forgets what a whole input has made good. Traces concerned become stale.

        Args:
            losses: trace id to what was lost, in words; what is known already is not kept twice.
            whole: how many spans of each trace an input had that lost nothing of it; a trace that has no more in the store is whole now.
        """
        if losses or whole:
            with self._database.writing() as connection, transaction(connection):
                generation = compaction.next_generation(connection)
                source_losses.forget(connection, whole or {}, generation)
                source_losses.add(connection, losses, generation)

    # ---- out --------------------------------------------------------------------------------------------------------

    def traces(self, trace_ids: Sequence[str], *, damaged: list[str] | None = None) -> Iterator[SpanRecord]:
        """Every span of these traces as it was written, by trace and start.

        Content is verified against its digest. A value whose content was lost is left out and counted in ``dropped_attributes``.

        Args:
            trace_ids: of these traces.
            damaged: where given, content that is not what its digest says counts as lost, a span that is not what was written is left out,
                and each is named here.

        Raises:
            DamagedStoreError: content is not what its digest says.
        """
        for start in range(0, len(trace_ids), _TRACES_AT_ONCE):
            with self._database.reading(threads=1) as connection:
                found = reading.load_spans(connection, trace_ids[start : start + _TRACES_AT_ONCE], damaged)
            yield from found

    def other_versions(self, trace_ids: Sequence[str]) -> Iterator[SpanRecord]:
        """The less full versions of spans that arrived more than once with different content."""
        with self._database.reading() as connection:
            found = reading.load_other_versions(connection, trace_ids)
        yield from found

    def imported_versions(self, trace_ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
        """Trace id, span id and, where it names one, run id of every version that was imported and is not the current one."""
        with self._database.reading() as connection:
            return reading.imported_versions(connection, trace_ids)

    def logs(self, trace_ids: Sequence[str], *, damaged: list[str] | None = None) -> Iterator[LogRecord]:
        """Every log record of these traces, by trace and time; ``damaged`` as for :meth:`traces`."""
        for start in range(0, len(trace_ids), _TRACES_AT_ONCE):
            with self._database.reading(threads=1) as connection:
                found = reading.load_logs(connection, trace_ids[start : start + _TRACES_AT_ONCE], damaged)
            yield from found

    def losses(self, process_ids: Sequence[str]) -> dict[str, int]:
        """How many records each of these processes (``spanreplay.process.id``) is known to have lost; absent where none is known of."""
        with self._database.reading() as connection:
            return {process: lost for process, lost in derived.losses(connection, process_ids).items() if lost}

    def source_losses(self, trace_ids: Sequence[str] | None = None) -> dict[str, list[str]]:
        """What the inputs that these traces, or all, were imported from had lost, by trace id; absent where nothing is known of."""
        if not self._database.exists():
            return {}
        with self._database.reading() as connection:
            return source_losses.find(connection, trace_ids)

    def changes(self, run_ids: Sequence[str]) -> list[Change]:
        """What of the rows of these runs was changed, added or deleted by hand, as far as it can be told; so of their traces.

        That derived rows were changed is said of a run as a whole: see :meth:`name_changes`.
        """
        with self._database.reading() as connection:
            return integrity.changes(connection, run_ids)

    def unreferred(self, *, up_to: int) -> tuple[int, int]:
        """How many long contents no record refers to, and how many bytes they have; 0 and 0 where there are more than ``up_to`` spans.

        A process that was killed leaves some, and so does who deletes rows by hand. Pruning removes them.
        """
        with self._database.reading() as connection:
            if connection.execute("SELECT count(*) FROM spans").fetchall()[0][0] > up_to:
                return 0, 0
            return sweeping.unreferred(connection, self.path)

    def name_changes(self, run_ids: Sequence[str], runs: Sequence[RunRow], steps: Sequence[StepRow]) -> list[Change]:
        """What of the derived rows of these runs is not as derived now, by row and column.

        Args:
            run_ids: of these runs.
            runs: as they are derived now; others may be among them.
            steps: all steps of these.
        """
        with self._database.reading() as connection:
            return integrity.name_changes(connection, run_ids, runs, steps)

    # ---- derived ----------------------------------------------------------------------------------------------------

    def stale_traces(self) -> list[str]:
        """Ids of traces that have changed since their runs were last derived."""
        with self._database.reading() as connection:
            self._seen_stale = derived.stale_traces(connection)
        return list(self._seen_stale)

    def connected(self, trace_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Whole groups of traces that share runs, for all groups that these traces are in; runs are derived a group at a time."""
        with self._database.reading() as connection:
            return derived.connected(connection, trace_ids)

    def sizes(self, trace_ids: Sequence[str]) -> dict[str, int]:
        """About how many bytes the spans of each of these traces hold; 0 is left out."""
        with self._database.reading() as connection:
            return derived.sizes(connection, trace_ids)

    def put_runs(self, trace_ids: Sequence[str], runs: Sequence[RunRow], steps: Sequence[StepRow]) -> None:
        """Replaces the derived rows of these traces in one transaction; they are stale no more.

        A trace that has changed again since this object's last :meth:`stale_traces` stays stale.
        """
        histories = Histories(steps)
        left = (histories.left(step)[0] for step in steps)
        size = histories.size() + sum(len(step.input or "") + len(step.output or "") for step in left)
        with self._database.writing(much=size > _MUCH, size=size) as connection, transaction(connection):
            derived.put_runs(connection, trace_ids, runs, steps, self._seen_stale, histories=histories)

    def find_runs(
        self,
        *,
        agent: str | None = None,
        since_ns: int | None = None,
        outcome: str | None = None,
        grade: str | None = None,
        tool: str | None = None,
        session: str | None = None,
        command_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[RunRow]:
        """Runs that meet every filter given, the last started first.

        A recorded command without steps of its own, whose agents are runs of their own, is left out unless it is asked for by id.

        Args:
            agent: name of the agent.
            since_ns: started at or after this time, nanoseconds since the epoch.
            outcome: for example ``ok`` or ``error``.
            grade: for example ``exact``.
            tool: has called this tool.
            session: id of the session.
            command_id: belongs to this recorded command.
            run_id: exactly this one.
            limit: at most this many.
            offset: leave out the first ones.
        """
        filters = {
            "agent": agent,
            "since_ns": since_ns,
            "outcome": outcome,
            "grade": grade,
            "tool": tool,
            "session": session,
            "command_id": command_id,
            "run_id": run_id,
            "limit": limit,
            "offset": offset,
        }
        with self._database.reading() as connection:
            return derived.find_runs(connection, filters)

    def unsettled(self, run_ids: Sequence[str]) -> list[tuple[str, int, str, str]]:
        """Calls that act on the outside, began, and never ended: run, step, name and effect of each. Whether they did act is not known."""
        with self._database.reading() as connection:
            return derived.unsettled(connection, run_ids)

    def unsettled_elsewhere(self, run_ids: Sequence[str]) -> tuple[int, int]:
        """How many such calls there are in other runs than these, and in how many runs."""
        with self._database.reading() as connection:
            return derived.unsettled_elsewhere(connection, run_ids)

    def run_ids(self, prefix: str) -> list[str]:
        """Ids of runs that begin with ``prefix``, the last started first."""
        with self._database.reading() as connection:
            return derived.run_ids(connection, prefix)

    def traces_of(self, run_id: str) -> list[str]:
        """Ids of the traces that a run has spans in."""
        with self._database.reading() as connection:
            return derived.traces_of(connection, run_id)

    def traces_of_command(self, command_id: str) -> list[str]:
        """Ids of the traces of all runs of one recorded command."""
        with self._database.reading() as connection:
            return derived.traces_of_command(connection, command_id)

    def traces_of_forks(self, run_ids: Sequence[str], since_ns: int) -> list[str]:
        """Ids of the traces of runs that were forked from one of these, since a moment, nanoseconds since the epoch."""
        with self._database.reading() as connection:
            return derived.traces_of_forks(connection, run_ids, since_ns)

    def query(self, sql: str) -> QueryResult:
        """Runs one SQL statement that reads; it cannot reach files or the network, nor change the store.

        Raises:
            QueryError: it is not such a statement, or DuckDB found something wrong with it.
        """
        with self._database.reading(sealed=True) as connection:
            return querying.query(connection, sql)

    def query_to_parquet(self, sql: str) -> bytes:
        """The same as a Parquet file, with the types that DuckDB gave its columns.

        Raises:
            QueryError: as :meth:`query`, or the answer is none that Parquet holds.
        """
        with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
            file = Path(folder, "answer.parquet")
            with self._database.reading(sealed=True, writes=file) as connection:
                querying.write_answer(connection, sql, file)
            return file.read_bytes()


def _put_ended(connection: "Connection", ended: Mapping[str, list[Gained]], derive: Derive, origin: str) -> None:
    traces = sorted(ended)
    try:
        runs, steps = derive([gained.record for trace_id in traces for gained in ended[trace_id]])
    except Exception:  # noqa: BLE001 - the records are to be stored all the same; whoever derives the runs later gets to know
        return
    found = {trace_id: summed_up(gained, origin) for trace_id, gained in ended.items()}
    derived.put_runs(connection, traces, runs, steps, {}, origin, found=found)
