"""A body that is read with what is known of others is what a parser makes of it, and is written as it ever was."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation import _conversations, _lenient
from spanreplay.instrumentation._conversations import Member, canonical, loads
from spanreplay.instrumentation._written import written

LEAVES = st.sampled_from([None, True, 0, 1.0, -0.0, float("nan"), 10**30, "", "é", "\ud800", 'a"b\\', "]},{", " ", "\n"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "a", "é", "\ud800"]), inner))
MEMBERS = st.dictionaries(st.sampled_from(["role", "content", "é"]), VALUES) | VALUES
BODIES = st.dictionaries(st.sampled_from(["messages", "tools", "model", "\ud800", ""]), st.lists(MEMBERS, max_size=4) | VALUES)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  "), ("\r\n,", ":")])
QUESTION = {"role": "user", "content": "What is the weather in Oslo today?"}
ANSWER = {"role": "assistant", "content": "It is raining, as it was yesterday."}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    _conversations._known.first, _conversations._known.held = {}, 0
    yield
    _conversations._known.first, _conversations._known.held = {}, 0


def _as_parsed(value: Any) -> str:
    """Tells 1 from 1.0 and from True, and one order of members from another."""
    return json.dumps(value)


def _around(item: object) -> dict[str, object]:
    return {"parts": [item]}


@given(bodies=st.lists(st.tuples(BODIES, SEPARATORS), min_size=1, max_size=4), ascii_only=st.booleans())
def test_it_is_what_a_parser_makes_of_it(bodies: list[tuple[dict[str, Any], tuple[str, str]]], ascii_only: bool) -> None:
    for body, separators in bodies:
        text = json.dumps(body, separators=separators, ensure_ascii=ascii_only)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode("utf-8", "surrogatepass")
        wanted = json.loads(data)
        for _ in range(2):
            found: Any = loads(data)
            assert _as_parsed(found) == _as_parsed(wanted)
            assert canonical(found) == canonical_json(wanted)
            assert canonical({"method": "POST", "body": found}, levels=2) == canonical_json({"method": "POST", "body": wanted})
            for name in wanted:
                if isinstance(wanted[name], list):
                    assert written(found[name], _around) == _lenient.dumps([_around(item) for item in wanted[name]])


@given(st.text('{}[]",: \n1ab\\', max_size=30), st.sampled_from(["", '{"messages":[{"role":"user"},', '{"messages":[{"role":"user"}', "{"]))
def test_what_does_not_parse_is_refused(rest: str, start: str) -> None:
    try:
        wanted = json.loads(start + rest)
    except ValueError:
        with pytest.raises(ValueError):
            loads((start + rest).encode())
    else:
        assert loads((start + rest).encode()) == wanted


@pytest.mark.parametrize("data", [b"\xff", b"\xef\xbb\xbf{}", '{"a":[{"b":"c"}]}'.encode("utf-16"), b'{"a":' * 5000, b'{"a":[' * 5000])
def test_other_encodings_and_depths_are_read_or_refused_as_ever(data: bytes) -> None:
    try:
        wanted = _lenient.loads(data)
    except ValueError:
        with pytest.raises(ValueError):
            loads(data)
    else:
        assert loads(data) == wanted


def test_a_field_that_comes_twice_is_the_last_one() -> None:
    assert loads(b'{"messages":[{"role":"user"}],"messages":[1]}') == {"messages": [1]}


def test_what_was_said_before_is_the_same_object_and_is_written_once() -> None:
    first: Any = loads(json.dumps({"messages": [QUESTION]}).encode())
    made: list[object] = []

    def seen(item: object) -> object:
        made.append(item)
        return item

    written(first["messages"], seen)
    second: Any = loads(json.dumps({"messages": [QUESTION, ANSWER], "model": "m"}).encode())
    third: Any = loads(json.dumps({"model": "m", "messages": [QUESTION, ANSWER, QUESTION]}).encode())
    assert second["messages"][0] is first["messages"][0]
    assert third["messages"][:2] == second["messages"]
    assert third["messages"][1] is second["messages"][1]
    assert json.loads(written(third["messages"], seen)) == [QUESTION, ANSWER, QUESTION]
    assert made == [QUESTION, ANSWER, QUESTION]


def test_conversations_that_begin_alike_are_known_apart_up_to_a_number() -> None:
    said = [{"role": "user", "content": f"This is what the user number {n} says."} for n in range(40)]
    for member in said:
        assert loads(json.dumps({"messages": [QUESTION, member]}).encode()) == {"messages": [QUESTION, member]}
    (first,) = _conversations._known.first["messages"]
    assert len(first._next) == _conversations._ALTERNATIVES
    assert dict(first._next[0]) == said[-1]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_conversations, "_HELD", 1000)
    for number in range(100):
        loads(json.dumps({"messages": [{"role": "user", "content": f"{number} {'x' * 50}"}]}).encode())
        assert _conversations._known.held <= 1000
    loads(json.dumps({"messages": [{"role": "user", "content": "x" * 300_000}]}).encode())
    assert _conversations._known.held <= 1000


def test_a_long_conversation_is_forgotten_without_recursion() -> None:
    body = {"messages": [{"role": "user", "content": f"message number {number:09}"} for number in range(30_000)]}
    assert loads(json.dumps(body).encode()) == body
    _conversations._known.first = {}


def test_threads_that_say_the_same_at_once_get_the_same() -> None:
    bodies = [json.dumps({"messages": [QUESTION, ANSWER] * n}).encode() for n in range(1, 9)]
    found: list[bool] = []

    def read() -> None:
        found.append(all(loads(body) == json.loads(body) for body in bodies))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_member_is_a_plain_object_to_who_reads_it() -> None:
    found: Any = loads(json.dumps({"messages": [QUESTION]}).encode())
    (member,) = found["messages"]
    assert isinstance(member, Member)
    assert json.dumps(found) == json.dumps({"messages": [QUESTION]})
