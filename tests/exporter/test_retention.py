"""How long runs are kept: by age, number, size and session; what is on hold or in use stays; nothing that is left loses content."""

import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from exporter.test_migrations import make_old_store
from spanreplay.replay.rebuilding.runs import index
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, Resource, SpanRecord
from spanreplay.store import reclaiming
from spanreplay.store.errors import FullStoreError, StoreError
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.retention import Limits, Pruned, Retention
from spanreplay.store.store import Store

DAY = 86_400 * 10**9
NOW = time.time_ns()
SHARED = "You are a helpful agent. " * 400
RESOURCE = Resource(attributes={"service.name": "shop", "long": "r" * 5000})


def trace(number: int) -> str:
    return f"{number:032x}"


def run_of(number: int, *, days: int, session: str | None = None, own: str = "") -> list[SpanRecord]:
    start = NOW - days * DAY
    named = {"gen_ai.conversation.id": session} if session else {}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", **named}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.system_instructions": SHARED,
        "own": own or f"{number}-" * 3000,
    }
    common: dict[str, Any] = {"trace_id": trace(number), "resource": RESOURCE}
    ids = [f"{n:016x}" for n in (1, 2)]
    return [
        SpanRecord(**common, span_id=ids[0], name="agent", start_ns=start, end_ns=start + 10, attributes=agent),
        SpanRecord(**common, span_id=ids[1], parent_span_id=ids[0], name="chat", start_ns=start + 1, end_ns=start + 5, attributes=chat),
    ]


