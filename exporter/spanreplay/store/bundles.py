"""What is kept or deleted together: runs that share a trace, directly or through others, with all their traces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from spanreplay.store.derived import sizes as held_by

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledRun:
    """A run, as far as it matters here."""

    run_id: str
    session_id: str | None
    agent: str | None
    started_ns: int
    command_id: str | None = None
    is_command: bool = False
    """It is the recorded command itself."""
    bare: bool = False
    """A recorded command without a step of its own, whose agents are runs of their own: nobody counts it as a run."""


@dataclass(slots=True, kw_only=True)
class Bundle:
    """Runs and traces that belong together."""

    runs: list[BundledRun] = field(default_factory=list)
    """Without one, where spans or logs are of no run."""
    traces: list[str] = field(default_factory=list)
    first_ns: int = 0
    last_ns: int = 0
    """When something of it happened last."""
    spans: int = 0
    size: int = 0
    """About how many bytes it has before they are compressed, what it shares with others included; 0 unless it was asked for."""
    recording: set[str] = field(default_factory=set)
    """Processes that have begun a span of it and not ended it."""

    @property
    def sessions(self) -> set[str]:
        """The sessions that it has runs of."""
        return {run.session_id for run in self.runs if run.session_id is not None}

    @property
    def listed(self) -> list[BundledRun]:
        """Its runs, as ``spanreplay runs`` lists them."""
        return [run for run in self.runs if not run.bare]

    @property
    def commands(self) -> set[str]:
        """The recorded commands that its runs are of."""
        return {run.command_id for run in self.runs if run.command_id is not None}

    @property
    def own_commands(self) -> set[str]:
        """The recorded commands that it has: their seeds, arguments and exit codes, which their other runs need."""
        return {run.command_id for run in self.runs if run.command_id is not None and run.is_command}

    @property
    def serves(self) -> bool:
        """It is nothing but recorded commands that others have the runs of."""
        return bool(self.runs) and not self.listed


_RUNS: Final = """
    SELECT run_id, session_id, agent, coalesce(started_ns, 0), command_id, coalesce(is_command, false),
        is_command AND n_steps = 0 AND command_id IN (SELECT command_id FROM runs WHERE NOT is_command OR n_steps > 0)
    FROM runs
"""
_TRACES: Final = """
    SELECT trace_id, min(first_ns), max(last_ns), CAST(sum(spans) AS BIGINT), CAST(sum(bytes) AS BIGINT),
        list(DISTINCT process) FILTER (process IS NOT NULL)
    FROM (
        SELECT trace_id, start_ns AS first_ns, greatest(start_ns, coalesce(end_ns, start_ns)) AS last_ns, 1 AS spans,
            CASE WHEN $1 THEN 200 ELSE 0 END AS bytes,
            CASE WHEN started AND end_ns IS NULL THEN process END AS process
        FROM spans
        UNION ALL
        SELECT trace_id, time_ns, time_ns, 0, CASE WHEN $1 THEN 100 + strlen(record) ELSE 0 END, NULL FROM logs WHERE trace_id IS NOT NULL)
    GROUP BY trace_id ORDER BY trace_id
"""


def find_bundles(connection: "Connection", *, sizes: bool = False) -> list[Bundle]:
    """Everything in the store, the latest first.

    Args:
        connection: may read.
        sizes: how large each is, too, which takes reading the attributes of all spans and log records.
    """
    joined = _Joined()
    for run_id, trace_id in connection.execute("SELECT run_id, trace_id FROM run_traces").fetchall():
        joined.join(("run", run_id), ("trace", trace_id))
    found: dict[_Name, Bundle] = {}
    for run_id, session_id, agent, started_ns, command_id, is_command, bare in connection.execute(_RUNS).fetchall():
        bundle = found.setdefault(joined.root(("run", run_id)), Bundle())
        made = BundledRun(
            run_id=run_id,
            session_id=session_id,
            agent=agent,
            started_ns=started_ns,
            command_id=command_id,
            is_command=is_command,
            bare=bool(bare),
        )
        bundle.runs.append(made)
        bundle.last_ns = max(bundle.last_ns, started_ns)
    for trace_id, first_ns, last_ns, spans, size, processes in connection.execute(_TRACES, [sizes]).fetchall():
        bundle = found.setdefault(joined.root(("trace", trace_id)), Bundle())
        bundle.traces.append(trace_id)
        bundle.first_ns = min(bundle.first_ns or first_ns or 0, first_ns or 0)
        bundle.last_ns = max(bundle.last_ns, last_ns or 0)
        bundle.spans += spans
        bundle.size += size
        bundle.recording.update(processes or ())
    held = held_by(connection, traces_of(found.values())) if sizes else {}
    for bundle in found.values():
        bundle.size += sum(held.get(trace_id, 0) for trace_id in bundle.traces)
    return sorted(found.values(), key=lambda bundle: (-bundle.last_ns, min(bundle.traces, default="")))


class _Joined:
    """Disjoint sets of names."""

    def __init__(self) -> None:
        self._above: dict[_Name, _Name] = {}

    def root(self, name: _Name) -> _Name:
        place = name
        while (above := self._above.get(place, place)) != place:
            self._above[place] = self._above.get(above, above)
            place = above
        return place

    def join(self, one: _Name, other: _Name) -> None:
        first, second = self.root(one), self.root(other)
        if first != second:
            self._above[second] = first


class Commands:
    """Which of all bundles have the recorded commands of others, and which others these are.

    Args:
        bundles: everything in the store.
    """

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self.serving = [bundle for bundle in bundles if bundle.own_commands]
        wanted = {command for bundle in self.serving for command in bundle.own_commands}
        self._served: dict[str, list[Bundle]] = {}
        for bundle in bundles:
            if not bundle.serves:
                for command in bundle.commands & wanted:
                    self._served.setdefault(command, []).append(bundle)

    def served(self, serving: Bundle) -> list[Bundle]:
        """The other bundles with runs of its recorded commands, the latest first."""
        found = (bundle for command in sorted(serving.own_commands) for bundle in self._served.get(command, ()))
        return [bundle for bundle in found if bundle is not serving]

    def needed_by(self, bundles: Sequence[Bundle]) -> list[Bundle]:
        """What these need beside themselves, named by their traces: the bundles may have been found another time."""
        wanted = {command for bundle in bundles for command in bundle.commands}
        known = {trace for bundle in bundles for trace in bundle.traces}
        return [bundle for bundle in self.serving if bundle.own_commands & wanted and known.isdisjoint(bundle.traces)]


def traces_of(bundles: Iterable[Bundle]) -> list[str]:
    """Ids of all their traces."""
    return [trace_id for bundle in bundles for trace_id in bundle.traces]


def runs_of(bundles: Iterable[Bundle]) -> Sequence[BundledRun]:
    """All their runs."""
    return [run for bundle in bundles for run in bundle.runs]
