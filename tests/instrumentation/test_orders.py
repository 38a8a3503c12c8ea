"""In which order jobs, results and items come is a part of the record, and a replay tells it again, however they end there."""

import asyncio
import concurrent.futures as cf
import os
import queue
import random
import threading
from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from typing import Any

import anyio
import pytest
import trio

from spanreplay.boundary.orders import Orders, decoded
from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.shims.ordered_sets import InOrder
from spanreplay.replay.reexecution import orders as recorded_orders
from spanreplay.semconv.attributes import STEP_ORDER
from support.taped import SIZE, recorded, recording, replayed, run, told

N = 6


class Ends:
    """Jobs end one after the other, in an order of ours."""

    def __init__(self, order: Iterable[int]) -> None:
        self.order = list(order)
        self._over = {number: threading.Event() for number in self.order}

    def _before(self, number: int) -> threading.Event | None:
        place = self.order.index(number)
        return self._over[self.order[place - 1]] if place else None

    def wait(self, number: int) -> None:
        """Until the one before has ended."""
        before = self._before(number)
        if before is not None:
            before.wait(20)
        self._over[number].set()

    async def turn(self, number: int) -> None:
        """The same on an event loop."""
        before = self._before(number)
        while before is not None and not before.is_set():
            await asyncio.sleep(0)
        self._over[number].set()


ends = Ends(range(N))


@tool(effect="read")
def look(text: str) -> str:
    return text


def job(number: int) -> int:
    ends.wait(number)
    if number == 1:
        raise ValueError(number)
    return number


def told_by(future: Any) -> str:
    return "cancelled" if future.cancelled() else repr(future.exception() or future.result())


async def task(number: int) -> int:
    await ends.turn(number)
    if number == 1:
        raise ValueError(number)
    return number


# ---- the forms --------------------------------------------------------------------------------------------------


def futures_as_completed() -> list[str]:
    with cf.ThreadPoolExecutor(N) as pool:
        return [look(told_by(future)) for future in cf.as_completed([pool.submit(job, number) for number in range(N)])]


def futures_in_sets() -> list[str]:
    found: list[str] = []
    with cf.ThreadPoolExecutor(N) as pool:
        left = {pool.submit(job, number) for number in range(N)}
        while left:
            done, left = cf.wait(left, return_when=cf.FIRST_COMPLETED)
            found.append(look(" ".join(map(told_by, done))))
    return found


def futures_that_call_back() -> list[str]:
    found: list[str] = []
    with cf.ThreadPoolExecutor(N) as pool:
        for number in range(N):
            pool.submit(job, number).add_done_callback(lambda future: found.append(told_by(future)))
    return [look(each) for each in found]


async def tasks_as_completed() -> list[str]:
    found: list[str] = []
    cancelled = asyncio.create_task(asyncio.sleep(60))
    cancelled.cancel()
    for each in asyncio.as_completed([*(task(number) for number in range(N)), cancelled]):
        try:
            found.append(look(repr(await each)))
        except (ValueError, asyncio.CancelledError) as error:
            found.append(look(repr(error)))
    return found


async def tasks_in_sets() -> list[str]:
    found: list[str] = []
    left = {asyncio.create_task(task(number)) for number in range(N)}
    while left:
        done, left = await asyncio.wait(left, return_when="FIRST_COMPLETED")
        found.append(look(" ".join(map(told_by, done))))
    return found


async def threads_of_asyncio() -> list[str]:
    found: list[str] = []

    async def one(number: int) -> None:
        try:
            found.append(look(repr(await asyncio.to_thread(job, number))))
        except ValueError as error:
            found.append(look(f"{len(found)} {error!r}"))

    asyncio.get_running_loop().set_default_executor(cf.ThreadPoolExecutor(N))
    async with asyncio.TaskGroup() as group:
        for number in range(N):
            group.create_task(one(number))
    return found


async def threads_of_anyio() -> list[str]:
    found: list[str] = []

    async def one(number: int) -> None:
        try:
            found.append(look(repr(await anyio.to_thread.run_sync(job, number))))
        except ValueError as error:
            found.append(look(f"{len(found)} {error!r}"))

    async with anyio.create_task_group() as group:
        for number in range(N):
            group.start_soon(one, number)
    return found


def results_of_a_pool() -> list[str]:
    found: list[str] = []
    with ThreadPool(N) as pool:
        results = pool.imap_unordered(job, range(N))
        for _ in range(N):
            try:
                found.append(look(repr(next(results))))
            except ValueError as error:
                found.append(look(repr(error)))
    return found


def callbacks_of_a_pool() -> list[str]:
    found: list[str] = []

    def keep(value: object) -> None:
        found.append(repr(value))

    with ThreadPool(N) as pool:
        for result in [pool.apply_async(job, (number,), callback=keep, error_callback=keep) for number in range(N)]:
            result.wait()
    return [look(each) for each in found]


def results_in_a_queue() -> list[str]:
    results: queue.Queue[int] = queue.Queue()

    def one(number: int) -> None:
        ends.wait(number)
        results.put(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(N)]
    for thread in threads:
        thread.start()
    return [look(repr(results.get())) for _ in threads]


