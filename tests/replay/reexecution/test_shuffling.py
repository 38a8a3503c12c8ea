"""A shuffled replay of an agent that depends on no chance is equal; what tasks are promised stays."""

import asyncio
import random
import sys
from asyncio import base_events
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import time_machine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanreplay.boundary.scope import process
from spanreplay.boundary.session import RunContext, entered
from spanreplay.instrumentation import shims
from spanreplay.instrumentation.shims.threads import Job
from spanreplay.replay.reexecution import shuffling
from spanreplay.replay.reexecution.answering import prepared
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.shuffling import Shuffled
from spanreplay.replay.reexecution.uncalled import enter_unreached
from support.size import FULL
from support.small_agents import Plan, Small, plans
from support.taped import recorded, run


@contextmanager
def put_back() -> Iterator[None]:
    """The process is as it was after this block."""
    loops, switches, day = base_events.BaseEventLoop._run_once, sys.getswitchinterval(), shuffling._another_day  # type: ignore[attr-defined]
    jobs = Job.__call__
    shuffling._another_day = lambda days: None
    try:
        yield
    finally:
        base_events.BaseEventLoop._run_once = loops  # type: ignore[attr-defined]
        shuffling._another_day = day
        Job.__call__ = jobs  # type: ignore[method-assign]
        shuffling._taken.clear()
        sys.setswitchinterval(switches)


@given(plan=plans(depth=1), seed=st.integers(0, 1000))
@settings(max_examples=60 if FULL else 6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_shuffled_replay_has_no_false_difference(plan: Plan, seed: int) -> None:
    runs = [one for one in recorded(Small(plan, random.Random(seed)).run).runs() if one.steps]
    ledger = Ledger()
    made = prepared(runs, ledger)
    active = process.active
    with put_back():
        made.session.interceptors = (Shuffled(made.interceptor, seed),)
        made.session.foresees = None
        shims.install()
        try:
            with entered(made.session.root(RunContext(run_id="replay", name="replay", fallback=True))):
                run(Small(plan, random.Random(seed + 1)).run)
        finally:
            process.active = active
            shims.uninstall()
    enter_unreached(runs, ledger)
    assert [difference.summary() for difference in ledger.totals.differences] == []


def test_tasks_begin_in_order_and_who_waits_for_the_same_thing_goes_on_in_order() -> None:
    async def orders() -> tuple[list[int], list[int], list[int]]:
        begun: list[int] = []
        queued: list[int] = []
        apart: list[int] = []
        loop = asyncio.get_running_loop()
        same, mine = loop.create_future(), [loop.create_future() for _ in range(10)]

        async def one(number: int) -> None:
            begun.append(number)
            await asyncio.shield(same) if number % 2 else await same
            queued.append(number)
            await mine[number]
            apart.append(number)

        tasks = [asyncio.create_task(one(number)) for number in range(10)]
        await asyncio.sleep(0)
        same.set_result(None)
        for _ in range(5):
            await asyncio.sleep(0)
        for future in mine:
            future.set_result(None)
        await asyncio.gather(*tasks)
        return begun, queued[:5], apart

    found = []
    for seed in range(4):
        with put_back():
            shuffling._shuffle_loops(random.Random(seed))
            found.append(asyncio.run(orders()))
    assert {tuple(begun) for begun, _, _ in found} == {tuple(range(10))}
    assert {tuple(queued) for _, queued, _ in found} == {(0, 2, 4, 6, 8)}, "they wait for one future"
    assert len({tuple(apart) for _, _, apart in found}) > 1, "and these for one each"


def test_a_copy_of_the_process_keeps_the_day_that_it_has() -> None:
    with time_machine.travel("2020-02-02 12:30:00Z", tick=True):
        shuffling._another_day(100)
        assert date.today() == date(2020, 2, 2)


def test_sets_of_things_have_another_order_each_time() -> None:
    class Thing:
        def __init__(self, number: int) -> None:
            self.number = number

    orders = set()
    with put_back():
        for seed in range(8):
            shuffling._shuffle_memory(random.Random(seed))
            orders.add(tuple(thing.number for thing in {Thing(number) for number in range(8)}))
    assert len(orders) > 1
