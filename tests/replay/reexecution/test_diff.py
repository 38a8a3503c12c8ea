"""Where two JSON values part, and how that is shown."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.reexecution.diff import ABSENT, DIFF_LINES, differences, first_difference, lines_of, shown, unified

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert first_difference(value, value) is None
    assert unified(value, copy.deepcopy(value)) is None


@given(value=st.lists(JSON, min_size=1), data=st.data())
def test_one_changed_value_is_the_only_difference(value: list[Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(value) - 1))
    changed = [*value[:at], {"changed": "here"}, *value[at + 1 :]]
    found = first_difference(value, changed)
    if value[at] == {"changed": "here"}:
        assert found is None
    else:
        assert found is not None
        assert found.path.startswith(f"[{at}]")
        assert '"changed": "here"' in str(unified(value, changed))


@given(recorded=JSON, actual=JSON)
def test_what_is_written_otherwise_differs_somewhere(recorded: Any, actual: Any) -> None:
    same = json.dumps(recorded, sort_keys=True) == json.dumps(actual, sort_keys=True)
    assert (first_difference(recorded, actual) is None) == same


@pytest.mark.parametrize(
    ("recorded", "actual"), [("caf\u00e9", "cafe\u0301"), ("a b", "a\u00a0b"), ("ab", "a\u200bb"), ("\u00e9" * 120, "e\u0301" * 120)]
)
def test_what_looks_alike_is_told_apart(recorded: str, actual: str) -> None:
    (found,) = differences({"a": recorded}, {"a": actual})
    left, right, _ = found.texts()
    assert left != right
    assert left.isascii()
    assert right.isascii()
    assert len(recorded) > 100 or str(unified({"a": recorded}, {"a": actual})).isascii()
    assert differences("\u00e9", "\u00e8").__next__().texts()[0] == '"\u00e9"', "what looks otherwise is left as it is"


@pytest.mark.parametrize(
    ("recorded", "actual", "path"),
    [
        ({"a": 0.0}, {"a": -0.0}, "a"),
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1]"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b"),
        ({}, {"new": None}, "new"),
        ([{"x": 1}, 2], [{"x": 2}, 3], "[0].x"),
        ("a", "b", ""),
    ],
)
def test_where_the_first_difference_is(recorded: Any, actual: Any, path: str) -> None:
    found = first_difference(recorded, actual)
    assert found is not None
    assert found.path == path
    assert unified(recorded, actual) is not None


def test_long_texts_are_shown_around_the_first_character_that_differs() -> None:
    left, right = "x" * 500 + "careful" + "y" * 500, "x" * 500 + "generous" + "y" * 500
    (found,) = differences(left, right)
    recorded, actual, diff = found.texts()
    assert "careful" in recorded
    assert "generous" in actual
    assert len(recorded) < 200
    assert diff is not None


def test_nothing_and_null_are_told_apart() -> None:
    assert (shown(ABSENT), shown(None)) == ("nothing", "null")


def test_deep_values_are_compared_without_recursion() -> None:
    deep: Any = 1
    other: Any = 2
    for _ in range(5000):
        deep, other = [deep], [other]
    assert first_difference(deep, other) is not None


TEXT = "You are a careful assistant. You answer in one line.\nYou never guess. " + "Say what you know, and from where you know it. " * 3


def test_the_diff_of_a_long_text_has_only_the_sentence_that_changed() -> None:
    recorded = {"messages": [{"content": TEXT, "role": "system"}, {"content": "Hi", "role": "user"}]}
    actual = copy.deepcopy(recorded)
    actual["messages"][0]["content"] = TEXT.replace("never guess", "may guess")
    assert str(unified(recorded, actual)).splitlines() == [
        "--- recorded",
        "+++ actual",
        "@@ -4,5 +4,5 @@",
        '       "content": |',
        "         | You are a careful assistant. You answer in one line.",
        "-        | You never guess. ",
        "+        | You may guess. ",
        "         | Say what you know, and from where you know it. ",
        "         | Say what you know, and from where you know it. ",
    ]


def test_a_diff_is_bounded_and_says_what_it_leaves_out() -> None:
    made = unified({"x": [str(i) for i in range(3000)]}, {"x": [str(-i) for i in range(3000)]})
    assert made is not None
    lines = made.splitlines()
    assert len(lines) <= DIFF_LINES + 2
    assert lines[-2].startswith("… ")
    assert lines[-1] == "… and 2603 lines that were not compared"


@given(value=JSON)
def test_what_is_a_line_has_no_line_in_it(value: Any) -> None:
    assert all("\n" not in line for line in lines_of(value))
