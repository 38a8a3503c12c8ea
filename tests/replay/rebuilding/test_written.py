"""Texts of rows are what ``json.dumps`` writes."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.rebuilding.written import written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_a_value_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    assert written(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("value", [{"a": 1e16}, {"a": [1e-7]}, {"a": 10**30}, "\x7f\x1f\u2028", {"a": {"b": -0.0}}])
def test_numbers_and_letters_that_libraries_write_differently(value: Any) -> None:
    assert written(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_lone_surrogate_is_escaped() -> None:
    assert written({"\ud800": "é"}) == '{"\\ud800":"\\u00e9"}'


def test_what_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        written([math.nan])
    with pytest.raises(TypeError, match="not JSON serializable"):
        written([b"bytes"])
