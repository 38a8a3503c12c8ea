"""Runs derived while records are imported are those that the store gives when it is read."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings.reading import recordings, spans_file
from span_strategies import logs, spans
from spanreplay.replay.importing import import_records
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs, derive, index
from spanreplay.semconv.attributes import RUN_ID
from spanreplay.spans.record import EventRecord, Record, SpanRecord
from spanreplay.store import compaction, whole
from spanreplay.store.importing import Gained
from spanreplay.store.store import Store
from support.agent_traces import batches
from support.size import FULL

TABLES = ("runs", "run_traces", "steps")


def tables(store: Store) -> dict[str, list[Any]]:
    """Everything derived that the store has, in some order of its own."""
    return {table: sorted(store.query(f"FROM {table}").rows, key=repr) for table in TABLES}


def rederived(store: Store) -> dict[str, list[Any]]:
    """The same, derived anew from what the store has of the spans."""
    with store._database.writing() as connection:
        connection.execute("DELETE FROM stale").fetchall()
        connection.execute("INSERT INTO stale SELECT trace_id, 0 FROM spans UNION SELECT trace_id, 0 FROM logs").fetchall()
        for table in TABLES:
            connection.execute(f"DELETE FROM {table}").fetchall()
    index(store)
    return tables(store)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records the runs of ended traces were derived from, at each time."""
    seen: list[int] = []
    ended = whole.WholeTraces.ended

    def counting(self: whole.WholeTraces, *, everything: bool) -> Iterator[dict[str, list[Gained]]]:
        for found in ended(self, everything=everything):
            seen.append(sum(map(len, found.values())))
            yield found

    monkeypatch.setattr(whole.WholeTraces, "ended", counting)
    return seen


def agents(count: int = 3) -> list[SpanRecord]:
    return [span for batch in batches(count, seed=3) for span in batch]


def test_runs_are_derived_from_what_is_at_hand(store: Store, derived: list[int]) -> None:
    records = agents()
    assert import_records(store, records).new == len(records)
    assert sum(derived) == len(records)
    assert store.stale_traces() == []
    found = tables(store)
    assert found == rederived(store)
    rows, steps = derive(records)
    assert {row[0] for row in found["runs"]} == {row.run_id for row in rows} == {run.run_id for run in build_runs(records)}
    assert len(found["steps"]) == len(steps)
    assert import_records(store, records).same == len(records)
    assert tables(store) == found


def test_recordings(store: Store) -> None:
    import_records(store, chain.from_iterable(open_source(str(spans_file(folder))).records for folder in recordings()))
    found = tables(store)
    assert len(found["runs"]) >= len(list(recordings()))
    assert found == rederived(store)


@pytest.mark.parametrize("seed", range(20 if FULL else 2))
def test_in_whatever_pieces_and_with_whatever_writers_between(
    seed: int, store: Store, derived: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(compaction, "BATCH_RECORDS", 70)
    monkeypatch.setattr(whole, "HELD_BYTES", chance.choice([0, 60_000, 48_000_000]))
    records = agents(2)
    for _ in range(60):  # stragglers, repetitions, other content, spans of a run that names itself
        place, one = chance.randrange(len(records)), chance.choice(records)
        change: dict[str, Any] = chance.choice(
            [
                {},
                {"events": (EventRecord(name="e", time_ns=1),)},
                {"attributes": {**one.attributes, "é": 1}},
                {"span_id": f"{chance.getrandbits(64):016x}", "attributes": {RUN_ID: "named"}},
            ]
        )
        records.insert(place, replace(one, **change))
    if chance.random() < 0.5:
        chance.shuffle(records)
    other = Store.open(store.path)

    def interrupted() -> Iterator[Record]:
        for number, record in enumerate(records):
            if number == 200:
                other.add([replace(chance.choice(records), name="written meanwhile")], origin="receiver")
            yield record

    import_records(store, interrupted())
    found = tables(store)
    assert found == rederived(store)
    import_records(store, records)
    assert tables(store) == found


def test_an_error_in_deriving_costs_no_record(store: Store) -> None:
    def failing(records: Sequence[Record]) -> Any:
        raise ZeroDivisionError

    records = agents(1)
    assert store.add(records, origin="import", derive=failing).new == len(records)
    assert len(store.stale_traces()) == len({record.trace_id for record in records})
    index(store)
    assert tables(store) == rederived(store)


@settings(max_examples=300 if FULL else 5, deadline=None)
@given(st.lists(spans() | logs(), max_size=5), st.booleans())
def test_records_of_every_kind(tmp_path_factory: pytest.TempPathFactory, records: list[Any], one_trace: bool) -> None:
    if one_trace:
        records = [replace(record, trace_id="ab" * 16) for record in records]
    store = Store.open(tmp_path_factory.mktemp("s") / "store", create=True)
    import_records(store, records)
    assert tables(store) == rederived(store)
