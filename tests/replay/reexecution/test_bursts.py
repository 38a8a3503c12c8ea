"""An error that cancels other tasks has the same ones cancelled, in the same calls, however long each of them sleeps in a replay."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from spanreplay.boundary.loops import NEAR
from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution import bursts, turns
from spanreplay.replay.reexecution.index import index_of
from support.handmade import step
from support.size import FULL
from support.taped import Tape, recorded, replayed, told

N = 6
FAILS = 2
before: list[int] = []
"""How many turns of the loop each task sleeps before its call."""
during: list[int] = []
"""How many its call takes while it is recorded."""
calls = True


async def turns_of_the_loop(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@tool(effect="read")
async def look(i: int) -> int:
    await turns_of_the_loop(during[i])
    if i == FAILS:
        raise ValueError("no such thing")
    return i


@tool(effect="read")
async def conclude(told: object) -> str:
    return "done"


async def one(i: int) -> int:
    await turns_of_the_loop(before[i])
    return await look(i)


async def by_group() -> list[object]:
    tasks: list[asyncio.Task[int]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(one(i)) for i in range(N)]
    except* ValueError:
        pass
    return [_ended(task) for task in tasks]


async def by_gather() -> list[object]:
    tasks = [asyncio.ensure_future(one(i)) for i in range(N)]
    try:
        await asyncio.gather(*tasks)
    except ValueError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [_ended(task) for task in tasks]


async def first_of_several() -> list[object]:
    tasks = [asyncio.ensure_future(one(i)) for i in range(N)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return [_ended(task) for task in tasks]


def _ended(task: "asyncio.Future[int]") -> object:
    return "cancelled" if task.cancelled() else repr(task.exception() or task.result())


FORMS = [by_group, by_gather, first_of_several]


def agent(form: Callable[[], Awaitable[list[object]]]) -> Callable[[], Awaitable[Any]]:
    async def main() -> None:
        with agent_run("agent") as run:
            run.output = await form()
            await conclude(run.output)

    return main


@pytest.fixture(autouse=True)
def _whatever_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sibling that a busy machine lets wait is not given up."""
    monkeypatch.setattr(turns, "WAIT_S", 10.0)


def sleeps(monkeypatch: pytest.MonkeyPatch, first: Sequence[int], then: Sequence[int] = (0,) * N) -> None:
    monkeypatch.setattr(f"{__name__}.before", list(first))
    monkeypatch.setattr(f"{__name__}.during", list(then))


