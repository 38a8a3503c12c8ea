from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.reading.flattened import LEAF, gaps, inner, items, leaf, listed, unflattened


def test_numbers_are_places_and_are_sorted_as_numbers() -> None:
    found = unflattened({f"m.{n}.x": n for n in (10, 2, 0)}, "m")["m"]
    assert [place for place, _ in items(found)] == [0, 2, 10]
    assert [node["x"] for node in listed(found)] == [0, 2, 10]
    assert gaps(found) == [1, 3, 4, 5, 6, 7, 8, 9]


def test_a_member_may_have_a_value_and_members() -> None:
    for attributes in ({"m.a": 1, "m.a.0": 2}, {"m.a.0": 2, "m.a": 1}):
        found = unflattened(attributes, "m")["m"]
        assert (leaf(found, "a"), inner(found, "a")["0"]) == (1, 2)
    assert leaf({"a": {"b": 1}}, "a") is None
    assert inner({"a": 1}, "a") == {}


def test_what_was_taken_apart_otherwise_reads_the_same() -> None:
    flat = unflattened({"m.0.message.role": "user", "m.1.message.role": "tool"}, "m")
    assert unflattened({"m": [{"message": {"role": "user"}}, {"message.role": "tool"}]}, "m") == flat
    assert unflattened({"m": ["a", "b"]}, "m") == {"m": {LEAF: ["a", "b"]}}


def test_other_names_and_what_is_not_there_are_left_out() -> None:
    assert unflattened({"mm.0": 1, "m.0": "__REDACTED__", "m.1": None, "x": 1}, "m") == {"m": {"0": "__REDACTED__"}}


@given(
    st.dictionaries(
        st.text(alphabet="m.01ab", min_size=1, max_size=12), st.integers() | st.lists(st.dictionaries(st.just("a"), st.integers()))
    )
)
def test_no_name_is_too_odd(attributes: dict[str, Any]) -> None:
    for node in unflattened(attributes, "m", "m.0").values():
        assert [place for place, _ in items(node)] == sorted(place for place, _ in items(node))
        listed(node)
        gaps(node)


def test_a_place_of_a_billion_is_no_billion_gaps() -> None:
    assert gaps(unflattened({"m.0.a": 1, "m.999999999.a": 1}, "m")["m"]) == []
    assert unflattened({"m" + ".0" * 100_000: 1}, "m")["m"]
