"""A replay tells the program the monotonic times that it read when it was recorded, and everybody else the real ones."""

import asyncio
import copy
import pickle
import queue
import sys
import threading
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from types import BuiltinFunctionType
from typing import Any

import pytest
import tenacity

from spanreplay.boundary.clock_reads import MOST_OF_ONE, ClockReads
from spanreplay.boundary.scope import current_scope
from spanreplay.boundary.session import Session
from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.shims import clock, monotonic
from spanreplay.instrumentation.shims.loop_time import LoopTime
from spanreplay.replay.reexecution.clock import RecordedClock
from support.taped import Tape, recorded, replayed, told

SHORT_S = 0.004


@tool(effect="read")
def poll(what: object) -> str:
    return "pending"


def record(agent: Callable[[], Any]) -> Tape:
    """Record an agent whose reads of clocks are kept."""

    def watched() -> None:
        scope = current_scope()
        assert scope is not None
        clock.install(scope.session)
        try:
            with agent_run("agent") as run:
                run.output = agent()
        finally:
            clock.uninstall()

    return recorded(watched)


def replay(tape: Tape, agent: Callable[[], Any]) -> Any:
    def main() -> Any:
        with agent_run("agent") as run:
            run.output = agent()
        return run.output

    result = replayed(tape, main)
    assert told(result) == []
    return result


def until_a_deadline() -> int:
    number, deadline = 0, time.monotonic() + SHORT_S
    while time.monotonic() < deadline:
        poll(number)
        number += 1
    return number


def as_long_as_it_takes() -> list[float]:
    began, taken = perf_counter(), [0.0]
    while taken[-1] < SHORT_S:
        poll(f"for {taken[-1]} s now")
        taken.append(perf_counter() - began)
    return taken


def in_nanoseconds() -> list[int]:
    began, taken = time.monotonic_ns(), [0]
    while taken[-1] < SHORT_S * 1e9:
        taken.append(time.monotonic_ns() - began + 0 * time.perf_counter_ns())
        poll(taken[-1])
    return taken


def in_threads() -> list[list[int]]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda _: in_nanoseconds(), range(3)))


def in_tasks() -> list[list[int]]:
    async def one() -> list[int]:
        await asyncio.sleep(0)
        return in_nanoseconds()

    async def all_of_them() -> list[list[int]]:
        return list(await asyncio.gather(one(), one()))

    return asyncio.run(all_of_them())


def by_the_loop() -> list[float]:
    async def until() -> list[float]:
        loop = asyncio.get_running_loop()
        began, taken = loop.time(), []
        deadline = began + SHORT_S
        while loop.time() < deadline:
            taken.append(loop.time() - began)
            poll(f"{taken[-1]}, {round(deadline - loop.time(), 9)} left")
        return taken

    return asyncio.run(until())


def in_a_library() -> int:
    attempts = 0

    def attempt() -> str:
        nonlocal attempts
        attempts += 1
        return poll(attempts)

    pending = tenacity.retry_if_result(lambda given: given == "pending")
    tenacity.Retrying(stop=tenacity.stop_after_delay(SHORT_S), retry=pending, retry_error_callback=lambda state: None)(attempt)
    return attempts


FORMS = [until_a_deadline, as_long_as_it_takes, in_nanoseconds, in_threads, in_tasks, by_the_loop, in_a_library]


@pytest.mark.parametrize("agent", FORMS, ids=lambda form: form.__name__)
def test_a_loop_until_a_time_makes_the_same_calls_and_reads_the_same_to_the_last_digit(agent: Callable[[], Any]) -> None:
    tape = record(agent)
    for _ in range(100):  # the processor may be taken away for as long as the loop lasts
        if len(tape.paths) > 1:
            break
        tape = record(agent)
    assert len(tape.paths) > 1
    for _ in range(3):
        result = replay(tape, agent)
        assert result.verdict.matched == len(tape.paths) - 1
    assert isinstance(time.monotonic, BuiltinFunctionType)
    assert isinstance(perf_counter, BuiltinFunctionType)


def test_everybody_else_keeps_the_real_clock() -> None:
    seen: list[float] = []
    known: dict[str, Any] = {"time": time, "__name__": "library"}
    exec(compile("def read(): return time.monotonic()", threading.__file__, "exec"), known)

    async def ages() -> None:
        loop = asyncio.get_running_loop()
        seen.extend((known["read"](), loop.time()))
        await asyncio.sleep(0)

    def agent() -> None:
        time.monotonic()
        asyncio.run(ages())
        with pytest.raises(queue.Empty):
            queue.Queue[int]().get(timeout=0.001)
        assert not threading.Event().wait(0.001)

    tape = record(agent)
    seen.clear()
    before = time.monotonic()
    replay(tape, agent)
    assert before <= seen[0] <= seen[1] <= time.monotonic()


def test_timers_that_the_program_sets_by_the_time_of_the_loop_wait_by_the_real_clock() -> None:
    due: list[str] = []

    async def timers() -> None:
        loop = asyncio.get_running_loop()
        began, really = loop.time(), loop.create_future()
        loop.call_at(began + 0.03, really.set_result, None)
        loop.call_at(began + 0.02, due.append, "then")
        loop.call_later(0.01, due.append, "first")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(loop.time() + 0.001) as limit:
                await asyncio.Event().wait()
        assert limit.expired()
        await really
        due.append("last")

    def agent() -> None:
        asyncio.run(timers())

    tape = record(agent)
    for _ in range(2):
        due.clear()
        replay(tape, agent)
        assert due == ["first", "then", "last"]


