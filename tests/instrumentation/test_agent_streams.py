"""An agent's stream is a run; what its reader does between two items is not a part of it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.agent_streams import agent_astream, agent_stream
from spanreplay.semconv import attributes as names
from support.taped import recording


@tool(effect="read")
def inside(n: int) -> int:
    return n


@tool(effect="read")
def outside(n: int) -> int:
    return n


def items() -> Iterator[int]:
    for n in range(2):
        yield inside(n)


async def async_items() -> AsyncIterator[int]:
    for n in items():
        yield n


def read(*, stop: int | None = None) -> list[int]:
    run, got = agent_run("a", input="q"), []

    def seen(item: int) -> None:
        run.output = item

    stream = agent_stream(run, items, seen)
    for n in stream:
        got.append(outside(n))
        if n == stop:
            stream.close()
    return got


async def aread() -> list[int]:
    run = agent_run("a", input="q")

    def seen(item: int) -> None:
        run.output = item

    return [outside(n) async for n in agent_astream(run, async_items, seen)]


@pytest.mark.parametrize("reader", [read, lambda: asyncio.run(aread())])
def test_only_what_the_agent_does_is_in_the_run(reader: Any) -> None:
    with recording() as tape:
        assert reader() == [0, 1]
    runs = {step[names.STEP_NAME]: step[names.RUN_ID] for step in tape.steps}
    assert runs["inside"] == runs["a"] != runs["outside"]
    assert tape.steps[0][names.RUN_OUTPUT] == "1"
    assert reader() == [0, 1], "off, it is the stream alone"


def test_a_stream_that_is_left_is_an_abandoned_run() -> None:
    with recording() as tape:
        assert read(stop=0) == [0]
    assert tape.steps[0][names.STEP_OUTCOME] == "abandoned"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_fails_ends_the_run_and_reaches_the_reader(asynchronous: bool) -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    async def afails() -> AsyncIterator[int]:
        for n in fails():
            yield n

    def seen(item: int) -> None:
        raise RuntimeError(f"of {item}, the adapter's own")

    async def all_of() -> list[int]:
        return [n async for n in agent_astream(agent_run("a"), afails, seen)]

    def read_it() -> list[int]:
        return asyncio.run(all_of()) if asynchronous else list(agent_stream(agent_run("a"), fails, seen))

    with recording() as tape, pytest.raises(ValueError, match="no more"):
        read_it()
    assert tape.steps[0][names.STEP_OUTCOME] == "error"
