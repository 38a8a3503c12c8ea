"""How long runs are kept: which go, which stay whatever the limits say, and the deleting itself."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from spanreplay.store import holds
from spanreplay.store.appending import append
from spanreplay.store.bundles import Bundle, Commands, find_bundles, runs_of, traces_of
from spanreplay.store.compaction import compact, pending
from spanreplay.store.database import WAIT_SECONDS, Database, transaction
from spanreplay.store.derived import load_runs
from spanreplay.store.holds import Hold, whoami
from spanreplay.store.reclaiming import clear, reclaim
from spanreplay.store.rows import RunRow
from spanreplay.store.sweeping import sweep

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

Why: TypeAlias = Literal["age", "count", "size", "session"]
Kept: TypeAlias = Literal["on hold", "in use", "the command of a run that stays"]

_SETTLING_NS: Final = 3_600 * 10**9
"""While a process records, what happened less than this ago may be added to."""
_AGAIN: Final = 3
_MEMORY: Final = "1GB"
_OF_A_RUN_OR_TRACE: Final = """
    SELECT table_name, column_name FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal AND column_name IN ('trace_id', 'run_id')
        AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE NOT internal) AND table_name NOT IN ('holds', 'pruned')
    ORDER BY ALL
"""
_PRUNED_COLUMNS: Final = ("run_id", "session_id", "agent", "started_ns", "spans", "reason", "pruned_ns", "pruned_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is to go: everything beyond any of them. Times are nanoseconds since the epoch, sizes bytes."""

    before_ns: int | None = None
    """What happened last before this."""
    keep: int | None = None
    """All but so many of the latest runs, as ``spanreplay runs`` lists them."""
    max_bytes: int | None = None
    """The oldest, until the database has about this size."""
    sessions: frozenset[str] = frozenset()
    """Only runs of these; all of them, where there is no other limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """What is to go, and because of which limit."""

    bundle: Bundle
    why: Why


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a pruning would do."""

    going: list[Going] = field(default_factory=list)
    kept: list[tuple[Bundle, Kept]] = field(default_factory=list)
    """Beyond a limit, and kept all the same."""
    size: int = 0
    """Bytes of the database now."""
    loose_logs: int = 0
    """Log records of no trace that are to go."""
    before_ns: int | None = None

    @property
    def bundles(self) -> list[Bundle]:
        """What is to go."""
        return [one.bundle for one in self.going]

    @property
    def runs(self) -> int:
        """How many runs are to go."""
        return sum(len(one.bundle.listed) for one in self.going)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What a pruning did."""

    runs: int
    spans: int
    logs: int
    contents: int
    bytes: int
    """That the database has lost."""


class Retention:
    """What is kept in a store, and for how long.

    Args:
        path: the store's folder.
        wait_s: how many seconds to wait for another process that holds the store.
    """

    def __init__(self, path: Path, wait_s: float = WAIT_SECONDS) -> None:
        self.path = path
        self._database = Database(path, wait_s)

    # ---- holds ------------------------------------------------------------------------------------------------------

    def hold(self, *, run_id: str | None = None, session_id: str | None = None, reason: str) -> Hold:
        """Keeps a run or a session, with all that belongs to it, until :meth:`release`."""
        with self._database.writing() as connection, transaction(connection):
            return holds.place(connection, run_id=run_id, session_id=session_id, reason=reason)

    def release(self, hold_id: str, reason: str) -> bool:
        """Takes a hold off; whether there was one in force of that id."""
        with self._database.writing() as connection, transaction(connection):
            return holds.release(connection, hold_id, reason) > 0

    def holds(self, *, released: bool = False) -> list[Hold]:
        """The holds in force, or all that ever were."""
        with self._database.reading() as connection:
            return holds.find(connection, released=released)

    def pruned(self, prefix: str) -> list[tuple[str, int, str]]:
        """Runs that were here and whose id begins so: the id, when it was pruned (nanoseconds), and by whom; latest first."""
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT run_id, pruned_ns, pruned_by FROM pruned WHERE starts_with(run_id, $1) ORDER BY pruned_ns DESC, run_id", [prefix]
            ).fetchall()

    # ---- pruning ----------------------------------------------------------------------------------------------------

    def plan(self, limits: Limits) -> Plan:
        """What a pruning would do now. Journals have to be loaded and runs derived, else what is in them is not seen."""
        with self._database.reading() as connection:
            return self._plan(connection, limits)

    def archivable(self, limits: Limits) -> tuple[list[Bundle], int]:
        """What is beyond the limits, whether it is on hold or not; with no limit everything.

        The recorded command of a run comes with it: a replay needs its seeds. What somebody still writes to is left out; the number is how
        many runs that is.
        """
        with self._database.reading() as connection:
            if limits != Limits():
                plan = self._plan(connection, limits)
                found = [bundle for bundle in plan.bundles if not bundle.serves]
                found += [bundle for bundle, why in plan.kept if why == "on hold" and not bundle.serves]
                left = sum(len(bundle.listed) for bundle, why in plan.kept if why == "in use")
                return found + Commands(find_bundles(connection)).needed_by(found), left
            writing = _writing(connection, self.path)
            bundles = find_bundles(connection)
            found = [bundle for bundle in bundles if not _in_use(bundle, writing)]
            return found, sum(len(bundle.listed) for bundle in bundles) - sum(len(bundle.listed) for bundle in found)

    def rows(self, run_ids: Sequence[str]) -> list[RunRow]:
        """The derived rows of these runs."""
        with self._database.reading() as connection:
            return load_runs(connection, run_ids)

    def fingerprints(self, traces: Sequence[str]) -> dict[str, str]:
        """A value for each of these traces that is another one once anything of it changes, or comes to it."""
        with self._database.reading() as connection:
            return _fingerprints(connection, traces)

    def prune(self, limits: Limits, only: Mapping[str, str] | None = None) -> Pruned:
        """Deletes what is beyond the limits and writes the database anew without it.

        What is deleted is decided under the store's lock, after all journals are loaded: what has come since :meth:`plan` is looked at too.

        How large what is left will be is only estimated, so where it has turned out larger than asked for, some more goes.

        Args:
            limits: see :class:`Limits`.
            only: nothing but these traces, as long as they still have these fingerprints: those that were archived.

        Raises:
            StoreError: which kind says why. Where only the writing anew failed, what was to go is gone and its space is used again.
        """
        done = self._prune(limits, only)
        for _ in range(_AGAIN):
            if limits.max_bytes is None or done.runs == 0 or self._size() <= limits.max_bytes:
                break
            more = self._prune(limits, only)
            if more.runs == 0:
                break
            done = Pruned(**{name: getattr(done, name) + getattr(more, name) for name in Pruned.__dataclass_fields__})
        return done

    def _prune(self, limits: Limits, only: Mapping[str, str] | None) -> Pruned:
        before = self._size()
        with self._database.writing(much=True) as connection:
            clear(self.path)
            compact(connection, self.path)
            plan = self._plan(connection, limits, only)
            if not plan.going and not plan.loose_logs:
                return Pruned(runs=0, spans=0, logs=0, contents=0, bytes=0)
            with transaction(connection):
                spans, logs = self._delete(connection, plan)
                contents, _ = sweep(connection, self.path)
            connection.execute(f"SET memory_limit = '{_MEMORY}'")
            reclaim(connection, self.path)
        return Pruned(runs=plan.runs, spans=spans, logs=logs, contents=contents, bytes=before - self._size())

    def _size(self) -> int:
        path = self._database.path
        return path.stat().st_size if path.exists() else 0

    def _plan(self, connection: "Connection", limits: Limits, only: Mapping[str, str] | None = None) -> Plan:
        plan = Plan(size=self._size(), before_ns=limits.before_ns if not limits.sessions and only is None else None)
        bundles = find_bundles(connection, sizes=limits.max_bytes is not None)
        held = holds.find(connection)
        held_runs, held_sessions = {hold.run_id for hold in held}, {hold.session_id for hold in held}
        writing = _writing(connection, self.path)
        same = None if only is None else {trace for trace, mark in _fingerprints(connection, [*only]).items() if only[trace] == mark}

        def judge(one: Going) -> None:
            if any(run.run_id in held_runs for run in one.bundle.runs) or one.bundle.sessions & held_sessions:
                plan.kept.append((one.bundle, "on hold"))
            elif _in_use(one.bundle, writing):
                plan.kept.append((one.bundle, "in use"))
            elif same is None or same.issuperset(one.bundle.traces):
                plan.going.append(one)

        for one in _beyond(bundles, limits, plan.size):
            judge(one)
        self._with_their_commands(plan, Commands(bundles), judge)
        if plan.before_ns is not None:
            ((plan.loose_logs,),) = connection.execute(
                "SELECT count(*) FROM logs WHERE trace_id IS NULL AND time_ns < $1", [plan.before_ns]
            ).fetchall()
        return plan

    def _with_their_commands(self, plan: Plan, commands: Commands, judge: Callable[[Going], None]) -> None:
        """A recorded command stays as long as one of its runs does, which a replay needs it for; one without steps goes with the last."""
        why: dict[int, Why] = {id(one.bundle): one.why for one in plan.going}
        for bundle in commands.serving:
            served = commands.served(bundle)
            all_go = all(id(other) in why for other in served)
            if bundle.serves and all_go:
                judge(Going(bundle=bundle, why=why[id(served[0])]))
            elif id(bundle) in why and not all_go:
                plan.going = [one for one in plan.going if one.bundle is not bundle]
                plan.kept.append((bundle, "the command of a run that stays"))

    def _delete(self, connection: "Connection", plan: Plan) -> tuple[int, int]:
        now, by = time.time_ns(), whoami()
        told = [
            (run.run_id, run.session_id, run.agent, run.started_ns, one.bundle.spans, one.why, now, by)
            for one in plan.going
            for run in one.bundle.runs
        ]
        append(connection, "pruned", told, _PRUNED_COLUMNS)
        traces, runs = traces_of(plan.bundles), [run.run_id for run in runs_of(plan.bundles)]
        counted: Counter[str] = Counter()
        for table, column in connection.execute(_OF_A_RUN_OR_TRACE).fetchall():
            # Names of our own schema; spans belong to their trace, whatever run they name.
            if column == "run_id" and table in ("spans", "span_versions", "extents"):
                continue
            statement = f'DELETE FROM "{table}" WHERE "{column}" IN (SELECT unnest($1))'  # noqa: S608
            ((count,),) = connection.execute(statement, [traces if column == "trace_id" else runs]).fetchall()
            counted[table] += count
        if plan.loose_logs:
            connection.execute("DELETE FROM logs WHERE trace_id IS NULL AND time_ns < $1", [plan.before_ns]).fetchall()
        return counted["spans"], counted["logs"] + plan.loose_logs


def _beyond(bundles: Sequence[Bundle], limits: Limits, size: int) -> Iterator[Going]:
    """What is beyond a limit; the latest comes first."""
    whole = max(1, sum(bundle.size for bundle in bundles))
    limited = limits.before_ns is not None or limits.keep is not None or limits.max_bytes is not None
    runs = held = 0
    for bundle in bundles:
        if limits.sessions and not bundle.sessions & limits.sessions:
            continue
        runs_before = runs
        runs += len(bundle.listed)
        held += bundle.size
        if bundle.serves:  # it goes when all that it serves have gone
            continue
        if limits.before_ns is not None and bundle.last_ns < limits.before_ns:
            yield Going(bundle=bundle, why="age")
        elif limits.keep is not None and runs_before >= limits.keep:
            yield Going(bundle=bundle, why="count")
        elif limits.max_bytes is not None and held * size > limits.max_bytes * whole:
            yield Going(bundle=bundle, why="size")
        elif limits.sessions and not limited:
            yield Going(bundle=bundle, why="session")


def _fingerprints(connection: "Connection", traces: Sequence[str]) -> dict[str, str]:
    return dict(
        connection.execute(
            "SELECT trace_id, count(*) || ':' || bit_xor(hash(digest)) FROM ("
            " SELECT trace_id, digest FROM spans UNION ALL SELECT trace_id, digest || '*' FROM span_versions"
            " UNION ALL SELECT trace_id, digest FROM logs) WHERE trace_id IN (SELECT unnest($1)) GROUP BY trace_id",
            [list(traces)],
        ).fetchall()
    )


def _writing(connection: "Connection", folder: Path) -> set[str | None] | None:
    """Processes that may still add to what is in the store; ``None``: no process does."""
    names = [path.name for path in pending(folder)]
    if not names:
        return None
    return {
        process for (process,) in connection.execute("SELECT process FROM journals WHERE name IN (SELECT unnest($1))", [names]).fetchall()
    }


def _in_use(bundle: Bundle, writing: set[str | None] | None) -> bool:
    if writing is None:
        return False
    return bool(bundle.recording & writing) or bundle.last_ns > time.time_ns() - _SETTLING_NS