def test_a_time_of_a_loop_is_what_was_recorded_among_its_like_and_the_real_one_otherwise() -> None:
    first, later = LoopTime(100.0, 7.0), LoopTime(200.0, 7.5)
    assert later - first == 0.5
    assert first + 0.4 < later <= first + 0.5 <= 0.5 + first < first + 0.6 > later >= later - 0.1 > first
    assert (later - 150 < first, first < 100.5, float(later + 1), f"{first}") == (True, True, 201.0, "100.0")
    assert type(copy.deepcopy(first)) is LoopTime
    assert type(pickle.loads(pickle.dumps(first))) is float
    assert (first.__add__("x"), first.__sub__("x")) == (NotImplemented, NotImplemented)


def test_as_an_attribute_of_a_class_it_takes_no_self_and_it_is_copied_by_name() -> None:
    def agent() -> None:
        class Timer:
            clock: Any = time.monotonic

        assert isinstance(Timer().clock(), float)
        assert pickle.loads(pickle.dumps(time.monotonic)) is copy.deepcopy(time.monotonic) is time.monotonic
        assert (time.monotonic.__name__, time.monotonic.__module__) == ("monotonic", "time")

    replay(record(agent), agent)


def test_after_what_is_kept_the_clock_ticks_on_and_never_goes_back() -> None:
    def agent() -> bool:
        last, number = time.monotonic(), 0
        deadline = last + SHORT_S
        while number < MOST_OF_ONE + 50 or last < deadline:
            now = time.monotonic()
            assert now >= last
            last, number = now, number + 1
        poll("once")
        return other(last)

    def other(last: float) -> bool:
        return time.monotonic() >= last

    assert replay(record(agent), agent).value is True


def clock_of(*anchors: int, reads: tuple[int, ...] = ()) -> tuple[RecordedClock, Session]:
    """A clock of a run that began at a second, when the monotonic one said something, and read these then."""
    kept = ClockReads()
    for reader, times in ((monotonic.anchor_of("monotonic"), anchors), (("", "", "agent.py:main monotonic"), reads)):
        for ns in times:
            kept.add(reader, ns)
    (run,) = record(lambda: poll("x")).runs()[-1:]
    made = RecordedClock([replace(run, started_ns=anchors[0], clock_reads=(kept.take(),), steps=())])
    session = Session(mode="replay")
    session.told_by = made
    return made, session


SECOND = 10**9
AT = 1_700_000_000 * SECOND


def test_it_says_what_was_recorded_and_where_that_is_still_to_come_whole_seconds_less() -> None:
    for up, now, expected in ((50, 80, 50), (50, 50, 50), (80, 50.5, 50), (80.25, 50, 49.25)):
        made, session = clock_of(AT, int(up * SECOND), reads=(int(up * SECOND), int((up + 3) * SECOND)))
        made.start()
        try:
            scope, really = session.root(None), int(now * SECOND)
            assert made.monotonic("monotonic", really, scope, "agent.py:main") == expected * SECOND
            assert made.monotonic("monotonic", really, scope, "agent.py:main") == (expected + 3) * SECOND
            later = made.monotonic("monotonic", really, scope, "agent.py:main")
            assert later is not None
            assert (expected + 3) * SECOND <= later < (expected + 4) * SECOND + 10 * SECOND
            made.leave()
            after = made.monotonic("monotonic", really, scope, "agent.py:main")
            assert after is not None
            assert after >= later
            assert made.monotonic("perf_counter", really, scope, "agent.py:main") is None
        finally:
            made.stop()
        assert made.monotonic("monotonic", really, scope, "agent.py:main") is None


def test_what_was_recorded_without_monotonic_times_leaves_the_clock_alone() -> None:
    tape = record(lambda: poll("x"))

    def agent() -> str:
        assert isinstance(time.monotonic, BuiltinFunctionType)
        return poll("x")

    replay(tape, agent)


def test_anchors_that_are_none_are_left_out() -> None:
    for anchors in ((AT,), (AT, -5), (AT, 5, 7), (2**70, 5)):
        made, session = clock_of(*anchors)
        assert not made.knows_monotonic
        assert made.monotonic("monotonic", 5, session.root(None), "x") is None


def test_names_that_modules_of_the_program_have_bound_are_told_and_those_of_packages_are_not() -> None:
    made = [types.ModuleType(name) for name in ("made_by_program", "installed", "threading.like")]
    made[1].__file__ = pytest.__file__
    for module in made:
        vars(module)["read"] = time.monotonic
        sys.modules[module.__name__] = module

    def teller(family: monotonic.Family, now: int, scope: object, function: str) -> None:
        return None

    monotonic.install(teller)
    try:
        assert [isinstance(vars(module)["read"], BuiltinFunctionType) for module in made] == [False, True, True]
    finally:
        monotonic.uninstall(teller)
        for module in made:
            del sys.modules[module.__name__]
    assert all(isinstance(vars(module)["read"], BuiltinFunctionType) for module in made)
