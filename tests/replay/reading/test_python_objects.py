from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.reading.python_objects import CLASS, python_object


class Kind(StrEnum):
    TOOL = "tool"


@dataclass
class Origin:
    id: Any


@dataclass
class Call:
    name: str
    kind: Kind
    origin: Origin
    held: Any


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=12), st.lists(st.text(max_size=8) | st.integers() | st.none() | st.booleans() | st.floats(-9, 9), max_size=4))
def test_what_repr_shows_of_a_data_class_comes_back(text: str, values: list[Any]) -> None:
    shown = repr(Call(text, Kind.TOOL, Origin(text), {"of": values, "in": [Origin(1)]}))
    name, origin = "Call", {CLASS: "Origin", "id": text}
    held = {"of": values, "in": [{CLASS: "Origin", "id": 1}]}
    read = python_object(shown.replace("test_python_objects.", ""))
    assert read == {CLASS: name, "name": text, "kind": "tool", "origin": origin, "held": held}


@pytest.mark.parametrize(
    "text",
    [
        "", "Call", "Call(", "Call)", "Call(1)", "Call(name=)", "Call(name=other)", "Call(name=f(1))", "Call(at=<object at 0x7f>)",
        "[1]", "{'': 1}",
        "Call(name='a'", "Call(name='a']", "Call(name=['a'))", "Call(a=1) + 1", "Call(a=b'1')", "Call(a=__import__('os'))", "A(" * 50_000,
        "A(a=" * 5_000 + "1" + ")" * 5_000,
    ],
)  # fmt: skip
def test_anything_else_is_none(text: str) -> None:
    assert python_object(text) == {}


def test_an_object_without_members_is_one() -> None:
    assert python_object("Call()") == {CLASS: "Call"}
