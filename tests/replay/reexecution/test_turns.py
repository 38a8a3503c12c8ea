"""Siblings are given their answers in the recorded order of completion, and nobody waits for ever."""

import asyncio
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from typing import Any

import pytest

from spanreplay.instrumentation import tool
from spanreplay.replay.reexecution import turns
from spanreplay.replay.reexecution.turns import Turns
from support.taped import SIZE, recorded, replayed, told

N = 8
delays: dict[int, int] = {}
gate = threading.Condition()
finished: list[int] = []


@tool(effect="read")
async def slow(i: int) -> int:
    for _ in range(delays[i] * 15):
        await asyncio.sleep(0)
    return i


@tool(effect="read")
def slow_now(i: int) -> int:
    """Threads finish in the order of their delays."""
    with gate:
        gate.wait_for(lambda: len(finished) == delays[i], 5)
        finished.append(i)
        gate.notify_all()
    return i


async def layered(i: int, layers: int) -> int:
    if layers == 0:
        return await slow(i)
    return await asyncio.create_task(layered(i, layers - 1))


async def completed() -> list[int]:
    return [await t for t in asyncio.as_completed([layered(i, i % 3) for i in range(N)])]


async def first_completed() -> list[int]:
    left = {asyncio.create_task(layered(i, i % 3)) for i in range(N)}
    order = []
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        order += sorted(t.result() for t in done)
    return order


async def appended() -> list[int]:
    order: list[int] = []

    async def one(i: int) -> None:
        order.append(await layered(i, i % 3))

    async with asyncio.TaskGroup() as group:
        for i in range(N):
            group.create_task(one(i))
    return order


async def gathered_then_asks() -> list[int]:
    """What each asks next depends on how many were there before."""
    order: list[int] = []

    async def one(i: int) -> int:
        order.append(await slow(i))
        return await slow(len(order) - 1)

    await asyncio.gather(*(one(i) for i in range(N)))
    return order


def pool_completed() -> list[int]:
    with ThreadPoolExecutor(N) as pool:
        return [f.result() for f in as_completed([pool.submit(slow_now, i) for i in range(N)])]


def pool_first() -> list[int]:
    order: list[int] = []
    with ThreadPoolExecutor(N) as pool:
        left = {pool.submit(slow_now, i) for i in range(N)}
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            order += sorted(f.result() for f in done)
    return order


def threads_appending() -> list[int]:
    order: list[int] = []
    lock = threading.Lock()

    def one(i: int) -> None:
        with lock_of(i):
            value = slow_now(i)
            with lock:
                order.append(value)

    locks = {i: threading.Lock() for i in range(N)}

    def lock_of(i: int) -> threading.Lock:
        return locks[i]

    started = [threading.Thread(target=one, args=(i,)) for i in range(N)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return order


def _shuffle(seed: int) -> None:
    order = list(range(N))
    random.Random(seed).shuffle(order)
    delays.clear()
    delays.update(dict(zip(range(N), order, strict=True)))
    finished.clear()


@pytest.mark.parametrize("agent", [completed, first_completed, appended, gathered_then_asks], ids=lambda a: a.__name__)
def test_tasks_complete_in_the_recorded_order(agent: Callable[[], Any]) -> None:
    for seed in range(SIZE):
        _shuffle(seed)
        live: list[Any] = []

        async def once(live: list[Any] = live) -> list[int]:
            live.append(await agent())
            return list(live[-1])

        tape = recorded(once)
        result = replayed(tape, once)
        assert told(result) == []
        assert result.value == live[0]
        assert result.verdict.order_relaxed == 0


def test_the_order_of_threads_is_that_of_their_answers() -> None:
    _shuffle(3)
    tape = recorded(pool_completed)
    run = tape.runs()[0]
    ends = [s.input["arguments"]["i"] for s in sorted(run.steps, key=lambda s: s.seq_end or 0)]
    given: list[int] = []
    before = Turns.given

    def noting(self: Turns, seq: int) -> None:
        given.append(next(s.input["arguments"]["i"] for s in run.steps if s.seq == seq))
        before(self, seq)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "given", noting)
        for _ in range(SIZE):
            given.clear()
            assert replayed(tape, pool_completed).equal
            assert given == ends


@pytest.mark.parametrize("agent", [pool_completed, pool_first, threads_appending], ids=lambda a: a.__name__)
def test_threads_replay_equal(agent: Callable[[], Any]) -> None:
    _shuffle(5)
    tape = recorded(agent)
    for _ in range(SIZE):
        result = replayed(tape, agent)
        assert told(result) == []
        assert sorted(result.value) == list(range(N))
        assert result.verdict.order_relaxed == 0


