"""When the spans of each trace begin: the table that keeps a look-up from reading all spans."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.semconv.attributes import RUN_ID
from spanreplay.spans.record import SpanRecord
from spanreplay.store import extents
from spanreplay.store.extents import stretches
from spanreplay.store.store import Store


def span(trace: int, number: int, start_ns: int, **attributes: str) -> SpanRecord:
    return SpanRecord(
        trace_id=f"{trace:032x}", span_id=f"{number:016x}", name="a", start_ns=start_ns, end_ns=start_ns + 1, attributes=attributes
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def rows(store: Store) -> list[tuple[Any, ...]]:
    return list(store.query("SELECT right(trace_id, 1), run_id, first_ns, last_ns FROM extents ORDER BY ALL").rows)


def test_a_trace_that_goes_on_has_one_row_for_each_run_that_it_names(store: Store) -> None:
    store.add([span(1, 1, 50), span(1, 2, 70), span(2, 3, 90)], origin="import")
    store.add([span(1, 4, 60)], origin="import")
    assert rows(store) == [("1", None, 50, 70), ("2", None, 90, 90)]
    store.add([span(1, 5, 10), span(1, 6, 80), span(1, 7, 20, **{RUN_ID: "r"})], origin="import")
    assert rows(store) == [("1", "r", 20, 20), ("1", None, 10, 80), ("2", None, 90, 90)]


def test_another_version_that_began_at_another_time_is_found(store: Store) -> None:
    store.add([span(1, 1, 50, a="b")], origin="import")
    store.add([span(1, 1, 900)], origin="import")
    assert [one.start_ns for one in store.traces([f"{1:032x}"])] == [50]
    assert store.add([span(1, 1, 900)], origin="import").same == 1
    assert store.add([span(1, 1, 50, a="b")], origin="import").same == 1


def test_runs_across_traces_are_connected(store: Store) -> None:
    store.add([span(1, 1, 1, **{RUN_ID: "r"}), span(2, 2, 10**15, **{RUN_ID: "r"}), span(3, 3, 5)], origin="import")
    one, two, three = (f"{number:032x}" for number in (1, 2, 3))
    assert store.connected([one]) == [(one, two)]
    assert store.connected([three]) == [(three,)]
    assert store.traces_of("r") == [one, two]


class Rows:
    """A connection that has these rows."""

    def __init__(self, found: list[tuple[Any, ...]]) -> None:
        self.found = found

    def execute(self, *_: object) -> "Rows":
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.found


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1000), st.integers(0, 50)), max_size=40))
def test_every_trace_lies_in_one_of_a_few_stretches(given_rows: list[tuple[int, int, int]]) -> None:
    found = [(f"{trace}", first, first + more) for trace, first, more in given_rows]
    made = stretches(Rows(found), {row[0] for row in found})  # type: ignore[arg-type]
    assert len(made) <= extents._MOST
    assert sorted(trace for one in made for trace in one.traces) == sorted({row[0] for row in found})
    for trace, first, last in found:
        (stretch,) = (one for one in made if trace in one.traces)
        assert stretch.first_ns <= first <= last <= stretch.last_ns
    assert all(after.first_ns > before.last_ns for before, after in pairwise(made))
