import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.cut_json import whole_members

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
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
