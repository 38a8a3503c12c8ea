"""Texts of conversations are put together when they are asked for, and are to everybody what they were."""

import copy
import dataclasses
import json
import pickle
from pathlib import Path

import pytest

from spanreplay.spans.record import SpanRecord
from spanreplay.store import blobs
from spanreplay.store.blobs import _PartsReader
from spanreplay.store.late import Joined, LateAttributes
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "0af7651916cd43dd8448eb211c80319d"


def conversation(turns: int) -> list[str]:
    """Requests, each with all that was said before."""
    said = [{"role": "user", "content": f"{turn} " * 400} for turn in range(turns)]
    return [json.dumps({"model": "m", "messages": said[: turn + 1]}) for turn in range(turns)]


def spans(trace: str, texts: list[str]) -> list[SpanRecord]:
    return [
        SpanRecord(
            trace_id=trace, span_id=f"{n + 1:016x}", name="chat", start_ns=n, end_ns=n + 1, attributes={"n": n, "body": text, "z": 1.5}
        )
        for n, text in enumerate(texts)
    ]


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def test_a_read_puts_no_long_text_together_and_who_asks_gets_each(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written = spans(TRACE, conversation(12))
    store.add(written, origin="import")
    joined: list[Joined] = []
    text = Joined.text

    def noted(self: Joined) -> str:
        joined.append(self)
        return text(self)

    monkeypatch.setattr(Joined, "text", noted)
    found = list(store.traces([TRACE]))
    assert not joined
    assert found[-1].attributes["body"] == written[-1].attributes["body"]
    assert found[-1].attributes.get("body") is found[-1].attributes["body"]
    assert len(joined) == 1
    assert found == written


def test_late_attributes_are_like_a_dict() -> None:
    late = LateAttributes({"a": 1, "b": Joined(["x", "y"]), "c": [2]})
    plain = {"a": 1, "b": "xy", "c": [2]}
    assert late == plain
    assert plain == late
    assert late != {**plain, "b": "x"}
    assert "b" in late
    assert "d" not in late
    assert late.get("d", 3) == 3
    assert [*late.items()] == [*plain.items()]
    assert {**late, "d": 4} == {**plain, "d": 4}
    assert repr(late) == repr(plain)
    for made in (copy.copy(late), copy.deepcopy(late), pickle.loads(pickle.dumps(late))):
        assert type(made) is dict
        assert made == plain
    span = SpanRecord(trace_id=TRACE, span_id="1" * 16, attributes=late)
    assert dataclasses.asdict(span)["attributes"] == plain
    with pytest.raises(KeyError):
        late["d"]


def test_what_several_runs_say_is_found_however_far_away_it_lies(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "_NEAR", 1)
    first = spans(TRACE, conversation(30))
    store.add(first, origin="import")
    again = spans(OTHER, conversation(31))
    store.add(again, origin="import")
    assert list(store.traces([OTHER])) == again
    assert list(store.traces([TRACE])) == first


def test_parts_are_read_once_where_texts_begin_alike() -> None:
    reader = _PartsReader()
    first = [" " * 60, "sha256:a", ", ", "sha256:b", '"]}']
    second = [*first[:4], ", ", "sha256:\u00e9", '\\"]}']
    texts = [json.dumps(parts, ensure_ascii=False, separators=(",", ":")) for parts in (first, second, first)]
    found = [reader.parts(text, str(number)) for number, text in enumerate(texts)]
    assert found == [(first, None, 0), (second, "0", 4), (first, "1", 4)]
    assert all(a is b for a, b in zip(found[0].parts[:4], found[1].parts[:4], strict=True))


@pytest.mark.parametrize("text", ['["a", "sha256:b", "c"]', '[ "a","sha256:b","c" ]', '["a","sha256:b","c"]\n'])
def test_parts_that_somebody_else_wrote_are_read_too(text: str) -> None:
    reader = _PartsReader()
    assert reader.parts('["a","sha256:b","d"]', "1").parts == ["a", "sha256:b", "d"]
    assert reader.parts(text, "2").parts == ["a", "sha256:b", "c"]


@pytest.mark.parametrize("text", ['["a","sha256:b"', '["a', '["a","', "[", "", '["a"]]'])
def test_parts_that_are_damaged_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        _PartsReader().parts(text, "1")


def test_a_text_of_no_parts_is_nothing_but_damaged(store: Store) -> None:
    store.add(spans(TRACE, conversation(3)), origin="import")
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET parts = '[]' WHERE parts IS NOT NULL").fetchall()
    damaged: list[str] = []
    *_, last = store.traces([TRACE], damaged=damaged)
    assert last.attributes == {"n": 2, "z": 1.5}
    assert last.dropped_attributes == 1
    assert "has been changed: its 0 bytes" in damaged[-1]
