"""What was dropped on a disk that is still full when its process ends is counted all the same, and once."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fixtures.runs.spans import own_root
from spanreplay.replay.rebuilding.runs import index
from spanreplay.semconv import attributes as a
from spanreplay.store import compaction
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.spare_line import LENGTH, noted_in, spare_line
from spanreplay.store.store import Store


@contextmanager
def full(journal: Path) -> Iterator[None]:
    """No file may become longer than this one is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def writer(store: Store) -> JournalWriter:
    """With the whole run of an agent written."""
    made = JournalWriter(store.path, process=current_process())
    made.write_span(own_root(1, attributes={a.PROCESS_ID: made.process.process_id}), "recorder")
    return made


def journal(store: Store) -> Path:
    (path,) = compaction.pending(store.path)
    return path


def lose(writer: JournalWriter, times: int) -> None:
    for number in range(times):
        writer.write_span(own_root(number + 2, attributes={"long": "x" * 100}), "recorder")


def lost(store: Store, writer: JournalWriter) -> int:
    return store.losses([writer.process.process_id]).get(writer.process.process_id, 0)


@pytest.mark.parametrize("loaded_before", [True, False])
def test_what_was_dropped_until_the_end_is_counted_once(loaded_before: bool, store: Store, writer: JournalWriter) -> None:
    if loaded_before:
        store.compact()
        index(store)
        assert [run.grade for run in store.find_runs()] != ["incomplete"]
    with full(journal(store)):
        lose(writer, 7)
        writer.close()
    assert store.compact().dropped == writer.dropped == lost(store, writer) == 7
    store.compact()
    index(store)
    assert lost(store, writer) == 7
    assert [(run.grade, run.dropped) for run in store.find_runs()] == [("incomplete", 7)]


def test_it_is_counted_where_the_process_was_killed(store: Store, writer: JournalWriter) -> None:
    with full(journal(store)):
        lose(writer, 3)
        writer._file.close()  # what is left of a killed process: nobody holds the file
    assert store.compact().dropped == 3


def test_what_could_be_told_is_not_counted_again(store: Store, writer: JournalWriter) -> None:
    with full(journal(store)):
        lose(writer, 3)
    lose(writer, 1)
    with full(journal(store)):
        lose(writer, 2)
        writer.close()
    lose(writer, 1)
    writer.close()
    assert store.compact().dropped == writer.dropped == lost(store, writer) == 5


def test_whoever_was_killed_before_it_removed_the_file_has_counted_it(store: Store, writer: JournalWriter) -> None:
    with full(journal(store)):
        lose(writer, 4)
        writer.close()
    path = journal(store)
    kept = path.read_bytes()
    store.compact()
    path.write_bytes(kept)
    assert store.compact().dropped == 0
    assert (lost(store, writer), path.exists()) == (4, False)


def test_the_line() -> None:
    assert {len(spare_line(number)) for number in (0, 7, 10**14)} == {LENGTH}
    assert [noted_in(b"first\n" + line) for line in (spare_line(7), spare_line(7)[:-3], b"", b"junk\n")] == [7, 0, 0, 0]
