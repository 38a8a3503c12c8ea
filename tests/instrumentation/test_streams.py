"""Streaming calls: one step, ended once, however the stream is left; ``send``, ``throw`` and the return value pass through."""

import asyncio
import gc
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import tool
from spanreplay.semconv import attributes as names
from support.taped import Tape, recorded, recording, replayed, told


@tool(effect="read")
def numbers(n: int, fail: bool = False) -> Generator[int, Any, str]:
    for i in range(n):  # noqa: UP028 — ``range`` cannot be sent to
        yield i
    if fail:
        raise ValueError("broken")
    return "done"


@tool(effect="read")
async def anumbers(n: int, fail: bool = False) -> AsyncGenerator[int, Any]:
    for i in range(n):
        await asyncio.sleep(0)
        yield i
    if fail:
        raise ValueError("broken")


@tool(effect="read")
def echo() -> Generator[Any, Any, list[Any]]:
    """Gives back what is sent; keeps what is thrown, and goes on."""
    got: list[Any] = []
    item: Any = "ready"
    while len(got) < 3:
        try:
            sent = yield item
        except LookupError as error:
            sent = f"caught {error}"
        got.append(sent)
        item = sent
    return got


@tool(effect="read")
async def aecho() -> AsyncGenerator[Any, Any]:
    got = 0
    item: Any = "ready"
    while got < 3:
        try:
            sent = yield item
        except LookupError as error:
            sent = f"caught {error}"
        got += 1
        item = sent


def items_of(tape: Tape) -> list[str]:
    return [s[names.STEP_ITEMS] for s in tape.steps]


# ---- leaving a stream, each way -------------------------------------------------------------------------------------


def whole() -> list[int]:
    return list(numbers(3))


def breaks() -> list[int]:
    got = []
    for i in numbers(3):
        got.append(i)
        if i == 1:
            break
    return got


def closes() -> list[int]:
    stream = numbers(3)
    got = [next(stream)]
    stream.close()
    return got


def drops() -> list[int]:
    stream = numbers(3)
    got = [next(stream)]
    del stream
    gc.collect()
    return got


def fails() -> list[int]:
    got: list[int] = []
    try:
        got.extend(numbers(2, fail=True))
    except ValueError as error:
        assert str(error) == "broken"  # noqa: PT017 — where it is raised is part of the agent
        return got
    raise AssertionError


def never_starts() -> list[int]:
    numbers(3)
    gc.collect()
    return []


async def awhole() -> list[int]:
    return [i async for i in anumbers(3)]


async def abreaks() -> list[int]:
    got = []
    async for i in anumbers(3):
        got.append(i)
        if i == 1:
            break
    return got


async def acloses() -> list[int]:
    stream = anumbers(3)
    got = [await anext(stream)]
    await stream.aclose()
    return got


async def acloses_in_another_task() -> list[int]:
    stream = anumbers(3)
    got = [await anext(stream)]

    async def close() -> None:
        await stream.aclose()

    await asyncio.create_task(close())
    return got


async def adrops() -> list[int]:
    stream = anumbers(3)
    got = [await anext(stream)]
    del stream
    gc.collect()
    await asyncio.sleep(0)
    return got


async def aleaves_to_the_loop() -> list[int]:
    """Keeps the stream until the loop ends, which closes it."""
    kept.append(anumbers(3))
    return [await anext(kept[-1])]


async def afails() -> list[int]:
    got: list[int] = []
    try:
        async for i in anumbers(2, fail=True):
            got.append(i)  # noqa: PERF401 — what came before the failure
    except ValueError as error:
        assert str(error) == "broken"  # noqa: PT017 — where it is raised is part of the agent
        return got
    raise AssertionError


async def anever_starts() -> list[int]:
    anumbers(3)
    gc.collect()
    return []


kept: list[Any] = []

WAYS: list[tuple[Callable[[], Any], list[str], list[str]]] = [
    (whole, ["ok"], ["[0,1,2]"]),
    (breaks, ["abandoned"], ["[0,1]"]),
    (closes, ["abandoned"], ["[0]"]),
    (drops, ["abandoned"], ["[0]"]),
    (fails, ["error"], ["[0,1]"]),
    (never_starts, [], []),
    (awhole, ["ok"], ["[0,1,2]"]),
    (abreaks, ["abandoned"], ["[0,1]"]),
    (acloses, ["abandoned"], ["[0]"]),
    (acloses_in_another_task, ["abandoned"], ["[0]"]),
    (adrops, ["abandoned"], ["[0]"]),
    (aleaves_to_the_loop, ["abandoned"], ["[0]"]),
    (afails, ["error"], ["[0,1]"]),
    (anever_starts, [], []),
]


