"""Lists that grow are read as ``json.loads`` reads them, each element once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.reading import growing
from spanreplay.replay.reading.growing import GrowingLists, PerElement

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(autouse=True)
def _short_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_SHORTEST", 1)


def loaded(text: str) -> tuple[str, str]:
    try:
        return "value", repr(json.loads(text))
    except ValueError as error:
        return "error", str(error)


def read(lists: GrowingLists, text: str) -> tuple[str, str]:
    try:
        return "value", repr(lists.read(text))
    except ValueError as error:
        return "error", str(error)


@given(st.lists(VALUES, max_size=8), st.lists(st.integers(0, 8), max_size=6), st.sampled_from([None, 1]), st.text(" ,]}x\n", max_size=3))
def test_it_reads_what_json_loads_reads(values: list[Any], lengths: list[int], indent: int | None, end: str) -> None:
    lists = GrowingLists()
    for length in lengths:
        text = json.dumps(values[:length], indent=indent)
        for given_text in (text, text + end, text[:-1] + end, text[:-1] + ",]"):
            assert read(lists, given_text) == loaded(given_text)


def test_what_two_have_in_common_is_the_same() -> None:
    lists = GrowingLists()
    first = lists.read('[{"a": "' + "x" * 100 + '"}]')
    second = lists.read('[{"a": "' + "x" * 100 + '"}, {"b": 1}]')
    assert second == [{"a": "x" * 100}, {"b": 1}]
    assert second[0] is first[0]
    assert len(first) == 1


def test_an_equal_text_has_the_same_elements() -> None:
    lists = GrowingLists()
    first, second = (lists.read('[{"a": 1}, {"b": 2} ]\n') for _ in range(2))
    assert second == [{"a": 1}, {"b": 2}]
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert second is not first


def test_no_more_is_remembered_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_HELD", 1000)
    lists = GrowingLists()
    for number in range(100):
        lists.read(json.dumps([f"{number}" * 100]))
    assert sum(len(prefix) for known in lists._known.values() for prefix, _ in known) <= 1000


@given(st.lists(st.lists(st.integers(), max_size=2), max_size=12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8))
def test_what_is_made_of_each_element_is_what_is_made_of_it_alone(values: list[Any], slices: list[tuple[int, int]]) -> None:
    each = PerElement(repr)
    for start, end in slices:
        assert each.of(values[start:end]) == [repr(value) for value in values[start:end]]


def test_nothing_is_made_again_of_what_a_list_before_began_with() -> None:
    made: list[Any] = []
    each = PerElement(made.append)
    values = [[number] for number in range(10)]
    for size in range(4, 11):
        each.of(values[:size])
    assert made == values


def test_equal_elements_are_not_the_same() -> None:
    each = PerElement(repr)
    assert each.of([1, 1, 1, 1]) == ["1"] * 4
    assert each.of([True, 1.0, 1, 1]) == ["True", "1.0", "1", "1"]


def test_a_list_that_is_changed_later_is_not_what_was_remembered() -> None:
    each = PerElement(repr)
    values: list[Any] = [[number] for number in range(5)]
    each.of(values).append("x")
    values[2] = "other"
    assert each.of(values) == list(map(repr, values))
