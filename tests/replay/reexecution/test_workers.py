"""Where workers make one call for items that nothing tells apart, the difference that comes of it says so."""

import asyncio
import queue
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from spanreplay.boundary.clock_reads import MOST_OF_ONE, ClockReads
from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.workers import queued_items, timed_items, tireless_reader, unnamed_items
from support.handmade import run, step
from support.taped import recorded, replayed


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ((("~w#0", "1"), ("~w#1", "1"), ("~w#0", "1")), True),
        ((("~w#0", "1"), ("~w#1", "2"), ("~w#0", "3")), False),  # the input tells
        ((("~w#0", "1"), ("~w#1", "1")), False),  # one call each: the path tells
        ((("~w#0", "1"), ("~w#0", "1")), False),  # nobody else
        ((("~w#0/@a#0", "1"), ("~w#1/@b#0", "1"), ("~w#0/@c#0", "1")), False),  # named
    ],
)
def test_which_calls_are_for_items_that_nothing_tells_apart(calls: tuple[tuple[str, str], ...], found: bool) -> None:
    counts: dict[str, int] = {}
    steps = []
    for seq, (scope, asked) in enumerate(calls, 1):
        number = counts[scope] = counts.get(scope, -1) + 1
        steps.append(step(seq, f"{scope}/tool_call:t#{number}", asked, typed_result=str(seq)))
    assert unnamed_items(run(*steps)) == ("tool_call t" if found else None)


@pytest.mark.parametrize(
    ("scopes", "reads", "timed", "tireless"),
    [
        (("~w#0", "~w#1", "~w#0"), 2, True, False),
        (("~w#0", "~w#1", "~w#0"), 0, False, False),
        (("~w#0", "~w#1"), 2, False, False),  # one item each
        (("~w#0", "~other#0", "~w#0"), 2, False, False),
        (("~w#0/@a#0", "~w#1/@b#0", "~w#0/@c#0"), 2, False, False),  # named
        (("~w#0", "~other#0"), MOST_OF_ONE + 5, False, True),
    ],
)
def test_what_workers_read_of_the_clock_is_the_workers(scopes: tuple[str, ...], reads: int, timed: bool, tireless: bool) -> None:
    counts: dict[str, int] = {}
    steps = []
    for seq, scope in enumerate(scopes, 1):
        number = counts[scope] = counts.get(scope, -1) + 1
        steps.append(step(seq, f"{scope}/tool_call:t#{number}", str(seq), typed_result=str(seq)))
    kept = ClockReads()
    for ns in range(reads):
        kept.add(("", scopes[0], "agent.py:work"), 10**18 + ns)
    made = replace(run(*steps), clock_reads=(kept.take(),))
    assert timed_items(made, 1) == ("tool_call t" if timed else None)
    assert tireless_reader(made, 1) == ("agent.py:work" if tireless else None)
    assert timed_items(made, None) is tireless_reader(made, None) is None


@tool(effect="read")
async def look(what: object) -> str:
    return "answer"


@tool(effect="read")
def see(what: object) -> str:
    return "answer"


def workers(first: int, *, waiting: bool) -> Callable[[], None]:
    """Two that take from a queue of six; the first one needs so many turns of the loop for an item."""

    async def work(items: "asyncio.Queue[int]", turns: int) -> None:
        done: list[int] = []
        while items.qsize():
            done.append(await items.get() if waiting else items.get_nowait())
            for _ in range(turns):
                await asyncio.sleep(0)
        await look(done)

    async def main() -> None:
        items: asyncio.Queue[int] = asyncio.Queue()
        for item in range(6):
            items.put_nowait(item)
        await asyncio.gather(work(items, first), work(items, 3))

    def agent() -> None:
        with agent_run("agent"):
            asyncio.run(main())

    return agent


@pytest.mark.parametrize("waiting", [True, False])
def test_where_workers_took_other_items_from_a_queue_the_report_asks_for_scope(waiting: bool) -> None:
    tape = recorded(workers(1, waiting=waiting))
    (made,) = (one for one in tape.runs() if one.steps)
    assert queued_items(made, "tool_call look")
    assert not queued_items(made, "tool_call see")
    result = replayed(tape, workers(60, waiting=waiting))
    assert "with scope(key):" in (result.differences[0].cause or "")


def test_tasks_that_take_one_item_or_none_and_a_single_worker_are_no_workers_of_a_queue() -> None:
    async def one(items: "asyncio.Queue[int]") -> None:
        item = items.get_nowait()
        await look(item)
        await look(item)

    async def several(items: "asyncio.Queue[int]") -> None:
        while not items.empty():
            await look(await items.get())

    async def main() -> None:
        items: asyncio.Queue[int] = asyncio.Queue()
        for item in range(6):
            items.put_nowait(item)
        await asyncio.gather(one(items), one(items))
        await asyncio.gather(several(items))

    def agent() -> None:
        with agent_run("agent"):
            asyncio.run(main())

    (made,) = (found for found in recorded(agent).runs() if found.steps)
    assert not queued_items(made, "tool_call look")


def test_threads_that_take_from_a_queue_are_workers() -> None:
    def agent() -> None:
        def work() -> None:
            for _ in range(2):
                see(items.get())

        with agent_run("agent"):
            items = queue.Queue[int]()
            for item in range(4):
                items.put(item)
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    (made,) = (found for found in recorded(agent).runs() if found.steps)
    assert queued_items(made, "tool_call see")
