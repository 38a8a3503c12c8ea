import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.replay.model import Json
from spanreplay.replay.reading.messages import messages
from spanreplay.replay.reading.python_text import python_members
from spanreplay.replay.reading.shown_messages import shown_message, shown_messages

CALL = {"id": "c1", "function": {"name": "f", "arguments": '{"a": "\\"x\\" b=1"}'}}
SHOWN = f"role='assistant' content='it\\'s, b=1' name=None tool_calls=[{CALL!r}] metrics=Metrics(n=1, at=<now, x=2>) last=True"


@pytest.mark.parametrize("text", [SHOWN, f"Message({SHOWN.replace(' name=', ', name=').replace(' last=', ', last=')})"])
def test_a_message_is_read_from_what_python_shows_of_it(text: str) -> None:
    assert shown_message(text) == {"role": "assistant", "content": "it's, b=1", "tool_calls": [CALL]}
    assert python_members(text).keys() == {"role", "content", "name", "tool_calls", "last"}


@pytest.mark.parametrize(
    "text", ["", "x", "(1)", "role='a'", "I have a role='x' content='y', says he", "f(role='a' content='b'", "a=" + "[" * 300]
)
def test_anything_else_is_no_message(text: str) -> None:
    assert shown_message(text) == {}


@pytest.mark.parametrize("given_", [None, [], {"messages": []}, {"messages": [SHOWN, "x"]}, {"messages": [SHOWN, 1]}, {"messages": SHOWN}])
def test_all_of_them_or_none(given_: Json) -> None:
    assert shown_messages(given_) == []
    assert len(shown_messages({"messages": [SHOWN, SHOWN]})) == 2


@given(st.dictionaries(st.sampled_from(["a", "role", "content"]), st.recursive(st.none() | st.text() | st.integers(), st.lists)))
def test_members_are_what_they_were(members: dict[str, Json]) -> None:
    for separator in (" ", ", "):
        text = separator.join(f"{name}={value!r}" for name, value in members.items())
        assert python_members(text) == members
        assert python_members(f"Thing({text})") == members


@given(st.text(alphabet="ab=,.'\"()[]{}<> \n\\"))
def test_nothing_is_raised(text: str) -> None:
    python_members(text)
    shown_message(f"role='a' {text}")


@pytest.mark.parametrize(
    ("text", "role", "parts"),
    [
        ("content='hi' additional_kwargs={} response_metadata={} id='1'", "user", [{"type": "text", "content": "hi"}]),
        (
            "content='' additional_kwargs={} response_metadata={'x': 1} tool_calls=[{'name': 'f', 'args': {'a': 1}, 'id': 'c1'}]",
            "assistant",
            [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}],
        ),
        ("content='2' name='f' tool_call_id='c1'", "tool", [{"type": "tool_call_response", "id": "c1", "response": "2"}]),
        ("content='of nobody' additional_kwargs={} response_metadata={}", "assistant", None),
        ("content='stands for something' else", "assistant", None),
    ],
)
def test_messages_of_langchain_as_python_shows_them(text: str, role: str, parts: list[Json] | None) -> None:
    (message,) = messages([text], "assistant") or []
    assert (message["role"], message["parts"]) == (role, parts or [{"type": "text", "content": text}])
