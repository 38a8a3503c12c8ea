"""Nobody waits for what only it itself can bring about; the order of what others bring is kept."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from spanreplay.instrumentation import tool
from spanreplay.instrumentation.transports import httpx2 as transport
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.turns import Turns
from support.taped import SIZE, recorded, replayed, told

gates: dict[str, threading.Event] = {}
"""The last piece of a stream comes when its gate, where it has one, has opened; only while recording."""


@pytest.fixture(autouse=True)
def _transport() -> Iterator[None]:
    transport.install()
    yield
    transport.uninstall()
    gates.clear()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """``seq`` of what was given in a replay, in order."""
    found: list[int] = []
    given = Turns.given

    def noting(self: Turns, seq: int) -> None:
        found.append(seq)
        given(self, seq)

    monkeypatch.setattr(Turns, "given", noting)
    return found


class Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body of three pieces."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        yield from (b"1", b"2")
        if self._name in gates:
            assert gates[self._name].wait(20)
        yield b"3"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in (b"1", b"2"):
            yield piece
        while self._name in gates and not gates[self._name].is_set():
            await asyncio.sleep(0)
        yield b"3"


def answers(request: httpx2.Request) -> httpx2.Response:
    name = request.url.path.strip("/")
    return httpx2.Response(200, headers={"content-type": "text/event-stream", "x-name": name}, stream=Pieces(name))


def opened(name: str) -> httpx2.Response:
    client = httpx2.Client(transport=httpx2.MockTransport(answers))
    return client.send(client.build_request("GET", f"http://model.test/{name}"), stream=True)


async def aopened(name: str) -> httpx2.Response:
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answers))
    return await client.send(client.build_request("GET", f"http://model.test/{name}"), stream=True)


def read(stream: httpx2.Response) -> bytes:
    """All that is left; opens the gate of who is to end after it."""
    data = b"".join(stream.iter_raw())
    _over(stream)
    return data


async def aread(stream: httpx2.Response) -> bytes:
    data = b"".join([piece async for piece in stream.aiter_raw()])
    _over(stream)
    return data


def _over(stream: httpx2.Response) -> None:
    for gate in gates.values():
        if gate is not gates.get(stream.headers["x-name"]):
            gate.set()


@tool(effect="read")
def look(text: str) -> str:
    return text


@tool(effect="read")
def look_later(gate: str) -> str:
    assert gates[gate].wait(20)
    return gate


def same(agent: Callable[[], Any]) -> Any:
    """Record it, and replay it with nobody waiting in vain; gives what the replay gave, the record."""
    tape = recorded(agent)
    for gate in gates.values():
        gate.set()
    live = tape.outcomes
    result = replayed(tape, agent)
    assert told(result) == []
    assert result.error is None
    assert result.verdict.order_relaxed == 0
    assert live
    return tape


# ---- one thread, one task ---------------------------------------------------------------------------------------


def in_order() -> Any:
    first, second, third = opened("a"), opened("b"), opened("c")
    return read(first), look("meanwhile"), read(second), read(third)


def the_other_way_round() -> Any:
    first, second = opened("a"), opened("b")
    return read(second), read(first)


def in_turns() -> Any:
    first, second = opened("a"), opened("b")
    return list(zip(first.iter_raw(), second.iter_raw(), strict=True))


def closed_early() -> Any:
    first, second = opened("a"), opened("b")
    next(first.iter_raw())
    first.close()
    third = opened("c")
    second.close()
    return read(third)


kept: list[Any] = []


def left_unread() -> Any:
    kept[:] = [opened("a")]
    found: list[Any] = [look("meanwhile"), read(opened("b"))]
    with ThreadPoolExecutor(1) as pool:
        found += [pool.submit(look, "elsewhere").result(), pool.submit(lambda: read(opened("c"))).result()]
    kept[0].close()
    return found


def read_after_threads_that_start_later() -> Any:
    first = opened("a")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(look, ("x", "y")))
    return found, read(first)


def what_another_waits_for() -> Any:
    """The other thread ends before the second stream does, and waits for the first one."""
    gates["after"] = threading.Event()
    first = opened("a")
    other = threading.Thread(target=look_later, args=("after",))
    other.start()
    second = opened("b")
    found = read(first)
    gates["after"].set()
    other.join()
    return found, read(second)


async def ain_order() -> Any:
    first, second, third = await aopened("a"), await aopened("b"), await aopened("c")
    return await aread(first), look("meanwhile"), await aread(second), await aread(third)


async def athe_other_way_round() -> Any:
    first, second = await aopened("a"), await aopened("b")
    return await aread(second), await aread(first)


async def aclosed_early() -> Any:
    first, second = await aopened("a"), await aopened("b")
    await anext(first.aiter_raw())
    await first.aclose()
    third = await aopened("c")
    await second.aclose()
    return await aread(third)


async def aleft_unread() -> Any:
    kept[:] = [await aopened("a")]
    found = look("meanwhile"), await aread(await aopened("b")), await asyncio.create_task(aread(await aopened("c")))
    await kept[0].aclose()
    return found


async def opened_by_tasks_that_are_over() -> Any:
    first, second = [await asyncio.create_task(aopened(name)) for name in ("a", "b")]
    return await asyncio.create_task(aread(first)), await aread(second)


ALONE = [
    in_order,
    the_other_way_round,
    in_turns,
    closed_early,
    left_unread,
    read_after_threads_that_start_later,
    what_another_waits_for,
    ain_order,
    athe_other_way_round,
    aclosed_early,
    aleft_unread,
    opened_by_tasks_that_are_over,
]


@pytest.mark.parametrize("agent", ALONE, ids=lambda agent: agent.__name__)
def test_nobody_waits_for_itself(agent: Callable[[], Any]) -> None:
    same(agent)
    kept.clear()


def test_a_changed_agent_does_not_wait_for_a_stream_that_it_has_opened_itself() -> None:
    @tool(effect="read")
    def numbers() -> Iterator[int]:
        yield from range(3)

    def agent(first: int) -> list[int]:
        streams = [numbers(), numbers()]
        starts = [next(stream) for stream in streams]
        return [*starts, *streams[first], *streams[1 - first]]

    result = replayed(recorded(agent, 0), agent, 1)
    assert result.value == [0, 0, 1, 2, 1, 2]
    assert result.verdict.order_relaxed == 0


# ---- others read ------------------------------------------------------------------------------------------------


def read_by_threads() -> Any:
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, opened(name)) for name in ("a", "b")]
        return [reader.result() for reader in readers]


def read_by_threads_when_all_are_open() -> Any:
    are_open = threading.Event()

    def later(stream: httpx2.Response) -> bytes:
        assert are_open.wait(20)
        return read(stream)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(later, opened(name)) for name in ("a", "b")]
        are_open.set()
        return [reader.result() for reader in readers]


async def read_by_tasks() -> Any:
    readers = [asyncio.create_task(aread(await aopened(name))) for name in ("a", "b")]
    return [await reader for reader in readers]


async def read_by_tasks_when_all_are_open() -> Any:
    streams = [await aopened(name) for name in ("a", "b")]
    return await asyncio.gather(*map(aread, streams))


async def opened_and_read_by_tasks() -> Any:
    async def whole(name: str) -> bytes:
        return await aread(await aopened(name))

    return await asyncio.gather(whole("a"), whole("b"))


READ_BY_OTHERS = [
    (read_by_threads, "b"),
    (read_by_threads_when_all_are_open, "a"),
    (read_by_threads_when_all_are_open, "b"),
    (read_by_tasks, "b"),
    (read_by_tasks_when_all_are_open, "a"),
    (read_by_tasks_when_all_are_open, "b"),
    (opened_and_read_by_tasks, "b"),
]


@pytest.mark.parametrize(("agent", "last"), READ_BY_OTHERS, ids=lambda value: getattr(value, "__name__", value))
def test_streams_that_others_read_end_in_the_recorded_order(agent: Callable[[], Any], last: str, ends: list[int]) -> None:
    gates[last] = threading.Event()
    tape = recorded(agent)
    gates.clear()
    recorded_ends = [step.seq for step in sorted(tape.runs()[0].steps, key=_end)]
    for _ in range(min(SIZE, 20)):
        ends.clear()
        result = replayed(tape, agent)
        assert told(result) == []
        assert result.verdict.order_relaxed == 0
        assert ends == recorded_ends


def _end(step: Step) -> int:
    return step.seq_end or 0


def test_when_a_stream_gave_its_first_piece_is_told_from_the_start_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What began before that cannot have been caused by it: its end is waited for."""
    monkeypatch.setattr("spanreplay.boundary.step._now", lambda: 5)
    monkeypatch.setattr("spanreplay.instrumentation.http_exchange._now", lambda: 12)
    (step,) = recorded(lambda: read(opened("a"))).runs()[0].steps
    assert step.wire is not None
    assert step.wire.chunks == ((1, 7), (1, 7), (1, 7))