def outcomes(tape: Tape) -> dict[int, str | None]:
    """Of the calls of the tasks that were begun."""
    found: dict[int, str | None] = {}
    for made in tape.runs()[-1].steps:
        if made.name == "look":
            found[made.input["arguments"]["i"]] = made.outcome
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_who_was_cancelled_in_a_call_has_begun_it_and_who_was_before_it_never_has(
    form: Callable[[], Awaitable[list[object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps(monkeypatch, first=(0, 1, 0, 4, 90, 90), then=(9, 90, 10, 90, 90, 90))
    if form is first_of_several:
        sleeps(monkeypatch, first=(0, 1, 0, 4, 90, 90), then=(90, 90, 10, 90, 90, 90))
    tape = recorded(agent(form))
    assert outcomes(tape) == {0: "cancelled" if form is first_of_several else "ok", 1: "cancelled", FAILS: "error", 3: "cancelled"}
    for first in ((50, 40, 0, 30, 5, 1), (0, 300, 0, 0, 0, 0), (0, 0, 100, 0, 0, 300)):
        sleeps(monkeypatch, first)
        result = replayed(tape, agent(form))
        assert told(result) == []
        assert result.verdict.order_relaxed == 0


@pytest.mark.parametrize("form", FORMS[:2], ids=lambda form: form.__name__)
def test_who_came_to_its_end_in_the_turn_of_the_loop_in_which_another_one_failed_does_again(
    form: Callable[[], Awaitable[list[object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps(monkeypatch, first=(0, 0, 0, 0, 0, 10), then=(20, 10, 10, 10, 10, 20))
    tape = recorded(agent(form))
    assert outcomes(tape) == {0: "cancelled", 1: "ok", FAILS: "error", 3: "ok", 4: "ok", 5: "cancelled"}
    index = index_of(tape.runs()[-1])
    assert [len(seqs) for seqs in index.together.values()] == [3, 3, 3]
    for first in ((0,) * N, (9, 7, 5, 3, 1, 0), (0, 0, 0, 9, 0, 40)):
        sleeps(monkeypatch, first)
        result = replayed(tape, agent(form))
        assert told(result) == []
        assert result.verdict.order_relaxed == 0


@pytest.mark.parametrize("form", FORMS[:2], ids=lambda form: form.__name__)
def test_who_made_a_whole_call_in_the_turn_of_the_loop_in_which_another_one_failed_does_again(
    form: Callable[[], Awaitable[list[object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps(monkeypatch, first=(0, 0, 0, 10, 0, 90), then=(20, 10, 10, 0, 10, 20))
    tape = recorded(agent(form))
    assert outcomes(tape) == {0: "cancelled", 1: "ok", FAILS: "error", 3: "ok", 4: "ok"}
    for first in ((0,) * N, (0, 0, 0, 40, 0, 0)):
        sleeps(monkeypatch, first)
        result = replayed(tape, agent(form))
        assert told(result) == []
        assert result.verdict.order_relaxed == 0


def test_an_error_that_a_task_goes_on_from_is_given_before_what_ended_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def tries(i: int) -> int:
        try:
            return await look(i)
        except ValueError:
            return await look(0)

    async def both() -> list[object]:
        tasks = [asyncio.ensure_future(tries(i)) for i in (FAILS, 1, 3)]
        await asyncio.wait(tasks[:2])
        tasks[2].cancel()
        await asyncio.wait(tasks)
        return [_ended(task) for task in tasks]

    sleeps(monkeypatch, (0,) * N, (9, 5, 5, 90, 0, 0))
    tape = recorded(agent(both))
    assert outcomes(tape) == {FAILS: "error", 1: "ok", 3: "cancelled", 0: "ok"}
    assert not index_of(tape.runs()[-1]).together
    assert replayed(tape, agent(both)).equal


@pytest.mark.parametrize("form", FORMS[:2], ids=lambda form: form.__name__)
def test_a_call_of_a_task_that_was_cancelled_without_one_is_a_difference_where_none_like_it_made_one(
    form: Callable[[], Awaitable[list[object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def beats() -> None:
        while True:
            await asyncio.sleep(0)
            if calls:
                await conclude("beat")

    async def beside() -> list[object]:
        beating = asyncio.ensure_future(beats())
        ended = await form()
        beating.cancel()
        return ended

    monkeypatch.setattr(f"{__name__}.calls", False)
    sleeps(monkeypatch, (0,) * N, (9, 9, 3, 9, 9, 9))
    tape = recorded(agent(beside))
    assert replayed(tape, agent(beside)).equal
    monkeypatch.setattr(f"{__name__}.calls", True)
    assert [kind for kind, *_ in told(replayed(tape, agent(beside)))][:1] == ["never_recorded"]


def test_a_sibling_that_does_not_come_any_more_is_waited_for_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.02)
    sleeps(monkeypatch, (0,) * N, (20, 10, 10, 10, 10, 20))
    tape = recorded(agent(by_group))
    monkeypatch.setattr(f"{__name__}.N", N - 2)
    result = replayed(tape, agent(by_group))
    assert result.verdict.order_relaxed > 0
    assert not result.equal


@pytest.mark.parametrize("number", range(20 if FULL else 1))
def test_many_siblings_whose_sleeps_are_chance_replay_equal(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(number)
    monkeypatch.setattr(f"{__name__}.N", 60)
    monkeypatch.setattr(f"{__name__}.FAILS", 7)

    def other_sleeps() -> None:
        sleeps(monkeypatch, [chance.randrange(60) for _ in range(60)], [chance.randrange(40) for _ in range(60)])

    for form in FORMS:
        other_sleeps()
        tape = recorded(agent(form))
        for _ in range(5):
            other_sleeps()
            result = replayed(tape, agent(form))
            assert told(result) == []
            assert result.verdict.order_relaxed == 0


@pytest.mark.parametrize(
    ("turns_after", "ms", "outcome", "are"),
    [
        (0, 900, "ok", True),
        (2, 900, "ok", True),
        (3, 0, "ok", False),
        (None, 1, "ok", True),
        (None, 9, "ok", False),
        (NEAR - 1, 900, "cancelled", True),
        (NEAR, 900, "cancelled", False),
        (None, 40, "cancelled", True),
        (None, 900, "cancelled", False),
    ],
)
def test_turns_of_the_loop_tell_what_ended_together_and_the_time_where_an_older_version_recorded_none(
    turns_after: int | None, ms: int, outcome: str, are: bool
) -> None:
    turn, later = (None, None) if turns_after is None else (64, 64 + turns_after)
    beside = {"outcome": outcome, "ended_ns": ms * 10**6, "turn": later}
    steps = (
        step(1, "~a#0/tool_call:t#0", "1", end=20, typed_error="{}", outcome="error", ended_ns=0, turn=turn),
        step(2, "~a#1/tool_call:t#0", "2", seq_start=11, end=21, **beside),
        step(3, "~a#2/tool_call:t#0", "3", seq_start=12, end=22, **beside),
    )
    found = bursts.bursts(steps, steps)
    assert [len(burst.steps) for burst in found] == ([] if not are else [1] if outcome == "cancelled" else [3])


@pytest.mark.parametrize("form", [by_group, lambda: _caught()], ids=["by_group", "gathered"])
def test_all_that_came_to_their_ends_with_an_error_do_again_where_the_record_shows_nobody_cancelled(
    form: Callable[[], Awaitable[list[object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.FAILS", 0)
    sleeps(monkeypatch, first=(0,) * N, then=(10,) * N)
    tape = recorded(agent(form))
    assert outcomes(tape) == {0: "error", **dict.fromkeys(range(1, N), "ok")}
    for first in ((0,) * N, (9, 7, 5, 3, 1, 0)):
        sleeps(monkeypatch, first)
        result = replayed(tape, agent(form))
        assert told(result) == []
        assert result.verdict.order_relaxed == 0


async def _caught() -> list[object]:
    """What has come by the time the error is seen; nobody is cancelled."""
    come: list[object] = []

    async def keeps(i: int) -> None:
        come.append(await one(i))

    try:
        await asyncio.gather(*(keeps(i) for i in range(N)))
    except ValueError:
        pass
    return list(come)


def test_threads_have_one_after_the_other_what_ended_right_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    turn = turns.Turns({}, lambda: None, together={1: (1, 2, 3), 2: (1, 2, 3), 3: (1, 2, 3)})

    def waits(seq: int) -> None:
        turn.wait(seq)
        given.append(seq)
        turn.given(seq)

    threads = [threading.Thread(target=waits, args=(seq,)) for seq in (3, 2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == [1, 2, 3]