@pytest.mark.parametrize(("agent", "outcomes", "items"), WAYS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.filterwarnings("ignore:coroutine method 'aclose' of:RuntimeWarning")
def test_a_stream_is_one_ended_step_however_it_is_left(  # B07, B09
    agent: Callable[[], Any], outcomes: list[str], items: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    tape = recorded(agent)
    kept.clear()
    gc.collect()
    assert tape.outcomes == outcomes
    assert items_of(tape) == items
    assert tape.twice == []
    assert caplog.records == []

    again = replayed(tape, agent)
    kept.clear()
    assert told(again) == []
    assert caplog.records == []


def test_the_wrapped_generator_is_closed_where_the_outer_one_is() -> None:
    closed: list[str] = []

    @tool
    async def tidy() -> AsyncGenerator[int, Any]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.append("async")

    @tool
    def tidy_too() -> Generator[int, Any, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("sync")

    async def agent() -> None:
        stream = tidy()
        await anext(stream)
        await stream.aclose()
        other = tidy_too()
        next(other)
        other.close()
        kept.append(tidy())
        await anext(kept[-1])

    tape = recorded(agent)
    kept.clear()
    assert closed == ["async", "sync", "async"]
    assert tape.outcomes == ["abandoned"] * 3


# ---- send, throw, return --------------------------------------------------------------------------------------------


def talks() -> Any:
    stream = echo()
    heard = [next(stream), stream.send("a"), stream.throw(KeyError("k"))]
    try:
        stream.send("z")
    except StopIteration as stop:
        heard.append(stop.value)
    return heard


async def atalks() -> Any:
    stream = aecho()
    heard = [await anext(stream), await stream.asend("a"), await stream.athrow(KeyError("k"))]
    with pytest.raises(StopAsyncIteration):
        await stream.asend("z")
    return heard


@pytest.mark.parametrize("agent", [talks, atalks])
def test_what_is_sent_and_thrown_reaches_the_body_and_its_answers_come_back(agent: Callable[[], Any]) -> None:
    plain = agent() if agent is talks else asyncio.run(atalks())
    tape = recorded(agent)
    assert items_of(tape) == ['["ready","a","caught \'k\'"]']
    result = replayed(tape, agent)
    assert result.equal
    assert result.value == plain


def throws_past() -> BaseException:
    stream = echo()
    next(stream)
    error = ValueError("mine")
    with pytest.raises(ValueError) as caught:
        stream.throw(error)
    assert caught.value is error
    return error


async def athrows_past() -> BaseException:
    stream = aecho()
    await anext(stream)
    error = ValueError("mine")
    with pytest.raises(ValueError) as caught:
        await stream.athrow(error)
    assert caught.value is error
    return error


@pytest.mark.parametrize("agent", [throws_past, athrows_past])
def test_what_the_body_does_not_catch_comes_back_as_the_same_object(agent: Callable[[], Any]) -> None:
    tape = recorded(agent)
    assert tape.outcomes == ["error"]
    assert replayed(tape, agent).equal


def test_the_return_value_of_a_generator_comes_back() -> None:
    def agent() -> str:
        def through() -> Generator[int, Any, str]:
            return (yield from numbers(1))

        stream = through()
        list(iter(lambda: next(stream, None), None))
        stream = through()
        next(stream)
        with pytest.raises(StopIteration) as stop:
            next(stream)
        return str(stop.value.value)

    tape = recorded(agent)
    assert agent() == "done"
    assert replayed(tape, agent).value == "done"


def test_a_stream_keeps_its_kind_off_and_on() -> None:
    assert inspect.isgeneratorfunction(numbers)
    assert inspect.isasyncgenfunction(anumbers)
    assert whole() == [0, 1, 2]
    assert asyncio.run(awhole()) == [0, 1, 2]


# ---- what a replay finds --------------------------------------------------------------------------------------------


def test_reading_on_where_the_record_was_left_is_found() -> None:
    tape = recorded(breaks)
    result = replayed(tape, whole)
    assert told(result) == [("beyond", 1, "tool_call numbers", None)]


def test_leaving_a_stream_that_was_read_to_its_end_is_found() -> None:
    tape = recorded(whole)
    result = replayed(tape, breaks)
    assert told(result) == [("outcome", 1, "tool_call numbers", "outcome")]


@given(n=st.integers(0, 4), take=st.integers(0, 6), how=st.sampled_from(["next", "send", "close"]))
@settings(max_examples=20, deadline=None)
def test_any_reading_of_a_stream_is_one_step_and_replays_equal(n: int, take: int, how: str) -> None:
    def agent() -> list[Any]:
        stream = numbers(n)
        got: list[Any] = []
        for i in range(take):
            try:
                got.append(stream.send("x") if how == "send" and i else next(stream))
            except StopIteration as stop:
                got.append(stop.value)
                break
        if how == "close":
            stream.close()
        return got

    tape = recorded(agent)
    gc.collect()
    assert tape.outcomes in ([], ["ok"], ["abandoned"])
    result = replayed(tape, agent)
    assert result.equal
    assert result.value == agent()


def test_a_tool_called_while_a_stream_is_read_does_not_wait_for_it() -> None:
    @tool(effect="read")
    def look(i: int) -> int:
        return i

    def agent() -> list[int]:
        return [look(i) for i in numbers(2)]

    tape = recorded(agent)
    result = replayed(tape, agent)
    assert result.equal
    assert result.verdict.order_relaxed == 0


def test_nothing_is_left_in_the_readers_context() -> None:
    from spanreplay.boundary.scope import current_scope

    with recording() as _:
        before = current_scope()
        stream = numbers(2)
        next(stream)
        assert current_scope() is before
        stream.close()
        assert current_scope() is before
