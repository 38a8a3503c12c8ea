"""What every shape has to keep to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.reading.messages import input_view, output_view
from spanreplay.replay.reading.shape import Shape, registry

NAMES = (
    "role content parts type text kind part_kind tool_name args contents config system_instruction tools candidates function_call "
    "functionResponse inline_data thought toolUse toolResult reasoningContent image source bytes toolConfig inferenceConfig output message "
    "messages choices input tool_calls function name id arguments result url image-url binary media_type data instructions"
).split()
words = st.sampled_from([*NAMES, "user", "model", "request", "response", "tool-call", "user-prompt", "image-url", "binary", ""])
leaves = st.none() | st.booleans() | st.integers(-2, 2) | words
bodies: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(words, bodies, max_size=5)


def test_every_shape_has_a_name_of_its_own() -> None:
    assert len({shape.NAME for shape in registry()}) == len(registry())


@pytest.mark.parametrize("shape", registry(), ids=lambda shape: shape.NAME)
@given(found=objects)
@settings(max_examples=60, deadline=None)
def test_a_shape_takes_anything(shape: Shape, found: dict[str, Any]) -> None:
    if shape.reads(found):
        for message in shape.messages(found, "user"):
            assert isinstance(message["role"], str)
            assert all(isinstance(part, dict) and isinstance(part["type"], str) for part in message["parts"])
    asked, answered = shape.asked(found), shape.answered(found)
    assert asked is None or asked.keys() >= {"messages", "system", "tools", "params"}
    assert answered is None or answered.keys() >= {"messages", "finish"}


@given(found=bodies)
@settings(max_examples=100, deadline=None)
def test_any_value_has_a_view(found: Any) -> None:
    asked, answered = input_view(found), output_view(found)
    assert (asked is None) == (answered is None) == (found is None)
    if asked is not None:
        assert isinstance(asked["messages"], list)
        assert isinstance(answered["messages"], list)
