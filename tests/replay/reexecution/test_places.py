"""Places in JSON values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.places import Keys, PatternError, Place, written


@pytest.mark.parametrize(
    ("pattern", "keys", "covered"),
    [
        ("messages[*].content", ("messages", 3, "content"), True),
        ("$.messages[*].content", ("messages", 3, "content"), True),
        ("messages[0].content", ("messages", 1, "content"), False),
        ("messages[*]", ("messages", 0, "content", "text"), True),
        ("messages", ("messages",), True),
        ("messages", ("more", "messages"), False),
        ("..description", ("tools", 0, "function", "description"), True),
        ("tools..description", ("tools", 0, "function", "description"), True),
        ("tools..description", ("tools", 0, "function", "descriptions"), False),
        ("metadata.*", ("metadata", "when"), True),
        ("metadata.*", ("metadata",), False),
        ("['a b'].c", ("a b", "c"), True),
        ('["a.b"]', ("a.b",), True),
        ("..x..y", ("a", "x", 0, "y"), True),
        ("..x..y", ("a", "y", 0, "x"), False),
        ("a-b.$c", ("a-b", "$c"), True),
    ],
)
def test_a_place_covers_a_value_and_all_below_it(pattern: str, keys: Keys, covered: bool) -> None:
    assert Place.read(pattern).covers(keys) is covered


@pytest.mark.parametrize("text", ["", "$", "a b", "messages[x]", "messages[", "a..", ".", "a]", "messages[*]content"])
def test_what_is_no_pattern_is_said(text: str) -> None:
    with pytest.raises(PatternError, match=r"wanted a path such as messages\[\*\]\.content"):
        Place.read(text)


@given(
    keys=st.lists(st.sampled_from(["a", "messages", "long_name", 0, 17]), min_size=1, max_size=5).filter(lambda k: isinstance(k[0], str))
)
def test_a_path_as_differences_write_it_is_a_pattern_for_itself(keys: list[Any]) -> None:
    place = Place.read(written(keys))
    assert place.covers(tuple(keys))
    assert place.covers((*keys, "below"))
    assert not place.covers(tuple(keys[:-1]))


def test_texts_are_compared_without_what_a_regular_expression_matches() -> None:
    comparing = Comparing(mode="tolerant", ignore=("/took \\d+ ms/", "/BUILD [0-9a-f]+/i", "arguments.when"))
    assert comparing.ignores(("x",), "it took 5 ms", "it took 77 ms")
    assert comparing.ignores(("x",), "a build 1f", "a BUILD 2e")
    assert not comparing.ignores(("x",), "it took 5 ms", "that took 5 ms")
    assert not comparing.ignores(("x",), 5, 6)
    assert comparing.ignores(("arguments", "when", "day"), 5, None)
    assert not Comparing(ignore=("arguments.when",)).ignores(("arguments", "when"), 5, 6)
    assert Comparing.from_json(comparing.to_json()) == comparing


@pytest.mark.parametrize("text", ["/(/", "//", "/abc", "/a/x"])
def test_a_wrong_regular_expression_is_said_at_once(text: str) -> None:
    with pytest.raises(PatternError):
        Comparing(mode="tolerant", ignore=(text,))
