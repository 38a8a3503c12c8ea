"""Who waits for a store waits for one step of whoever loads much into it, and not for all of them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import duckdb
import filelock
import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store import database, steps
from spanreplay.store.folder import DATABASE, LOCK
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store
from spanreplay.store.turns import Turn, let_in, waiting

JOURNALS = 4


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Nothing of it is loaded: a span in each of some journals."""
    store = Store.open(tmp_path / "store", create=True)
    for number in range(JOURNALS):
        write(store, number)
    return store


def write(store: Store, number: int) -> None:
    writer = JournalWriter(store.path, process=current_process())
    writer.write_span(SpanRecord(trace_id=f"{number + 1:032x}", span_id="1" * 16, name="a", start_ns=1, end_ns=2), "recorder")
    writer.close()


def count(store: Store) -> int:
    return int(next(store.query("SELECT count(*) FROM spans").rows)[0])


def between(monkeypatch: pytest.MonkeyPatch, does: Callable[[], object]) -> None:
    """Every batch is a step, and this is done between two of them."""
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(steps, "let_in", lambda *_: does())


def test_a_reader_comes_in_between_two_steps(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    impatient = Store.open(store.path, wait_s=0)
    between(monkeypatch, lambda: seen.append(count(impatient)))
    report = store.compact()
    assert seen == [*range(1, JOURNALS)]
    assert (report.new, report.journals, report.removed, report.left, count(store)) == (JOURNALS, JOURNALS, JOURNALS, [], JOURNALS)


def test_what_somebody_else_loads_between_two_steps_is_loaded_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        monkeypatch.undo()
        Store.open(store.path).compact()

    between(monkeypatch, load)
    report = store.compact()
    assert (report.new, report.refused, report.left, count(store)) == (1, [], [], JOURNALS)


def test_what_begins_later_is_left_to_whoever_comes_then(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    more = iter(range(JOURNALS, 100))
    between(monkeypatch, lambda: write(store, next(more)))
    assert store.compact().new == JOURNALS


def test_what_is_loaded_stays_where_the_time_is_up(store: Store) -> None:
    assert steps.load(store._database, store.path, until=0.0).new == 0
    assert steps.load(store._database, store.path).new == JOURNALS


@contextmanager
def written(store: Store) -> Iterator[None]:
    with duckdb.connect(str(store.path / DATABASE)):
        yield


def loads(store: Store) -> None:
    Store.open(store.path).compact()


def reads(store: Store) -> None:
    count(Store.open(store.path))


HOLDING: dict[str, tuple[Callable[[Store], AbstractContextManager[object]], Callable[[Store], None], Turn]] = {
    "a thread that writes": (lambda store: store._database.writing(), loads, "write"),
    "another process that writes": (lambda store: filelock.FileLock(store.path / LOCK), loads, "write"),
    "a file that is written": (written, reads, "read"),
}


@pytest.mark.parametrize("held", HOLDING)
def test_who_waits_says_so(store: Store, held: str) -> None:
    store.compact()
    write(store, JOURNALS)
    holding, does, turn = HOLDING[held]
    waits = threading.Thread(target=does, args=[store])
    assert let_in(store.path, turn, 0)
    with holding(store):
        waits.start()
        while let_in(store.path, turn, 0):
            assert waits.is_alive()
    waits.join()
    assert let_in(store.path, turn, 0)


def test_a_writer_lets_readers_in_once_he_has_the_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.compact()
    write(store, JOURNALS)
    seen: list[tuple[Turn, int]] = []

    def come_in(folder: Path, turn: Turn) -> None:
        lock = filelock.FileLock(folder / LOCK)
        with pytest.raises(filelock.Timeout):
            lock.acquire(timeout=0)
        with duckdb.connect(str(folder / DATABASE), read_only=True) as reader:
            seen.append((turn, reader.execute("SELECT count(*) FROM spans").fetchall()[0][0]))

    monkeypatch.setattr(database, "let_in", come_in)
    store.compact()
    assert seen == [("read", JOURNALS)]
    assert count(store) == JOURNALS + 1


def test_nobody_comes_again_before_those_who_wait(store: Store) -> None:
    with waiting(store.path, "read"), waiting(store.path, "read"):
        assert not let_in(store.path, "read", 0)
        assert let_in(store.path, "write", 0)
    assert let_in(store.path, "read", 0)


def test_a_folder_that_cannot_be_written_is_waited_for_all_the_same(tmp_path: Path) -> None:
    with waiting(tmp_path / "none", "read"):
        assert let_in(tmp_path / "none", "read", 0)
