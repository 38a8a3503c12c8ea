"""What is read of rows is what was written, however it is spelled there and wherever it lies; anything else is damage."""

import json
from pathlib import Path

import duckdb
import pytest

from spanreplay.spans.record import SpanRecord, Value
from spanreplay.store.errors import DamagedStoreError
from spanreplay.store.store import Store

TRACE = "a" * 32
ATTRIBUTES: dict[str, Value] = {"z": 'a,"b', "a": 1, "list": ["x", 'y,"z'], "nested": {"b": 1, "a": {"c": 2}}, "real": 1.0}


def kept(path: Path, *attributes: dict[str, Value]) -> Store:
    store = Store.open(path, create=True)
    spans = [SpanRecord(trace_id=TRACE, span_id=f"{n:016x}", start_ns=n, end_ns=n, attributes=one) for n, one in enumerate(attributes)]
    store.add(spans, origin="import")
    return store


def spell(store: Store, text: str) -> None:
    with duckdb.connect(str(store.path / "runs.duckdb")) as connection:
        connection.execute("UPDATE spans SET attributes = $1", [text])


@pytest.mark.parametrize("attributes", [ATTRIBUTES, {"a": 1, "b": 2}, {"é": "ü", "a": "ö"}, {"$a": 1, "b": 2}])
@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("escaped", [False, True])
def test_equal_attributes_are_read_however_they_are_spelled(
    tmp_path: Path, attributes: dict[str, Value], spaced: bool, turned: bool, escaped: bool
) -> None:
    store = kept(tmp_path / "store", attributes)
    written = json.loads(next(store.query("SELECT attributes FROM spans").rows)[0])
    in_order = dict(reversed(written.items())) if turned else written
    spell(store, json.dumps(in_order, separators=None if spaced else (",", ":"), ensure_ascii=escaped))
    (span,) = store.traces([TRACE])
    assert span.attributes == attributes


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"b":3}',
        '{"a":1}',
        '{"a":1,"b":2,"c":2}',
        '{"a":1.0,"b":2}',
        '{"b":1,"a":2}',
        '{"a":1,"a":2}',
        "[1]",
        "null",
        '"a"',
        '{"a":1',
    ],
)
def test_other_attributes_are_damage(tmp_path: Path, text: str) -> None:
    store = kept(tmp_path / "store", {"a": 1, "b": 2})
    spell(store, text)
    with pytest.raises(DamagedStoreError):
        list(store.traces([TRACE]))
    damaged: list[str] = []
    assert list(store.traces([TRACE], damaged=damaged)) == []
    assert len(damaged) == 1


@pytest.mark.parametrize("among", [0, 3, 40])
def test_content_is_found_wherever_it_lies(tmp_path: Path, among: int) -> None:
    store = kept(tmp_path / "store")
    texts = [f"{n} " + "x" * 600 for n in range(20)]
    for number, text in enumerate(texts):
        others = [
            SpanRecord(trace_id="b" * 32, span_id=f"{number:08x}{n:08x}", attributes={"t": f"{number} {n} " * 100}) for n in range(among)
        ]
        store.add(others, origin="import")
        store.add([SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", attributes={"text": text})], origin="import")
    assert [span.attributes["text"] for span in store.traces([TRACE])] == texts
