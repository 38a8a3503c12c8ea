"""Agents that make one identical call from many tasks at once, in every way there is to start them: ``concurrent_agents.py CASE N K``.

Each records itself once and replays itself K times with the tasks in another order, in this process, and prints what was wrong: how many
of the N results were another task's, how many replays differed, and how many calls were matched otherwise than by their place.
"""

import asyncio
import functools
import json
import queue
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent.parent)

from spanreplay.instrumentation import agent_run, scope, tool
from support.taped import recording, replayed, told

MANY = 200


class Chance:
    """Another order each time: how many turns a task waits."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def turns(self) -> int:
        """Some turns."""
        with self._lock:
            return self._random.randrange(8)


chance = Chance(0)
answers = iter(range(10**9))


@tool(effect="read")
async def ask() -> int:
    """Every call is the same, and gets another answer."""
    return next(answers)


@tool(effect="read")
def ask_now() -> int:
    """As :func:`ask`."""
    return next(answers)


@tool(effect="read")
def ask_about(x: int) -> tuple[int, int]:
    """Calls that differ."""
    return x, next(answers)


async def late() -> int:
    """Wait, ask, wait."""
    for _ in range(chance.turns()):
        await asyncio.sleep(0)
    return await ask()


def late_now() -> int:
    """Let others go first, sometimes."""
    gate = threading.Event()
    for _ in range(chance.turns() // 4):
        gate.wait(0.0001)
    return ask_now()


# ---- asyncio ----------------------------------------------------------------------------------------------------


async def create_task() -> list[int]:
    return [await task for task in [asyncio.create_task(late()) for _ in range(MANY)]]


async def gather() -> list[int]:
    return list(await asyncio.gather(*(late() for _ in range(MANY))))


async def task_group() -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(late()) for _ in range(MANY)]
    return [task.result() for task in tasks]


async def to_thread() -> list[int]:
    return list(await asyncio.gather(*(asyncio.to_thread(late_now) for _ in range(MANY))))


def thread_pool() -> list[int]:
    with ThreadPoolExecutor(8) as pool:
        return [future.result() for future in [pool.submit(late_now) for _ in range(MANY)]]


async def nested() -> list[Any]:
    """Task groups that gather threads that run loops of their own."""

    def in_a_thread() -> list[int]:
        async def both() -> list[int]:
            return list(await asyncio.gather(late(), late()))

        return [late_now(), *asyncio.run(both())]

    async def one() -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(late()), group.create_task(asyncio.to_thread(in_a_thread))]
        return [task.result() for task in tasks] + list(await asyncio.gather(late(), asyncio.wait_for(late(), 60)))

    return list(await asyncio.gather(*(one() for _ in range(MANY // 7))))


async def sub_agents() -> list[list[int]]:
    """Distinct sub-agents in parallel, each of which asks the same several times at once."""

    async def one(number: int) -> list[int]:
        async with agent_run(f"agent-{number}", input="the same"):
            first = await late()
            return [first, *(await asyncio.gather(*(late() for _ in range(3))))]

    async with agent_run("top"):
        return list(await asyncio.gather(*(one(number) for number in range(50))))


async def equal_sub_agents() -> list[list[int]]:
    """The same with equal names and inputs: where each was started is all that tells them apart."""

    async def one() -> list[int]:
        async with agent_run("agent", input="the same"):
            return [await late(), await late()]

    async with agent_run("top"):
        return list(await asyncio.gather(*(one() for _ in range(50))))


async def eager_tasks() -> list[int]:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(late()) for _ in range(MANY // 2)]
    return [task.result() for task in tasks] + list(await asyncio.gather(*(late() for _ in range(MANY // 2))))


async def eager_anyio() -> list[int]:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
    return await _in_anyio(MANY)


async def callbacks_of_timers() -> list[int]:
    """Each timer starts a task, and those are due in any order."""
    loop, tasks = asyncio.get_running_loop(), dict[int, "asyncio.Task[int]"]()
    for number in range(MANY):
        loop.call_later(chance.turns() / 2000, lambda number: tasks.setdefault(number, loop.create_task(late())), number)
    while len(tasks) < MANY:
        await asyncio.sleep(0.001)
    return [await tasks[number] for number in range(MANY)]


async def ends_of_tasks() -> list[int]:
    """Each task starts another one as it ends."""

    async def wait() -> None:
        for _ in range(chance.turns()):
            await asyncio.sleep(0)

    tasks = dict[int, "asyncio.Task[int]"]()
    first = [asyncio.create_task(wait()) for _ in range(MANY)]
    for number, task in enumerate(first):
        task.add_done_callback(lambda _, number=number: tasks.setdefault(number, asyncio.ensure_future(late())))  # type: ignore[misc]
    await asyncio.gather(*first)
    await asyncio.sleep(0)
    return [await tasks[number] for number in range(MANY)]


async def locks() -> list[Any]:
    """Few at a time; who comes first is chance, and what one sees of the others."""
    few, one, condition, seen = asyncio.Semaphore(3), asyncio.Lock(), asyncio.Condition(), list[int]()

    async def work(number: int) -> Any:
        for _ in range(chance.turns()):
            await asyncio.sleep(0)
        async with few:
            answer = await late()
        async with one:
            seen.append(answer)
            told = ask_about(len(seen) * 1000 + number)
        async with condition:
            condition.notify_all()
            return answer, told, ask_about(sum(seen))

    return list(await asyncio.gather(*(work(number) for number in range(MANY))))


# ---- queues -----------------------------------------------------------------------------------------------------


def queue_of_different_items() -> list[Any]:
    """Workers take what comes: the input tells whose call it is."""
    return _worked_off(lambda item: ask_about(item))


def queue_with_scopes() -> list[Any]:
    """The same call for every item: the key of the item tells."""

    def work(item: int) -> int:
        with scope(f"item-{item}"):
            return late_now()

    return _worked_off(work)


def _worked_off(work: Callable[[int], Any]) -> list[Any]:
    items: queue.Queue[int | None] = queue.Queue()
    done: dict[int, Any] = {}

    def worker() -> None:
        while (item := items.get()) is not None:
            threading.Event().wait(chance.turns() / 10_000)
            done[item] = work(item)

    for item in [*range(MANY), *[None] * 4]:
        items.put(item)
    workers = [threading.Thread(target=worker) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return [done[item] for item in range(MANY)]


async def asyncio_queue_with_scopes() -> list[int]:
    items: asyncio.Queue[int | None] = asyncio.Queue()
    done: dict[int, int] = {}

    async def worker() -> None:
        while (item := await items.get()) is not None:
            with scope(f"item-{item}"):
                done[item] = await late()

    for item in [*range(MANY), *[None] * 8]:
        items.put_nowait(item)
    await asyncio.gather(*(worker() for _ in range(8)))
    return [done[item] for item in range(MANY)]


async def tasks_for_items() -> list[int]:
    """One task starts another one for each item, in the order in which the items come."""
    items: asyncio.Queue[int] = asyncio.Queue()
    tasks = dict[int, "asyncio.Task[int]"]()

    async def produce(number: int) -> None:
        for _ in range(chance.turns()):
            await asyncio.sleep(0)
        await items.put(number)

    async with asyncio.TaskGroup() as group:
        for number in range(MANY):
            group.create_task(produce(number))
        for _ in range(MANY):
            tasks[await items.get()] = group.create_task(late())
    return [tasks[number].result() for number in range(MANY)]


# ---- other loops ------------------------------------------------------------------------------------------------


async def _in_anyio(number: int, *, threads: bool = False) -> list[int]:
    import anyio
    import anyio.to_thread

    found: dict[int, int] = {}

    async def one(index: int) -> None:
        for _ in range(chance.turns()):
            await anyio.sleep(0)
        found[index] = await (anyio.to_thread.run_sync(late_now) if threads else ask())

    async with anyio.create_task_group() as group:
        for index in range(number):
            group.start_soon(one, index)
    return [found[index] for index in range(number)]


def anyio_on_asyncio() -> list[int]:
    import anyio

    return anyio.run(_in_anyio, MANY)


def anyio_threads_on_asyncio() -> list[int]:
    import anyio

    return anyio.run(functools.partial(_in_anyio, threads=True), MANY)


def anyio_on_trio() -> list[int]:
    import anyio

    return anyio.run(_in_anyio, MANY, backend="trio")


def anyio_threads_on_trio() -> list[int]:
    import anyio

    return anyio.run(functools.partial(_in_anyio, threads=True), MANY, backend="trio")


def trio_nursery() -> list[int]:
    import importlib

    trio: Any = importlib.import_module("trio")
    found: dict[Any, int] = {}

    async def one(index: Any) -> None:
        for _ in range(chance.turns()):
            await trio.lowlevel.checkpoint()
        found[index] = await ask()

    async def nest(index: int) -> None:
        async with trio.open_nursery() as nursery:
            for inner in range(2):
                nursery.start_soon(one, (index, inner))

    async def started(index: Any, task_status: Any) -> None:
        task_status.started()
        await one(index)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for index in range(MANY // 4):
                nursery.start_soon(nest, index)
                nursery.start_soon(one, index)
                await nursery.start(started, -1 - index)

    trio.run(main)
    return [found[key] for key in sorted(found, key=str)]


def trio_threads() -> list[int]:
    import importlib

    trio: Any = importlib.import_module("trio")
    found: dict[int, int] = {}

    async def one(index: int) -> None:
        found[index] = await trio.to_thread.run_sync(late_now)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for index in range(MANY):
                nursery.start_soon(one, index)

    trio.run(main)
    return [found[index] for index in range(MANY)]


def on_uvloop() -> list[Any]:
    import importlib

    uvloop: Any = importlib.import_module("uvloop")

    async def all_ways() -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(late()) for _ in range(MANY // 3)]
        threads = await asyncio.gather(*(asyncio.to_thread(late_now) for _ in range(MANY // 3)))
        return [*(task.result() for task in tasks), *threads, *await asyncio.gather(*(late() for _ in range(MANY // 3)))]

    found: list[Any] = uvloop.run(all_ways())
    return found


def nested_loops() -> list[int]:
    """``nest_asyncio``: a loop is run inside itself."""
    import importlib

    nest: Any = importlib.import_module("nest_asyncio")
    loop = asyncio.new_event_loop()
    nest.apply(loop)

    async def inside() -> int:
        async def both() -> list[int]:
            return list(await asyncio.gather(late(), late()))

        return sum(asyncio.get_event_loop().run_until_complete(both()))

    async def main() -> list[int]:
        return list(await asyncio.gather(*(inside() for _ in range(MANY // 8))))

    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


# ---- what comes back first --------------------------------------------------------------------------------------


async def _in_order() -> list[int]:
    """Siblings note their answers as they come; a few rounds."""
    found: list[int] = []

    async def one() -> None:
        for _ in range(chance.turns()):
            await asyncio.sleep(0)
        answer = await slow()
        found.append(answer)

    for _ in range(10):
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(one())
    return found


@tool(effect="read")
async def slow() -> int:
    """Takes some turns of the loop."""
    for _ in range(chance.turns()):
        await asyncio.sleep(0)
    return next(answers)


def order_on_asyncio() -> list[int]:
    return asyncio.run(_in_order())


def order_on_uvloop() -> list[int]:
    import importlib

    uvloop: Any = importlib.import_module("uvloop")
    found: list[int] = uvloop.run(_in_order())
    return found


def order_on_trio() -> list[int]:
    import importlib

    trio: Any = importlib.import_module("trio")
    found: list[int] = []

    async def one() -> None:
        for _ in range(chance.turns()):
            await trio.lowlevel.checkpoint()
        found.append(await ask())

    async def main() -> None:
        for _ in range(10):
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(one)

    trio.run(main)
    return found


def order_in_threads() -> list[int]:
    """Each thread is given its answer after the one that had its before."""
    found: list[int] = []
    lock = threading.Lock()

    def one() -> None:
        answer = late_now()
        with lock:
            found.append(answer)

    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            for _ in range(8):
                pool.submit(one)
    return [len(found), *sorted(found)]


CASES: dict[str, Callable[[], Any]] = {
    case.__name__: case
    for case in (
        create_task,
        gather,
        task_group,
        to_thread,
        thread_pool,
        nested,
        sub_agents,
        equal_sub_agents,
        eager_tasks,
        eager_anyio,
        callbacks_of_timers,
        ends_of_tasks,
        locks,
        queue_of_different_items,
        queue_with_scopes,
        asyncio_queue_with_scopes,
        tasks_for_items,
        anyio_on_asyncio,
        anyio_threads_on_asyncio,
        anyio_on_trio,
        anyio_threads_on_trio,
        trio_nursery,
        trio_threads,
        on_uvloop,
        nested_loops,
        order_on_asyncio,
        order_on_uvloop,
        order_on_trio,
        order_in_threads,
    )
}


def main(name: str, number: int, replays: int) -> dict[str, int]:
    """Record once and replay; what was wrong."""
    global chance, MANY
    MANY = number
    case = CASES[name]
    chance = Chance(0)
    with recording() as tape:
        made = case()
        recorded = asyncio.run(made) if asyncio.iscoroutine(made) else made
    found = {"calls": len(tape.starts), "wrong": 0, "differ": 0, "by_input": 0, "relaxed": 0}
    for seed in range(1, replays + 1):
        chance = Chance(seed)
        result = replayed(tape, case)
        found["wrong"] += result.value != recorded
        found["differ"] += bool(told(result)) or result.error is not None
        found["by_input"] += result.verdict.matched_by_input
        found["relaxed"] += result.verdict.order_relaxed
        if result.error is not None and not told(result):
            raise result.error
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