def test_a_wait_for_a_sibling_that_does_not_come_is_bounded_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.02)
    delays.update({0: 1, 1: 5})

    async def both() -> list[int]:
        return list(await asyncio.gather(slow(0), slow(1)))

    async def one_after_the_other() -> list[int]:
        second = await asyncio.create_task(_named(1))
        return [second]

    async def _named(i: int) -> int:
        return await slow(i)

    tape = recorded(both)
    result = replayed(tape, one_after_the_other)
    assert result.verdict.order_relaxed == 1
    assert [d.kind for d in result.differences] == ["unreached"]


def test_a_sibling_waits_as_long_as_a_cancelled_one_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.01)

    @tool(effect="read")
    async def hangs() -> None:
        await asyncio.sleep(60)

    @tool(effect="read")
    async def after() -> str:
        await stopped.wait()
        return "after"

    async def agent() -> list[Any]:
        global stopped
        stopped = asyncio.Event()

        async def stop() -> str:
            try:
                await asyncio.wait_for(hangs(), 0.1)
            except TimeoutError:
                stopped.set()
            return "stopped"

        return [*await asyncio.gather(stop(), after()), await after()]  # with its last call the recording says which deadline expired

    tape = recorded(agent)
    result = replayed(tape, agent)
    assert told(result) == []
    assert result.verdict.order_relaxed == 0


stopped: asyncio.Event


def test_a_stopped_replay_lets_everybody_go() -> None:
    keeper = Turns({2: frozenset({1})}, lambda: None, wait_s=60)
    waiting = threading.Thread(target=keeper.turn(2).wait)
    waiting.start()

    async def both() -> None:
        task = asyncio.create_task(keeper.turn(2).wait_async())
        await asyncio.sleep(0)
        keeper.release()
        await task

    asyncio.run(both())
    waiting.join(5)
    assert not waiting.is_alive()


def test_a_large_group_is_ordered_without_a_wait_for_each_pair() -> None:
    async def many() -> int:
        return sum(await asyncio.gather(*(slow(i) for i in range(300))))

    delays.update(dict.fromkeys(range(300), 1))
    tape = recorded(many)
    from spanreplay.replay.reexecution.index import index_of

    order = index_of(tape.runs()[0]).ended_before
    assert sum(map(len, order.values())) == 299
    assert replayed(tape, many).equal


def test_what_comes_after_a_call_that_could_not_wait_waits_for_what_comes_before_it() -> None:
    """Plain code on an event loop is answered at once: its turn comes when that of the step before it has."""
    keeper = Turns({2: frozenset({1}), 3: frozenset({2}), 4: frozenset({3})}, lambda: None, wait_s=60)
    order: list[int] = []

    async def waits(seq: int) -> None:
        await keeper.turn(seq).wait_async()
        order.append(seq)
        keeper.given(seq)

    async def agent() -> None:
        later = [asyncio.create_task(waits(seq)) for seq in (4, 3)]
        keeper.turn(2).wait()
        keeper.given(2)
        await asyncio.sleep(0.01)
        assert order == []
        await waits(1)
        await asyncio.gather(*later)

    asyncio.run(agent())
    assert order == [1, 3, 4]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a loop of plain code cannot be told from a wait")
def test_a_thread_gets_its_answer_when_the_one_before_it_has_done_what_its_own_set_off() -> None:
    keeper = Turns({2: frozenset({1}), 3: frozenset({2})}, lambda: None, wait_s=60)
    order: list[int] = []

    def runs(seq: int) -> None:
        turn = keeper.turn(seq)
        turn.wait()
        turn.given()
        for _ in range((3 - seq) * 100_000):  # some milliseconds
            pass
        order.append(seq)

    with ThreadPoolExecutor(3) as pool:
        for seq in (3, 2, 1):
            pool.submit(runs, seq)
    assert order == [1, 2, 3]


def test_a_thread_that_goes_on_working_is_not_waited_for_without_end() -> None:
    keeper = Turns({2: frozenset({1})}, lambda: None, wait_s=60)
    over = threading.Event()

    def works() -> None:
        keeper.given(1)
        while not over.is_set():
            pass

    working = threading.Thread(target=works)
    working.start()
    keeper.turn(2).wait()
    over.set()
    working.join(5)
    assert not working.is_alive()
