"""Canonical JSON: one text for equal values, different texts for different ones."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content.canonical import canonical_json, canonical_writer, digest

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None), max_size=6), inner, max_size=4),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    """Equality that knows types, NaN and the sign of zero."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def reordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_order_of_members_does_not_count_and_nothing_is_lost(value: object) -> None:
    read = json.loads(json.dumps(value))
    text = canonical_json(read)
    assert canonical_json(reordered(read)) == text
    assert same(json.loads(text), read)
    assert text.isascii()


def test_values_of_different_type_never_share_a_text() -> None:
    values: list[object] = [
        None,
        False,
        0,
        0.0,
        -0.0,
        "",
        [],
        {},
        True,
        1,
        1.0,
        "1",
        "true",
        [1],
        [True],
        float("nan"),
        "NaN",
        float("inf"),
        -math.inf,
    ]
    assert len({canonical_json(value) for value in values}) == len(values)


def test_members_are_sorted_and_there_is_no_space() -> None:
    assert canonical_json({"b": [1, {"z": None, "a": "é"}], "a": 1.5}) == '{"a":1.5,"b":[1,{"a":"\\u00e9","z":null}]}'


def test_any_depth() -> None:
    value: object = 7
    for _ in range(20_000):
        value = {"k": [value]}
    text = canonical_json(value)
    assert text.startswith('{"k":[{"k":[')
    assert text.count("{") == 20_000 == text.count("]")
    assert "7" in text


@pytest.mark.parametrize("number", [10**5000, -(10**5000) + 1, 10**600, 10**1200 + 5], ids=["huge", "negative", "edge", "zeros inside"])
def test_integers_of_any_size(number: int) -> None:
    text = canonical_json({"n": number})
    digits = text.removeprefix('{"n":').removesuffix("}")
    again = 0
    for char in digits.lstrip("-"):
        again = again * 10 + int(char)
    assert (-again if digits.startswith("-") else again) == number
    assert digits.lstrip("-")[0] != "0"


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical_json({"a": object()})


def test_digest() -> None:
    assert digest("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest("é") == digest("é".encode())
    assert digest("\ud800") != digest("?")


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_a_writer_writes_json_the_same(value: object) -> None:
    assert canonical_writer(unknown)(value) == canonical_json(value)


def unknown(value: object) -> object:
    raise TypeError(type(value).__name__)


def test_a_writer_asks_about_what_is_no_json() -> None:
    write = canonical_writer(lambda value: sorted(value) if isinstance(value, set) else unknown(value))
    assert write({"b": {3, 1}, "a": (True, 1.0)}) == '{"a":[true,1.0],"b":[1,3]}'
    for value in (object(), [b"x"], {"a": {1j}}, {1: "a", "b": 2}):
        with pytest.raises(TypeError):
            write(value)
