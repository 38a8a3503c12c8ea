"""Server-sent events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation._sse import Event, events, frames, is_stream, last_names, render


def test_fields_comments_byte_order_mark_and_several_data_lines() -> None:
    stream = b"\xef\xbb\xbf: hello\nevent: a\ndata: 1\ndata:2\ndata:  3\nid: 7\n\ndata\n\nevent: empty\n\nretry: 5\ndata: {}\n\n"
    assert list(events(stream)) == [Event(name="a", data="1\n2\n 3"), Event(name="", data=""), Event(name="", data="{}")]


def test_only_the_three_line_ends_end_a_line() -> None:
    separators = "\u2028\u2029\x85\x0b\x0c\x1c"
    assert [event.data for event in events(f"data: a{separators}b\r\n\r\n".encode())] == [f"a{separators}b"]


def test_an_event_without_its_blank_line_is_marked() -> None:
    assert list(events(b"data: 1\n\ndata: 2\n")) == [Event(name="", data="1"), Event(name="", data="2", whole=False)]
    assert frames(b'data: {"a": 1}\n\ndata: {"a":').problem is None
    assert frames(b'data: {"a": 1}\n\ndata: {"a":\n\n').problem is not None
    assert frames(b'data: {"a": 1}').objects == (("", {"a": 1}),)
    assert frames(b"data: [DONE]").done


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/event-stream", b"", True),
        ("Text/Event-Stream; charset=utf-8", b"data: {}", True),
        ("text/event-stream", b' {"id": 1}', False),
        ("", b"\ndata: {}", True),
        ("text/plain", b"event: x", True),
        ("application/json", b"data: {}", False),
        ("", b'{"data": 1}', False),
    ],
)
def test_what_is_a_stream(content_type: str, body: bytes, expected: bool) -> None:
    assert is_stream(content_type, body) is expected


def test_last_names_reads_only_the_end() -> None:
    stream = b'data: {"type": "a"}\n\nevent: b\ndata: {}\n\ndata: {"error": "x"}\n\n'
    assert last_names(stream) == ["b", "error"]
    assert last_names(stream + b"data: [DONE]\n\n") == ["error", "[DONE]"]
    assert last_names(b"half an event\n\n" + stream[-25:]) == ["error"]
    assert last_names(stream + b"event: end\ndata: {") == ["error"], "the end of the last event has not come"
    assert last_names(b"") == last_names(b"\n\n") == []


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.text("abc.", max_size=4), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=9))
    )
)
def test_what_is_rendered_reads_back(made: list[tuple[str, str]]) -> None:
    expected = [(name, data) for name, data in made]
    assert [(event.name, event.data) for event in events(render(made))] == expected


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 80))
def test_any_bytes(body: bytes, place: int) -> None:
    assert all(isinstance(event.data, str) for event in events(body))
    assert len(last_names(body[:place])) <= 2
    frames(body)
