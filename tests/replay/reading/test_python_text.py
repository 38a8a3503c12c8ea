"""Python displays, read without evaluating anything."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.reading.python_text import python_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=4), VALUES, max_size=3))
def test_what_repr_writes_comes_back(value: Any) -> None:
    assert python_value(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'city': 'Paris'}", {"city": "Paris"}),
        (" {'a': (1, 2.5), 'b': [], 'c': {},}\n", {"a": [1, 2.5], "b": [], "c": {}}),
        ("{1: True, None: -3}", {"1": True, "None": -3}),
        ("('a',)", ["a"]),
        ("{}", {}),
    ],
)
def test_displays(text: str, expected: object) -> None:
    assert python_value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "Paris", "'Paris'", "12", "{'a'", "{'a': }", "{'a', 'b'}", "{'a': 1 'b': 2}", "[1, 2] 3", "[1 2]", "[1,,2]", "[1)", "]",
        "{: 1}", "[true]", "[print(1)]", "[__import__('os')]", "{'a': datetime(2025, 1, 1)}", "[1 + 1]", "[*x]", "{[1]: 2}",
        "['a' 'b']", "[1]]",
        "[" * 100_000, "[" * 100_000 + "]" * 100_000, "[" + "-" * 100_000 + "1]", "['\\x']", "[" + "9" * 10_000 + "]",
    ],
)  # fmt: skip
def test_anything_else_is_no_value(text: str) -> None:
    assert python_value(text) is None
