"""What is remembered of items is what would be written of each anew, and is bounded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.instrumentation import _remembered
from spanreplay.instrumentation._lenient import dumps
from spanreplay.instrumentation._written import written

LEAVES = st.sampled_from(
    [None, True, False, 0, 1, -1, 1.0, 0.0, -0.0, float("nan"), float("inf"), 10**30, "", "a", "\u00e9", "\ud800", "1"]
)
VALUES = st.recursive(
    LEAVES | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def _around(item: object) -> dict[str, object]:
    return {"role": "user", "parts": [item]}


@given(st.lists(VALUES, max_size=6))
def test_it_is_what_the_whole_list_is_written_as(items: list[Any]) -> None:
    assert written(items, _around) == dumps([_around(item) for item in items])
    again = json.loads(json.dumps(items))
    assert written(again, _around) == dumps([_around(item) for item in again])


def test_values_that_are_equal_and_written_in_another_way_are_told_apart() -> None:
    items = [1, True, 1.0, 0.0, -0.0, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": True, "b": 2}, [0], [False]]
    for _ in range(2):
        assert json.loads(written(items, _around)) == [{"role": "user", "parts": [item]} for item in items]
        assert written(items, _around) == dumps([_around(item) for item in items])


def test_an_item_is_made_once_and_for_each_way_of_its_own() -> None:
    made: list[object] = []

    def seen(item: object) -> object:
        made.append(item)
        return item

    assert written(["only here", "only here"], seen) == '["only here","only here"]'
    assert made == ["only here"]
    assert written(["only here"], _around) == '[{"role":"user","parts":["only here"]}]'


def test_what_marshal_has_no_form_of_is_written_as_ever() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert written([Odd(), 1], _around) == dumps([_around(item) for item in ["odd", 1]])
    assert written([deep], lambda _: "deep") == '["deep"]'


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    memo = _remembered._Memo()
    monkeypatch.setattr(_remembered, "_memo", memo)
    for number in range(500):
        assert written([f"{number}" + "x" * 30_000], _around).startswith('[{"role"')
    assert sum(len(key[1]) + len(text) for held in (memo.new, memo.old) for key, text in held.items()) <= 8_100_000
    large = "y" * 1_000_000
    assert written([large], _around) == dumps([_around(large)])
    assert not any(len(text) > 300_000 for text in memo.new.values())
