import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.reading.cut_json import closed, whole_members

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["\\", '"', "\n\t", "\U0001f600", "\\u12"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.integers(0, 200), st.sampled_from([None, 1]))
@settings(deadline=None)
def test_what_was_whole_before_the_cut_is_found_and_nothing_else(document: dict[str, Any], length: int, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    found = whole_members(text[:length])
    assert list(found.items()) == list(document.items())[: len(found)]
    assert whole_members(text) == document
    assert whole_members(text + "\n\n[TRUNCATED]") == document


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "b": 12', {"a": 1}),
        ('{"a": [1, 2], "b": [3, {"c": "tex', {"a": [1, 2]}),
        ('{"a": 1, "b"', {"a": 1}),
        ('{"a": 1, 7: 2}', {"a": 1}),
        ('{"a": 1 "b": 2}', {}),
        ("[1, 2]", {}),
        ("", {}),
        ("  {", {}),
        ('{"a": ' + "[" * 100_000, {}),
        ('{"a": ' + "[" * 500 + "]" * 500 + ', "b": 2}', {"b": 2}),
    ],
)
def test_texts_of_every_kind(text: str, found: dict[str, Any]) -> None:
    assert whole_members(text) == found


def is_left_of(one: Any, whole: Any) -> bool:
    """Whether a value is the beginning of another."""
    if isinstance(one, str):
        return isinstance(whole, str) and whole.startswith(one)
    if isinstance(one, list):
        return isinstance(whole, list) and len(one) <= len(whole) and all(map(is_left_of, one, whole))
    if isinstance(one, dict):
        return isinstance(whole, dict) and all(name in whole and is_left_of(value, whole[name]) for name, value in one.items())
    return bool(one == whole) and type(one) is type(whole)


@settings(deadline=None)
@given(st.lists(values, min_size=1) | st.dictionaries(st.text(max_size=3), values, min_size=1), st.booleans(), st.data())
def test_what_is_left_of_a_cut_value_is_the_beginning_of_it(value: Any, ascii_only: bool, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert closed(text) == value
    assert is_left_of(closed(text[: data.draw(st.integers(1, len(text)))]), value)


@pytest.mark.parametrize("text", ["", "x", "]", "[" * 5_000, '{"a":' * 5_000, "[1}"])
def test_where_nothing_is_left_there_is_none(text: str) -> None:
    assert closed(text) in (None, [1])


def test_the_last_text_is_there_as_far_as_it_goes() -> None:
    assert closed('[{"role": "user", "parts": [{"content": "Where is Par') == [{"role": "user", "parts": [{"content": "Where is Par"}]}]
    assert closed('{"city": "Oslo", "days": 1') == {"city": "Oslo"}, "the number may go on"
    assert closed('{"city": "Oslo", "da') == {"city": "Oslo"}