def workers() -> list[str]:
    work: queue.Queue[int] = queue.Queue()
    results: queue.Queue[str] = queue.Queue()

    def worker(name: int) -> None:
        ends.wait(name)
        while True:
            try:
                item = work.get_nowait()
            except queue.Empty:
                return
            results.put(look(f"{item} by {name}"))

    for item in range(2 * N):
        work.put(item)
    threads = [threading.Thread(target=worker, args=(name,)) for name in range(N)]
    for thread in threads:
        thread.start()
    return [look(results.get()) for _ in range(2 * N)]


FORMS: list[Callable[[], Any]] = [
    futures_as_completed, futures_in_sets, futures_that_call_back, tasks_as_completed, tasks_in_sets, threads_of_asyncio, threads_of_anyio,
    results_of_a_pool, callbacks_of_a_pool, results_in_a_queue, workers,
]  # fmt: skip


def begin(order: Iterable[int]) -> None:
    global ends
    ends = Ends(order)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_what_comes_in_another_order_is_seen_in_the_recorded_one(form: Callable[[], Any]) -> None:
    begin(reversed(range(N)))
    with recording() as tape:
        value = run(form)
    for seed in range(max(2, SIZE // 5)):
        begin(random.Random(seed).sample(range(N), N))
        result = replayed(tape, form)
        assert (told(result), result.error, result.value) == ([], None, value)
        assert not result.verdict.order_relaxed


def test_what_comes_after_the_last_step_is_kept_with_the_end_of_the_run() -> None:
    def agent() -> list[str]:
        with agent_run("agent") as made, cf.ThreadPoolExecutor(N) as pool:
            look("before")
            found = [told_by(future) for future in cf.as_completed([pool.submit(job, number) for number in range(N)])]
            made.output = found
            return found

    begin(reversed(range(N)))
    tape = recorded(agent)
    begin(range(N))
    assert told(replayed(tape, agent)) == []


def test_a_time_out_comes_where_it_came() -> None:
    gate = threading.Event()

    def agent() -> list[str]:
        found: list[str] = []
        gate.clear()
        with cf.ThreadPoolExecutor(2) as pool:
            at_once: cf.Future[Any] = pool.submit(int)
            late: cf.Future[Any] = pool.submit(gate.wait, 20)
            at_once.result()
            try:
                found.extend(look(repr(future.result())) for future in cf.as_completed([late, at_once], timeout=0.01))
            except TimeoutError as error:
                found.append(look(str(error)))
            found.append(look(repr(len(cf.wait([late], timeout=0.01).done))))
            gate.set()
        return found

    def quicker() -> list[str]:
        waits, gate.wait = gate.wait, lambda timeout=None: True  # type: ignore[method-assign]
        try:
            return agent()
        finally:
            gate.wait = waits  # type: ignore[method-assign]

    with recording() as tape:
        assert agent() == ["0", "1 (of 2) futures unfinished", "0"]
    assert told(replayed(tape, quicker)) == []


def test_one_that_does_not_come_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_orders, "WAIT_S", 0.01)
    seen = threading.Event()

    def agent(awaits: bool) -> list[str]:
        seen.clear()
        found: list[str] = []
        with cf.ThreadPoolExecutor(2) as pool:
            futures: list[cf.Future[Any]] = [pool.submit(seen.wait if awaits else seen.is_set, *([20] if awaits else [])), pool.submit(int)]
            if not awaits:
                futures[0].result()
            for future in cf.as_completed(futures):
                found.append(type(future.result()).__name__)
                seen.set()
        return found

    with recording() as tape:
        assert agent(False) == ["bool", "int"]
        look("an order is kept with a step")
    result = replayed(tape, lambda: (agent(True), look("an order is kept with a step"))[0])
    assert result.value == ["int", "bool"]
    assert result.verdict.order_relaxed == 1


def test_tasks_that_are_cancelled_together_are_in_the_order_in_which_they_were_started() -> None:
    found: list[int] = []

    async def one(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            found.append(number)

    async def group() -> None:
        async with asyncio.TaskGroup() as made:
            for number in range(N):
                made.create_task(one(number))
            await asyncio.sleep(0)
            raise KeyError

    async def scope() -> None:
        async with anyio.create_task_group() as made:
            for number in range(N):
                made.start_soon(one, number)
            await asyncio.sleep(0)
            made.cancel_scope.cancel()

    async def left_behind() -> None:
        kept.extend(asyncio.create_task(one(number)) for number in range(N))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    with recording():
        for way in (group, scope, left_behind):
            found.clear()
            try:
                asyncio.run(way())
            except* KeyError:
                pass
            assert found == list(range(N)), way.__name__


def test_tasks_of_other_functions_and_scopes_are_cancelled_in_the_order_in_which_they_were_started() -> None:
    found: list[int] = []

    def made(number: int) -> Callable[[], Any]:
        async def one() -> None:
            try:
                with anyio.CancelScope():
                    await asyncio.sleep(60)
            finally:
                found.append(number)

        one.__qualname__ = f"one of {N - number}"  # not in the order of their names
        return one

    async def tasks() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(N):
                group.create_task(made(number)())
            await asyncio.sleep(0)
            raise KeyError

    async def scopes(directly: int = 0) -> None:
        loop = asyncio.get_running_loop()
        create = loop.create_task
        async with anyio.create_task_group() as group:
            for number in range(N):
                if number < directly:  # past the loop
                    loop.create_task = lambda coro, **more: asyncio.Task(coro, **more)  # type: ignore[method-assign]
                group.start_soon(made(number))
                loop.create_task = create  # type: ignore[method-assign]
            await asyncio.sleep(0)
            group.cancel_scope.cancel()

    with recording():
        for way in (tasks, scopes, lambda: scopes(2), lambda: scopes(N)):
            found.clear()
            try:
                asyncio.run(way())
            except* KeyError:
                pass
            assert found == list(range(N))


def test_tasks_and_threads_of_trio_come_in_the_recorded_order() -> None:
    def agent() -> list[str]:
        found: list[str] = []

        async def one(number: int) -> None:
            try:
                found.append(look(repr(await trio.to_thread.run_sync(ends.wait, number))))
                await trio.sleep(60)
            finally:
                found.append(look(f"{len(found)} {number}"))

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in range(N):
                    nursery.start_soon(one, number)
                while len(found) < N:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()

        trio.run(main)
        return found

    begin(reversed(range(N)))
    with recording() as tape:
        value = run(agent)
    for seed in range(3):
        begin(random.Random(seed).sample(range(N), N))
        result = replayed(tape, agent)
        assert (told(result), result.value) == ([], value)


def test_what_is_added_to_a_set_in_order_comes_last() -> None:
    made = InOrder.of([3, 1])
    made.add(2)
    made.add(0)
    made.remove(1)
    assert list(made) == [3, 2, 0]
    assert 1 not in made
    made |= {7}
    assert list(made) == [3, 2, 0, 7]


def test_nothing_is_kept_of_what_a_call_does_itself() -> None:
    @tool(effect="read")
    def inside() -> list[str]:
        return futures_as_completed()

    begin(range(N))
    tape = recorded(lambda: (inside(), look("after")))
    assert not any("spanreplay.order" in step for step in tape.steps)


def test_the_form_that_is_kept() -> None:
    orders = Orders()
    orders.add(("", "~a#0", "wait"), 3, (1, 0))
    orders.add(("", "", "called"), 0, ("~job#1!0",))
    orders.add(("", "~a#0", "wait"), 4, ())
    first = orders.take()
    orders.add(("", "~a#0", "wait"), 5, (2,))
    second = orders.take()
    assert first == '[0,["","~a#0","wait",[3,1,0],[4]],["","","called",[0,"~job#1!0"]]]'
    assert not orders
    found = [item for channel, items in decoded([second, first, second]) if channel[2] == "wait" for item in items]
    assert found == [(3, (1, 0)), (4, ()), (5, (2,))]


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", "{}", '[1,["","",3,[0]]]', '[1,["","","a",[0.5]]]', '[true,["","","a",[0]]]', "[" * 10_000]
)
def test_what_is_no_order_is_left_out(text: str) -> None:
    assert list(decoded([text])) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_leaves_to_its_parent_what_that_has_seen() -> None:
    seen = Orders()
    seen.add(("", "", "pool"), 1, (0,))
    child = os.fork()
    if child == 0:
        os._exit(3 if seen else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert seen


@pytest.mark.parametrize("in_block", [False, True])
def test_a_deadline_that_expired_is_kept_alike_by_every_python(in_block: bool) -> None:
    """``asyncio.wait_for`` is a task and a timer of its own in one version, and a block with ``asyncio.timeout`` in others."""

    @tool(effect="read")
    async def ask() -> None:
        await asyncio.Event().wait()

    @tool(effect="read")
    async def tell() -> None:
        pass

    async def wait() -> None:
        await ask()

    async def limited() -> None:
        if in_block:
            async with asyncio.timeout(0.01):
                await wait()
        else:
            await asyncio.wait_for(wait(), 0.01)

    async def agent() -> None:
        with pytest.raises(TimeoutError):
            await limited()
        await tell()

    tape = recorded(agent)
    here = "test_a_deadline_that_expired_is_kept_alike_by_every_python.<locals>"
    place = "" if in_block else f"~{here}.wait#0"
    told_of = {(scope, name): items for (_, scope, name), items in decoded(step[STEP_ORDER] for step in tape.steps if STEP_ORDER in step)}
    assert [members[:2] for _, members in told_of.pop(("", "deadlines"))] == [(f"{here}.limited", 0)]
    assert [members for _, members in told_of.pop((place, "cancelled"), [])] == ([] if in_block else [(2,)])
    assert not told_of
    assert tape.paths == [f"{place}/tool_call:ask#0".removeprefix("/"), "tool_call:tell#0"]
    result = replayed(tape, agent)
    assert (told(result), result.verdict.order_relaxed) == ([], 0)
