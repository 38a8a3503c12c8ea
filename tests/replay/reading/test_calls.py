from typing import Any

import pytest

from spanreplay.replay.reading.calls import Returned, called_with, is_schema, literal, parameter_names, question, returned


@pytest.mark.parametrize(
    ("written", "names", "arguments"),
    [
        ({"args": [], "kwargs": {"a": 1}}, [], {"a": 1}),
        ({"kwargs": {"a": 1}}, [], {"a": 1}),
        ({"kwargs": 1}, [], {"kwargs": 1}),
        ({"args": [1], "kwargs": {"b": 2}}, ["a", "b"], {"a": 1, "b": 2}),
        ({"args": [], "sanitize_inputs_outputs": True, "kwargs": {"a": 1}}, [], {"a": 1}),
        ({"args": [1], "kwargs": {}}, [], {"args": [1], "kwargs": {}}),
        ({"args": [1, 2], "kwargs": {}}, ["a"], {"args": [1, 2], "kwargs": {}}),
        ({"args": 1, "kwargs": {}}, ["a"], {"args": 1, "kwargs": {}}),
        ({"args": [], "kwargs": {}, "other": 1}, [], {"args": [], "kwargs": {}, "other": 1}),
        ([1, 2], [], [1, 2]),
        ("text", [], "text"),
    ],
)
def test_arguments_get_their_names_where_they_are_known(written: Any, names: list[str], arguments: Any) -> None:
    assert called_with(written, names) == arguments


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ({"args": ["Hi"], "kwargs": {}}, "Hi"),
        ({"args": [], "kwargs": {"text": "Hi"}}, "Hi"),
        ({"text": "Hi"}, "Hi"),
        ("Hi", "Hi"),
        ({"args": [1], "kwargs": {}}, {"args": [1], "kwargs": {}}),
        ({"args": ["Hi"], "kwargs": [{}]}, {"args": ["Hi"], "kwargs": [{}]}),
        ({"args": "Hi", "kwargs": {}}, {"args": "Hi", "kwargs": {}}),
        ({"args": None, "kwargs": None}, {"args": None, "kwargs": None}),
    ],
)
def test_a_question_is_the_only_text_of_a_call(written: Any, asked: Any) -> None:
    assert question(written) == asked


def test_a_schema_is_no_arguments() -> None:
    whole = {"type": "object", "properties": {"city": {"type": "string"}, "day": {}}}
    short = {"city": {"type": "string", "description": "x"}}
    assert (parameter_names(whole), parameter_names(short), parameter_names({"type": "object"})) == (["city", "day"], ["city"], [])
    for arguments in ({"city": "Paris"}, {}, {"filter": {"name": "x"}}, "text", None):
        assert not is_schema(arguments)
        assert parameter_names(arguments) == []


MESSAGE = {"content": "sunny", "tool_call_id": "c1", "status": "error", "type": "tool"}


@pytest.mark.parametrize(
    "written",
    [
        MESSAGE,
        {"type": "tool", "data": MESSAGE},
        {"output": {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": MESSAGE}, "kwargs": {"name": "t"}},
        "content='sunny' name='t' tool_call_id='c1' status='error'",
        {"output": "content='sunny' name='t' tool_call_id='c1' status='error'"},
    ],
)
def test_a_tool_message_in_any_form_is_its_content(written: Any) -> None:
    assert returned(written) == ("sunny", "c1", True)


def test_the_output_of_a_tool_of_llama_index_is_what_the_tool_gave() -> None:
    output = {"blocks": [{"text": "{'a': 1}"}], "tool_name": "f", "raw_input": {"args": [], "kwargs": {}}, "raw_output": {"a": 1}}
    assert returned({**output, "is_error": False}) == ({"a": 1}, None, False)
    assert returned({**output, "is_error": True}).failed


@pytest.mark.parametrize(
    "value",
    [{"content": "x"}, {"output": {"a": 1}}, {"output": "a"}, {"output": "content='x'"}, "content='x'", "content=", [1], None, 0, ""],
)
def test_anything_else_is_itself(value: Any) -> None:
    assert returned(value) == (value, None, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'city': 'Paris', 'at': (1, None)}", {"city": "Paris", "at": [1, None]}),
        ("['a']", ["a"]),
        ("{city}", "{city}"),
        ("{'a': f()}", "{'a': f()}"),
        ("{1, 2}", "{1, 2}"),
        ("note", "note"),
        ("7", "7"),
        ("[" * 150 + "]" * 150, [[]]),
        ("[" * 500_000, "[" * 500_000),
    ],
)
def test_a_python_literal_is_its_value(text: str, value: Any) -> None:
    found = literal(text)
    if text.startswith("[[[["):
        assert isinstance(found, str | list)
    else:
        assert found == value


@pytest.mark.parametrize(
    ("text", "value", "failed"),
    [
        ("status='success' result={'n': 1} error=None images=None", {"n": 1}, False),
        ("status='success' result='two words' error=None", "two words", False),
        ("status='failure' result=None error='no service' images=None", "no service", True),
        ("status='success' result=<generator object f at 0x7f> error=None", None, False),
        ("status='success' result='cut of", None, False),
    ],
)
def test_what_agno_shows_of_a_call(text: str, value: Any, failed: bool) -> None:
    assert returned(text) == Returned(text if value is None else value, None, failed)


def test_what_llamaindex_tells_of_a_call() -> None:
    output = {"blocks": [], "tool_name": "f", "raw_input": {}, "raw_output": {"n": 1}, "is_error": True}
    assert returned({"tool_name": "f", "tool_kwargs": {}, "tool_id": "c1", "tool_output": output}) == Returned({"n": 1}, "c1", True)
    assert returned({"tool_output": {"n": 1}}) == Returned({"tool_output": {"n": 1}})
