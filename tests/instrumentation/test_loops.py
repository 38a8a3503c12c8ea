"""In which turn of its event loop a call ended is recorded with it."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio

from spanreplay.boundary import loops
from spanreplay.boundary.loops import NEAR
from spanreplay.instrumentation import agent_run, tool
from spanreplay.semconv import attributes as names
from support.taped import Tape, recorded


@tool
def look(i: int) -> int:
    if i < 0:
        raise ValueError("no such thing")
    return i


async def let_run(turns: int) -> None:
    for _ in range(turns):
        await loops.turn()


def turns_of(run: Callable[[Callable[[], Awaitable[Any]]], Any], main: Callable[[], Awaitable[Any]]) -> list[int | None]:
    def agent() -> None:
        with agent_run("agent"):
            run(main)

    return told(recorded(agent))


def by_asyncio(main: Callable[[], Awaitable[Any]]) -> None:
    async def awaited() -> None:
        await main()

    asyncio.run(awaited())


def told(tape: Tape) -> list[int | None]:
    return [step.get(names.STEP_TURN) for step in tape.steps if step[names.STEP_KIND] == "tool_call"]


def known(turns: list[int | None]) -> list[int]:
    return [turn for turn in turns if turn is not None]


def test_calls_that_end_in_one_turn_have_one_number_and_those_long_after_are_not_near() -> None:
    async def main() -> None:
        look(1)
        look(2)
        with pytest.raises(ValueError, match="no such"):
            look(-1)
        await let_run(10 * NEAR)
        look(3)

    first, second, failed, last = known(turns_of(by_asyncio, main))
    assert first == second == failed
    assert last >= first + NEAR


@pytest.mark.parametrize("between", range(1, 2 * NEAR))
def test_turns_between_two_calls_are_told_up_to_a_limit(between: int) -> None:
    async def main() -> None:
        look(1)
        await let_run(between)
        look(2)

    first, second = known(turns_of(by_asyncio, main))
    assert second - first == between if between < NEAR else second - first >= NEAR


@pytest.mark.parametrize(("shown", "counted"), [((), 0), (None, 3), ((1,), NEAR - 1)], ids=["at rest", "not shown", "busy"])
def test_a_loop_that_has_nothing_to_do_is_not_kept_awake_by_counting(shown: object, counted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "ready", lambda: shown)

    async def main() -> None:
        for between in (counted, counted + 1, NEAR):
            look(1)
            await let_run(between)
        look(1)

    turns = known(turns_of(by_asyncio, main))
    apart = [later - turn for turn, later in pairwise(turns)]
    assert apart[0] == counted
    assert min(apart[1:]) >= NEAR


def test_who_ended_before_anything_ran_that_an_end_set_off_is_in_its_turn_and_others_are_after_it() -> None:
    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def set_off() -> None:
            look(3)
            over.set()

        def first() -> None:
            look(1)
            loop.call_soon(set_off)

        loop.call_soon(first)
        loop.call_soon(look, 2)
        await over.wait()

    first, second, later = known(turns_of(by_asyncio, main))
    assert (second - first, later - first) == (0, 1)


def test_turns_of_trio_are_not_counted() -> None:
    async def main() -> None:
        look(1)

    assert turns_of(trio.run, main) == [None]


def test_loops_one_after_the_other_and_beside_each_other_are_not_near() -> None:
    async def main() -> None:
        look(1)

    async def beside() -> None:
        look(1)
        await asyncio.to_thread(asyncio.run, main())

    def both(_: object) -> None:
        asyncio.run(main())
        asyncio.run(main())
        asyncio.run(beside())

    turns = sorted(known(turns_of(both, main)))
    assert len(turns) == 4
    assert all(later - turn >= NEAR for turn, later in pairwise(turns))


def test_without_a_loop_there_is_no_turn_and_none_is_left_of_a_loop_that_was_closed_in_the_middle_of_one() -> None:
    def closed_early(_: object) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        look(2)

    async def main() -> None:
        look(1)

    first, second = turns_of(closed_early, main)
    assert first is not None
    assert second is None