def filled(folder: Path, *runs: Sequence[SpanRecord], logs: Sequence[LogRecord] = ()) -> tuple[Store, Retention]:
    store = Store.open(folder, create=True)
    store.add([*(span for run in runs for span in run), *logs], origin="import")
    index(store)
    return store, Retention(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten runs, one a day, in two sessions; a log record of each, and one of none."""
    folder = tmp_path_factory.mktemp("retention") / "store"
    logs = [LogRecord(time_ns=NOW - days * DAY, trace_id=trace(days), body="x" * 5000) for days in range(1, 11)]
    logs.append(LogRecord(time_ns=NOW - 9 * DAY, body="of no trace"))
    filled(folder, *(run_of(days, days=days, session=("even", "odd")[days % 2]) for days in range(1, 11)), logs=logs)
    return folder


@pytest.fixture
def ten(made: Path, tmp_path: Path) -> tuple[Store, Retention]:
    shutil.copytree(made, tmp_path / "store")
    return Store.open(tmp_path / "store"), Retention(tmp_path / "store")


def left(store: Store) -> list[int]:
    """The runs that are there, whole and readable, and nothing of others."""
    ((spans, traces, runs, *others),) = store.query(
        "SELECT (SELECT list(DISTINCT trace_id) FROM spans), (SELECT list(trace_id) FROM run_traces), (SELECT list(run_id) FROM runs),"
        " (SELECT list(DISTINCT run_id) FROM steps), (SELECT list(DISTINCT trace_id) FROM logs WHERE trace_id IS NOT NULL),"
        " (SELECT list(DISTINCT run_id) FROM history)"
    ).rows
    found = sorted(int(name, 16) for name in spans or ())
    assert sorted(int(name, 16) for name in traces or ()) == sorted(int(name, 16) for name in runs or ()) == found
    assert all({int(name, 16) for name in names or ()} <= {*found} for names in others)
    assert list(store.traces([trace(number) for number in found])) == [span for number in found for span in expected(number)]
    return found


def expected(number: int) -> list[SpanRecord]:
    return run_of(number, days=number, session=("even", "odd")[number % 2])


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (Limits(before_ns=NOW - 4 * DAY - DAY // 2), [1, 2, 3, 4]),
        (Limits(keep=3), [1, 2, 3]),
        (Limits(sessions=frozenset({"odd"})), [2, 4, 6, 8, 10]),
        (Limits(sessions=frozenset({"odd"}), keep=2), [1, 2, 3, 4, 6, 8, 10]),
        (Limits(before_ns=NOW - 8 * DAY - DAY // 2, keep=7), [1, 2, 3, 4, 5, 6, 7]),
        (Limits(keep=0), []),
    ],
    ids=["age", "count", "session", "count in a session", "age and count", "everything"],
)
def test_what_is_beyond_a_limit_goes_and_the_rest_is_whole(limits: Limits, stay: list[int], ten: tuple[Store, Retention]) -> None:
    store, retention = ten
    going = {int(name, 16) for bundle in retention.plan(limits).bundles for name in bundle.traces}
    assert going == set(range(1, 11)) - set(stay)
    done = retention.prune(limits)
    assert (done.runs, done.spans) == (len(going), 2 * len(going))
    assert left(store) == stay
    told = store.query("SELECT run_id FROM pruned WHERE pruned_by <> '' ORDER BY run_id").rows
    assert [int(str(run), 16) for (run,) in told] == sorted(going)


def test_logs_of_no_trace_go_by_age(ten: tuple[Store, Retention]) -> None:
    store, retention = ten
    assert retention.plan(Limits(before_ns=NOW - 8 * DAY)).loose_logs == 1
    retention.prune(Limits(before_ns=NOW - 8 * DAY))
    assert list(store.query("SELECT count(*) FROM logs WHERE trace_id IS NULL").rows) == [(0,)]


def test_content_goes_with_its_last_user_and_space_comes_back(tmp_path: Path) -> None:
    noise = random.Random(1)
    runs = [run_of(days, days=days, own=noise.randbytes(200_000).hex()) for days in range(1, 11)]
    store, retention = filled(tmp_path / "store", *runs)
    before = store.path.joinpath("runs.duckdb").stat().st_size
    done = retention.prune(Limits(keep=1))
    after = store.path.joinpath("runs.duckdb").stat().st_size
    assert done.bytes == before - after
    assert after < before / 2
    assert done.contents >= 9
    assert list(store.traces([trace(1)])) == runs[0], "what it shared with those that went is still there"
    assert not list(store.path.glob("*.fresh*"))
    assert list(store.query("SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND table_name <> 'migrations'").rows) == []
    store.add(runs[5], origin="import")
    assert list(store.traces([trace(6)])) == runs[5], "what has gone can come again"


def test_the_oldest_go_until_it_is_small_enough(tmp_path: Path) -> None:
    noise = random.Random(2)
    store, retention = filled(tmp_path / "store", *(run_of(days, days=days, own=noise.randbytes(300_000).hex()) for days in range(1, 11)))
    size = retention.plan(Limits()).size
    going = retention.plan(Limits(max_bytes=size // 2)).bundles
    assert 4 <= len(going) <= 6
    assert {int(bundle.traces[0], 16) for bundle in going} == set(range(11 - len(going), 11))
    assert retention.plan(Limits(max_bytes=size)).bundles == []
    assert len(list(store.query("SELECT * FROM runs").rows)) == 10
    retention.prune(Limits(max_bytes=size * 3 // 4))
    assert 0 < len(store.find_runs()) < 10
    assert retention.plan(Limits()).size <= size * 3 // 4
    assert len(store.find_runs()) >= 4


def test_what_is_on_hold_stays_until_it_is_released(ten: tuple[Store, Retention]) -> None:
    store, retention = ten
    run = retention.hold(run_id=trace(10), reason="case 17")
    session = retention.hold(session_id="odd", reason="case 18")
    plan = retention.plan(Limits(keep=0))
    assert {int(bundle.traces[0], 16) for bundle in plan.bundles} == {2, 4, 6, 8}
    assert {why for _, why in plan.kept} == {"on hold"}
    retention.prune(Limits(keep=0))
    assert left(store) == [1, 3, 5, 7, 9, 10]
    assert [hold.reason for hold in retention.holds()] == ["case 17", "case 18"]
    assert retention.release(run.hold_id, "case 17 is closed")
    assert not retention.release(run.hold_id, "again")
    assert not retention.release("unknown", "x")
    retention.prune(Limits(keep=0))
    assert left(store) == [1, 3, 5, 7, 9]
    assert [hold.hold_id for hold in retention.holds()] == [session.hold_id]
    ended = retention.holds(released=True)[0]
    assert (ended.release_reason, ended.released_by, (ended.released_ns or 0) >= ended.placed_ns) == (
        "case 17 is closed",
        ended.placed_by,
        True,
    )


def test_what_a_process_still_writes_stays(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    _, retention = filled(folder, run_of(1, days=1))
    writer = JournalWriter(folder, process=current_process())
    long = "said before " * 1000
    old = NOW - 20 * DAY
    writer.open_span(SpanRecord(trace_id=trace(50), span_id=f"{1:016x}", start_ns=old, attributes={"long": long}))
    done = SpanRecord(trace_id=trace(51), span_id=f"{1:016x}", start_ns=old, end_ns=old + 1, attributes={"long": long})
    writer.write_span(done, "recorder")
    store = Store.open(folder)
    store.compact()
    index(store)
    kept = {bundle.traces[0]: why for bundle, why in retention.plan(Limits(keep=0)).kept}
    assert kept == {trace(50): "in use"}
    assert retention.archivable(Limits(keep=0))[1] == 1
    assert retention.archivable(Limits())[1] == 1
    assert {bundle.traces[0] for bundle in retention.plan(Limits(keep=0)).bundles} == {trace(1), trace(51)}
    retention.prune(Limits(keep=0))
    writer.close_span(trace(50), f"{1:016x}", end_ns=old + 9, status=0, status_message="", attributes={"again": long})
    writer.write_span(
        SpanRecord(trace_id=trace(52), span_id=f"{1:016x}", start_ns=old, end_ns=old + 1, attributes={"long": long}), "recorder"
    )
    writer.close()
    store.compact()
    index(store)
    assert [span.attributes["long"] for number in (50, 52) for span in store.traces([trace(number)])] == [long, long]
    assert retention.plan(Limits(keep=0)).kept == []
    retention.prune(Limits(keep=0))
    assert list(store.query("SELECT count(*) FROM spans UNION ALL SELECT count(*) FROM blobs").rows) == [(0,), (0,)]


def test_what_has_just_happened_stays_while_somebody_writes(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    _, retention = filled(folder, run_of(1, days=0))
    assert len(retention.plan(Limits(keep=0)).bundles) == 1
    writer = JournalWriter(folder, process=current_process())
    writer.write_log(LogRecord(time_ns=5, body="x"))
    assert retention.plan(Limits(keep=0)).bundles == []
    writer.close()


def test_runs_that_share_a_trace_go_together_or_stay(tmp_path: Path) -> None:
    from spanreplay.semconv.attributes import RUN_ID

    def span(number: int, run: str, days: int) -> SpanRecord:
        at = NOW - days * DAY
        attributes = {RUN_ID: run, "gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        return SpanRecord(trace_id=trace(number), span_id=f"{days + 1:016x}", start_ns=at, end_ns=at + 1, attributes=attributes)

    a, b = "a" * 32, "b" * 32
    _, retention = filled(tmp_path / "store", [span(1, a, 30), span(2, a, 20)], [span(2, b, 1), span(3, b, 15)], [span(4, "c" * 32, 15)])
    assert [bundle.traces for bundle in retention.plan(Limits(before_ns=NOW - 10 * DAY)).bundles] == [[trace(4)]]
    retention.hold(run_id=a, reason="x")
    assert retention.plan(Limits(keep=0)).kept[0][0].traces == [trace(1), trace(2), trace(3)]


def test_only_what_was_named_goes(ten: tuple[Store, Retention]) -> None:
    store, retention = ten
    marks = retention.fingerprints([trace(3), trace(4), trace(5)])
    store.add([LogRecord(time_ns=NOW, trace_id=trace(5), body="has come since")], origin="import")
    index(store)
    assert retention.prune(Limits(keep=0), only=marks).runs == 2
    assert left(store) == [1, 2, 5, 6, 7, 8, 9, 10]
    assert retention.prune(Limits(keep=8)) == Pruned(runs=0, spans=0, logs=0, contents=0, bytes=0)


def test_where_there_is_no_room_for_the_new_file_the_old_one_stays(ten: tuple[Store, Retention], monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    store, retention = ten

    def full(_: Path) -> None:
        raise duckdb.IOException("No space left on device")

    monkeypatch.setattr(reclaiming, "_check_log", full)
    with pytest.raises(FullStoreError):
        retention.prune(Limits(keep=4))
    assert left(store) == [1, 2, 3, 4]
    assert not list(store.path.glob("*.fresh*"))


def test_a_log_that_still_holds_something_is_never_left_to_the_new_file(ten: tuple[Store, Retention], tmp_path: Path) -> None:
    log = tmp_path / "runs.duckdb.wal"
    log.write_bytes(b"x")
    with pytest.raises(StoreError, match="not empty"):
        reclaiming._check_log(log)
    store, _ = ten
    assert left(store) == list(range(1, 11))


@pytest.mark.parametrize("version", [1, 5])
def test_a_store_of_an_earlier_version_is_pruned(version: int, tmp_path: Path) -> None:
    store = make_old_store(tmp_path / "store", version)
    retention = Retention(store.path)
    assert [bundle.traces for bundle in retention.plan(Limits(before_ns=NOW)).bundles] == [["t"]]
    assert retention.prune(Limits(before_ns=NOW)).runs == 1
    assert store.run_ids("") == []


def test_readers_see_all_or_nothing_of_it(ten: tuple[Store, Retention]) -> None:
    import threading

    store, retention = ten
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            ((spans, runs),) = store.query("SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM runs)").rows
            assert int(str(spans)) == 2 * int(str(runs))
            seen.append(int(str(runs)))

    reader = threading.Thread(target=look)
    reader.start()
    retention.prune(Limits(keep=6))
    done.set()
    reader.join()
    assert set(seen) <= {10, 6}


def of_command(
    number: int, *, days: float, command: int, session: str | None = None, steps: int = 0, itself: bool = False
) -> list[SpanRecord]:
    """A run of a recorded command, or the command itself, in a trace of its own."""
    at = NOW - int(days * DAY)
    named = {"gen_ai.conversation.id": session} if session else {}
    of: dict[str, Any] = {a.RUN_ID: trace(number), a.RUN_COMMAND_ID: trace(command), a.RUN_ROOT: True, **named}
    itself_too: dict[str, Any] = {a.RUN_COMMAND: True, a.RUN_SEED: "17"} if itself else {}
    common: dict[str, Any] = {"trace_id": trace(number), "end_ns": at + 9}
    root = SpanRecord(
        **common, span_id=f"{1:016x}", name="r", start_ns=at, attributes={**of, **itself_too, a.STEP_KIND: "agent", a.STEP_OUTCOME: "ok"}
    )
    tool: dict[str, Any] = {
        a.RUN_ID: trace(number),
        a.RUN_COMMAND_ID: trace(command),
        a.STEP_KIND: "tool_call",
        a.STEP_NAME: "t",
        a.STEP_OUTCOME: "ok",
    }
    return [
        root,
        *(
            SpanRecord(**common, span_id=f"{n + 2:016x}", parent_span_id=root.span_id, name="t", start_ns=at + n, attributes=tool)
            for n in range(steps)
        ),
    ]


def of_commands(folder: Path, *, steps: int = 0) -> tuple[Store, Retention]:
    """Three recorded commands, 1 to 3, the newest first; the runs 11 and 21, 12 and 22, 13 and 23 are theirs, each in a session."""
    commands = [of_command(n, days=n, command=n, itself=True, steps=steps) for n in (1, 2, 3)]
    agents = [of_command(n + 10 * k, days=n - k / 10, command=n, session=f"s{n}{k}", steps=1) for n in (1, 2, 3) for k in (1, 2)]
    return filled(folder, *commands, *agents)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with those; not to be changed."""
    return of_commands(tmp_path_factory.mktemp("commands") / "store")[0].path


def traces_in(store: Store) -> list[int]:
    return sorted(int(str(name), 16) for (name,) in store.query("SELECT DISTINCT trace_id FROM spans").rows)


@pytest.mark.parametrize(
    ("limits", "stay", "pruned"),
    [
        (Limits(keep=2), [1, 11, 21], 4),
        (Limits(keep=3), [1, 2, 11, 21, 22], 3),
        (Limits(sessions=frozenset({"s11"})), [1, 2, 3, 12, 13, 21, 22, 23], 1),
        (Limits(sessions=frozenset({"s11", "s12"})), [2, 3, 12, 13, 22, 23], 2),
        (Limits(before_ns=NOW - 2 * DAY), [1, 2, 11, 12, 21, 22], 2),
        (Limits(keep=0), [], 6),
    ],
    ids=["count", "count within a command", "one of two", "both", "age", "everything"],
)
def test_a_command_is_no_run_and_goes_with_the_last_of_its_runs(limits: Limits, stay: list[int], pruned: int, commands: Path) -> None:
    plan = Retention(commands).plan(limits)
    assert plan.runs == pruned
    everything = {1, 2, 3, 11, 12, 13, 21, 22, 23}
    assert everything - {int(name, 16) for bundle in plan.bundles for name in bundle.traces} == {*stay}


def test_what_is_held_or_archived_has_its_command(commands: Path, tmp_path: Path) -> None:
    shutil.copytree(commands, tmp_path / "store")
    store, retention = Store.open(tmp_path / "store"), Retention(tmp_path / "store")
    of_session, _ = retention.archivable(Limits(sessions=frozenset({"s12"})))
    assert sorted(name for bundle in of_session for name in bundle.traces) == [trace(1), trace(21)]
    retention.hold(run_id=trace(12), reason="x")
    retention.hold(session_id="s31", reason="x")
    assert sum(len(bundle.traces) for bundle in retention.archivable(Limits(keep=0))[0]) == 9
    assert retention.prune(Limits(keep=0)).runs == 4
    assert traces_in(store) == [2, 3, 12, 13]
    assert len(store.find_runs()) == 2


def test_a_command_with_steps_is_a_run_and_stays_as_long_as_one_of_its_runs(tmp_path: Path) -> None:
    store, retention = of_commands(tmp_path / "store", steps=1)
    retention.hold(run_id=trace(12), reason="x")
    plan = retention.plan(Limits(keep=0))
    assert plan.runs == 7
    assert {bundle.traces[0]: why for bundle, why in plan.kept} == {trace(12): "on hold", trace(2): "the command of a run that stays"}
    retention.prune(Limits(keep=0))
    assert traces_in(store) == [2, 12]
