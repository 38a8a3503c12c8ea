"""The response that a recorded answer makes."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.boundary.call import Answer
from spanreplay.instrumentation.http_reply import NothingRecordedError, chunks_of, reply
from support.http_exchanges import head, opened, scope, taped, undecided


@given(st.binary(max_size=60), st.data())
@settings(max_examples=40, deadline=None)
def test_recorded_chunks_come_as_they_were_received(body: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    sizes = tuple(b - a for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True))
    chunks = chunks_of(taped(body, sizes))
    assert [len(chunk) for chunk in chunks] == list(sizes)
    assert b"".join(chunks) == body


def test_sizes_that_do_not_fit_give_the_body_in_one_piece() -> None:
    assert chunks_of(taped(b"four", (3,))) == [b"four"]
    assert chunks_of(taped(b"", ())) == []


def test_an_incomplete_answer_ends_in_what_the_session_says() -> None:
    stop = KeyboardInterrupt("beyond")
    answer = Answer(outcome="abandoned", exchange=taped(b"x", (1,), complete=False), beyond=lambda: stop)
    given = reply(opened(scope()), answer, undecided)
    assert given.ending is not None
    assert given.ending() is stop


def test_a_complete_answer_just_ends() -> None:
    given = reply(opened(scope()), Answer(outcome="ok", exchange=taped(b"x", (1,))), undecided)
    assert given.ending is None
    assert not given.pends


def test_an_answer_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(NothingRecordedError, match="found neither"):
        reply(opened(scope()), Answer(outcome="unknown"), undecided)


def test_a_cancelled_answer_without_an_exception_is_cancelled() -> None:
    exchange = opened(scope())
    exchange.answered(answer := Answer(outcome="cancelled"))
    with pytest.raises(asyncio.CancelledError) as raised:
        reply(exchange, answer, undecided)
    exchange.failed(raised.value)
    assert exchange.step.outcome == "cancelled"


@pytest.mark.parametrize(
    ("result", "content_type", "body"),
    [('"text"', "text/plain; charset=utf-8", b"text"), ('{"a": 1}', "application/json", b'{"a": 1}')],
)
def test_a_result_without_an_exchange_is_the_body_of_other_http(result: str, content_type: str, body: bytes) -> None:
    exchange = opened(scope(), head("https://a.example/x", "GET", ()), b"")
    given = reply(exchange, Answer(outcome="ok", result=result), undecided)
    assert (given.headers, list(given.chunks)) == ((("content-type", content_type),), [body])
