"""Re-execution: an unchanged agent replays equal, a changed one is found at the right step and field, whatever it swallows."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanreplay.instrumentation import agent_run, read, tool
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution import turns
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.replay.reexecution.ledger import Difference
from support.small_agents import Parallel, Plan, Small, Tool, plans, rewritten, tools
from support.taped import SIZE, Tape, recorded, replayed, told


@pytest.fixture(autouse=True)
def _short_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an agent that was changed is waited for in vain."""
    if "unchanged" not in request.node.name:
        monkeypatch.setattr(turns, "WAIT_S", turns.IMPATIENT_S)


SEARCHED = settings(max_examples=5 * SIZE, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


def small(plan: Plan, seed: int = 0) -> Callable[[], Awaitable[Any]]:
    return Small(plan, random.Random(seed)).run


def seq_of(run: Run, tape: Tape, node: int) -> int:
    """``seq`` of the step that a node made."""
    span = next(s.span_id for s in tape.starts if s.attributes.get("test.node") == node)
    return next(s.seq for s in run.steps if s.span_id == span)


# ---- the unchanged agent --------------------------------------------------------------------------------------------


@given(plan=plans(), seed=st.integers(0, 99))
@SEARCHED
def test_an_unchanged_agent_replays_equal_and_runs_no_body(plan: Plan, seed: int) -> None:
    first = Small(plan, random.Random(seed))
    tape = recorded(first.run)
    again = Small(plan, random.Random(seed + 1))
    result = replayed(tape, again.run)
    assert told(result) == []
    assert again.bodies == 0
    assert result.equal
    assert result.verdict.matched == result.verdict.recorded
    assert result.verdict.matched_by_input == 0
    assert result.verdict.order_relaxed == 0
    assert result.value == (asyncio.run(small(plan)()))  # type: ignore[arg-type]


MIXED: Plan = (
    Tool(1, "a", 1),
    Parallel(2, ((Tool(3, "a", 1), Tool(4, "b", 1)), (Tool(5, "a", 1),), (Tool(6, "a", 1, True),)), "gather"),
    Parallel(7, ((Tool(8, "a", 1),), (Tool(9, "a", 1),)), "threads"),
    Parallel(10, ((Tool(11, "b", 1),), (Tool(12, "b", 1),)), "group"),
)


def test_an_unchanged_agent_replays_equal_every_time() -> None:
    tape = recorded(small(MIXED))
    for seed in range(SIZE):
        result = replayed(tape, small(MIXED, seed))
        assert result.equal, (seed, told(result))


# ---- one change -----------------------------------------------------------------------------------------------------


def first(result: Any) -> Difference:
    assert not result.equal
    assert result.verdict.exit_code == 1
    difference: Difference = result.differences[0]
    return difference


@given(plan=plans(same=False), data=st.data())
@SEARCHED
def test_one_changed_argument_is_found_at_its_step_and_field(plan: Plan, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(list(tools(plan))))
    tape = recorded(small(plan))
    changed = rewritten(plan, lambda p: tuple(replace(chosen, x=-5) if n == chosen else n for n in p))
    difference = first(replayed(tape, small(changed)))
    assert (difference.kind, difference.step) == ("input", seq_of(tape.runs()[0], tape, chosen.id))
    assert (difference.field, difference.recorded, difference.actual) == ("arguments.x", str(chosen.x), "-5")


@given(plan=plans(same=False), data=st.data())
@SEARCHED
def test_one_call_fewer_is_found_at_the_missing_step(plan: Plan, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(list(tools(plan))))
    tape = recorded(small(plan))
    changed = rewritten(plan, lambda p: tuple(n for n in p if n != chosen))
    difference = first(replayed(tape, small(changed)))
    assert difference.kind in ("order", "unreached")
    assert difference.step == seq_of(tape.runs()[0], tape, chosen.id)


@given(plan=plans(same=False), data=st.data())
@SEARCHED
def test_one_call_more_is_found_where_it_is_made(plan: Plan, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(list(tools(plan))))
    before = data.draw(st.booleans())
    extra = Tool(0, data.draw(st.sampled_from("abc")), -7)
    tape = recorded(small(plan))

    def insert(p: Plan) -> Plan:
        if chosen not in p:
            return p
        at = p.index(chosen) + (not before)
        return (*p[:at], extra, *p[at:])

    difference = first(replayed(tape, small(rewritten(plan, insert))))
    if difference.kind == "never_recorded":
        assert (difference.step, difference.name, difference.actual) == (None, f"tool_call {extra.name}", '{"x": -7}')
    elif difference.kind == "input":  # another call of this tool was recorded in its place
        assert (difference.actual, difference.name) == ("-7", f"tool_call {extra.name}")
    else:
        raise AssertionError(difference)


@given(plan=plans(same=False), data=st.data())
@SEARCHED
def test_two_calls_swapped_are_found_at_the_step_that_was_expected(plan: Plan, data: st.DataObject) -> None:
    pairs: list[tuple[Tool, Tool]] = []

    def find(p: Plan) -> Plan:
        pairs.extend((a, b) for a, b in pairwise(p) if isinstance(a, Tool) and isinstance(b, Tool))
        return p

    rewritten(plan, find)
    if not pairs:
        return
    one, other = data.draw(st.sampled_from(pairs))
    tape = recorded(small(plan))
    swapped = rewritten(plan, lambda p: tuple(other if n == one else one if n == other else n for n in p))
    difference = first(replayed(tape, small(swapped)))
    assert (difference.kind, difference.step) == ("order", seq_of(tape.runs()[0], tape, one.id))


@given(plan=plans(), data=st.data())
@SEARCHED
def test_a_change_among_equal_calls_is_found_too(plan: Plan, data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(list(tools(plan))))
    tape = recorded(small(plan))
    changed = rewritten(plan, lambda p: tuple(replace(chosen, x=3 - chosen.x) if n == chosen else n for n in p))
    result = replayed(tape, small(changed))
    seq = seq_of(tape.runs()[0], tape, chosen.id)
    if result.equal:  # two equal calls at the same time have changed places: nothing that can be seen from outside
        assert result.verdict.matched_by_input
    else:
        assert first(result).step in (seq, None)


def test_a_call_that_another_one_has_taken_the_place_of_in_its_task_is_named() -> None:
    one, other = Tool(2, "a", 2, fails=True), Tool(3, "a", 1, fails=True)
    plan: Plan = (Parallel(1, ((one, other), (Tool(4, "a", 1, fails=True),)), "gather"), Tool(5, "a", 1, fails=True))
    tape = recorded(small(plan))
    changed = rewritten(plan, lambda p: tuple(replace(one, x=1) if n == one else n for n in p))
    difference = first(replayed(tape, small(changed)))
    assert (difference.kind, difference.step) == ("unreached", seq_of(tape.runs()[0], tape, one.id))


# ---- agents that swallow --------------------------------------------------------------------------------------------


@tool(effect="read")
async def look(x: int) -> int:
    return x


@tool(effect="read")
def look_now(x: int) -> int:
    return x


async def catches_exception(x: int) -> list[Any]:
    got: list[Any] = []
    for i in (1, x, 3):
        try:
            got.append(await look(i))
        except Exception as error:
            got.append(error)
    return got


async def gathers(x: int) -> list[Any]:
    return list(await asyncio.gather(look(1), look(x), look(3), return_exceptions=True))


async def groups(x: int) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(look(i)) for i in (1, x, 3)]
    return [t.result() for t in tasks]


async def swallows_groups(x: int) -> list[Any]:
    try:
        return await groups(x)
    except BaseExceptionGroup as error:
        return [error]


async def swallows_everything(x: int) -> list[Any]:
    got: list[Any] = []
    for i in (1, x, 3):
        try:
            got.append(await look(i))
        except BaseException as error:
            got.append(str(error))
    return got


def threads(x: int) -> list[Any]:
    got: list[Any] = []
    started = [threading.Thread(target=lambda i: got.append(look_now(i)), args=(i,)) for i in (1, x, 3)]
    for thread in started:
        thread.start()
        thread.join()
    return got


def pool(x: int) -> list[Any]:
    with ThreadPoolExecutor(1) as executor:  # of two, either may make the second call
        futures = [executor.submit(look_now, i) for i in (1, x, 3)]
    return [f.exception() or f.result() for f in futures]


async def background(x: int) -> list[Any]:
    tasks = [asyncio.create_task(look(i)) for i in (1, x, 3)]
    await asyncio.wait(tasks)
    return []


async def retries(x: int) -> list[Any]:
    got: list[Any] = []
    for i in (1, x, 3):
        for _ in range(3):
            try:
                got.append(await look(i))
                break
            except BaseException:
                continue
    return got


SWALLOWING = [catches_exception, gathers, groups, swallows_groups, swallows_everything, threads, pool, background, retries]


@pytest.mark.parametrize("agent", SWALLOWING, ids=lambda a: a.__name__)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_difference_is_found_whatever_the_agent_swallows(agent: Callable[[int], Any]) -> None:
    tape = recorded(agent, 2)
    assert replayed(tape, agent, 2).equal
    result = replayed(tape, agent, 5)
    difference = first(result)
    assert (difference.kind, difference.step, difference.field, difference.recorded, difference.actual) == (
        "input",
        2,
        "arguments.x",
        "2",
        "5",
    )
    assert len(result.differences) == 1


def test_the_line_that_made_the_call_is_told() -> None:
    tape = recorded(catches_exception, 2)
    where = first(replayed(tape, catches_exception, 5)).where
    assert where is not None
    assert where.rpartition(":")[0] == __file__


# ---- kinds of differences -------------------------------------------------------------------------------------------


async def calls(*xs: int) -> int:
    return sum([await look(x) for x in xs])


def test_the_same_call_once_more_is_told_apart_from_one_that_was_never_recorded() -> None:
    tape = recorded(calls, 1, 2)
    again = first(replayed(tape, calls, 1, 2, 1))
    assert (again.kind, again.step) == ("already_used", None)
    assert (again.nearest[0]["step"], again.nearest[0]["answered"], again.nearest[0]["differs"]) == (1, True, 0)
    other = first(replayed(tape, calls, 1, 2, 9))
    assert (other.kind, other.step, other.actual) == ("never_recorded", None, '{"x": 9}')
    assert other.summary().startswith("a call that is not in the record, tool_call look")


async def asks_between(*extra: int) -> None:
    await look(1)
    for x in extra:
        await look(x)
    read("clock", lambda: 5)
    await look(2)


def test_a_call_more_in_the_middle_is_a_call_that_is_not_in_the_record() -> None:
    difference = first(replayed(recorded(asks_between), asks_between, 9))
    assert (difference.kind, difference.step, difference.name, difference.actual) == ("never_recorded", None, "tool_call look", '{"x": 9}')
    assert difference.detail.startswith("it was never recorded; step 2, io clock, was to come next")


def test_steps_never_reached_are_listed() -> None:
    tape = recorded(calls, 1, 2, 3)
    assert told(replayed(tape, calls, 1)) == [("unreached", 2, "tool_call look", None), ("unreached", 3, "tool_call look", None)]


def test_what_a_difference_kept_from_being_reached_is_listed_apart() -> None:
    tape = recorded(calls, 1, 2, 3)
    result = replayed(tape, calls, 1, 9, 3)
    assert [d.kind for d in result.differences] == ["input"]
    assert [s for _, s in result.verdict.unreached] == [2, 3]


def test_the_output_and_the_outcome_of_a_run_are_compared() -> None:
    def agent(output: Any, error: bool = False) -> None:
        with agent_run("a") as run:
            run.output = output
            if error:
                raise ValueError("x")

    tape = recorded(agent, {"text": "yes", "n": 1})
    assert replayed(tape, agent, {"text": "yes", "n": 1}).equal
    other = replayed(tape, agent, {"text": "no", "n": 1})
    assert told(other) == [("output", None, "agent a", "output.text")]
    failed = replayed(tape, agent, {"text": "yes", "n": 1}, True)
    assert told(failed)[0] == ("outcome", None, "agent a", "outcome")
    assert isinstance(failed.error, ValueError)


def test_another_input_of_the_run_is_found_before_its_first_step() -> None:
    def agent(question: str) -> None:
        with agent_run("a", input={"question": question}):
            look_now(1)

    tape = recorded(agent, "one")
    assert told(replayed(tape, agent, "two")) == [("input", None, "agent a", "input.question")]


def test_a_run_too_many_is_found() -> None:
    def agent(times: int) -> None:
        for i in range(times):
            with agent_run("a", input=i):
                look_now(i)

    tape = recorded(agent, 1)
    assert told(replayed(tape, agent, 2)) == [("never_recorded", None, "agent a", None)]
    tape = recorded(agent, 2)
    assert [d.kind for d in replayed(tape, agent, 1).differences] == ["unreached"]


def test_a_run_without_steps_that_does_not_come_is_found() -> None:
    def agent(times: int) -> None:
        for _ in range(times):
            with agent_run("idle"):
                pass

    tape = recorded(agent, 2)
    assert replayed(tape, agent, 2).equal
    difference = first(replayed(tape, agent, 1))
    assert (difference.kind, difference.step, difference.name) == ("unreached", None, "agent idle")


def test_many_runs_at_once_each_get_their_own_answers() -> None:
    async def one(i: int) -> int:
        async with agent_run("a", input=i):
            await asyncio.sleep(0)
            return await look(7) + await look(i)

    async def server(order: list[int]) -> list[int]:
        return list(await asyncio.gather(*(one(i) for i in order)))

    tape = recorded(server, list(range(30)))
    assert len(tape.runs()) == 30
    result = replayed(tape, server, list(reversed(range(30))))
    assert result.equal
    assert result.value == [7 + i for i in reversed(range(30))]


def test_an_error_of_the_agents_own_is_a_part_of_the_result() -> None:
    def agent() -> None:
        look_now(1)
        raise LookupError("mine")

    tape = recorded(agent)
    result = replayed(tape, agent)
    assert result.equal
    assert isinstance(result.error, LookupError)


def test_a_step_that_never_ended_cannot_be_judged() -> None:
    tape = recorded(calls, 1, 2)
    del tape.ends[tape.starts[1].span_id]
    result = replayed(tape, calls, 1, 2)
    assert [(d.kind, d.step) for d in result.differences] == [("not_replayable", 2)]
    assert result.verdict.exit_code == 125


def test_declared_reads_come_from_the_record() -> None:
    live = iter(range(100))

    def agent() -> list[int]:
        return [read("counter", lambda: next(live)) for _ in range(3)]

    tape = recorded(agent)
    result = replayed(tape, agent)
    assert result.equal
    assert result.value == [0, 1, 2]
    assert next(live) == 3


# ---- cancelled ------------------------------------------------------------------------------------------------------


async def gives_up(after: float | None) -> str:
    try:
        await asyncio.wait_for(forever(), after)
    except TimeoutError:
        return "gave up"
    return "got it"


@tool(effect="read")
async def forever() -> str:
    await asyncio.sleep(3600)
    return "never"


def test_a_cancelled_call_pends_until_it_is_cancelled() -> None:
    tape = recorded(gives_up, 0.01)
    assert tape.outcomes == ["cancelled"]
    result = replayed(tape, gives_up, 0.05)
    assert result.equal
    assert result.value == "gave up"


def test_a_cancelled_call_that_nobody_cancels_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from spanreplay.boundary import boundary

    monkeypatch.setattr(boundary, "CANCEL_GRACE_S", 0.01)
    tape = recorded(gives_up, 0.01)
    assert told(replayed(tape, gives_up, None)) == [("beyond", 1, "tool_call forever", None)]


# ---- queue workers --------------------------------------------------------------------------------------------------


async def workers(order: random.Random, items: int, keyed: bool = False) -> dict[int, int]:
    from spanreplay.instrumentation import scope

    queue: asyncio.Queue[int] = asyncio.Queue()
    for item in range(items):
        queue.put_nowait(item)
    got: dict[int, int] = {}

    async def work() -> None:
        while not queue.empty():
            for _ in range(order.randrange(5)):
                await asyncio.sleep(0)
            if queue.empty():
                return
            item = queue.get_nowait()
            if keyed:
                with scope(str(item)):
                    got[item] = await look(5)
            else:
                got[item] = await look(item)

    await asyncio.gather(*(work() for _ in range(4)))
    return got


def test_workers_of_a_queue_are_matched_by_input_and_it_is_said() -> None:
    tape = recorded(workers, random.Random(1), 20)
    by_input = 0
    for seed in range(2, 2 + SIZE):
        result = replayed(tape, workers, random.Random(seed), 20)
        assert told(result) == []
        assert result.value == {i: i for i in range(20)}
        by_input += result.verdict.matched_by_input
    assert by_input


def test_named_scopes_tell_workers_apart_that_ask_the_same() -> None:
    tape = recorded(workers, random.Random(1), 20, True)
    for seed in range(2, 2 + SIZE):
        result = replayed(tape, workers, random.Random(seed), 20, True)
        assert told(result) == []
        assert result.verdict.matched_by_input == 0


async def greeter() -> str:
    with agent_run("greeter") as run:
        run.output = read("who", lambda: "Ana")
        await asyncio.sleep(0)
        return str(run.output)


def test_an_asynchronous_agent_is_replayed_on_the_running_loop_of_a_notebook() -> None:
    replayer = Replayer(recorded(greeter).runs())

    async def cell() -> Any:
        with pytest.raises(RuntimeError, match="replay_async"):
            replayer.replay(greeter)
        return await replayer.replay_async(greeter)

    result = asyncio.run(cell())
    assert told(result) == []
    assert result.value == "Ana"


@tool(effect="write")
async def reserve(number: int) -> str:
    await asyncio.sleep(0)
    return f"r{number}"


@tool(effect="irreversible")
async def pay(number: int) -> str:
    await asyncio.sleep(0)
    return f"p{number}"


async def in_its_own_task(how: str, call: Any) -> Any:
    if how == "gather":
        return (await asyncio.gather(call, return_exceptions=True))[0]
    if how == "task":
        return await asyncio.wait_for(asyncio.create_task(call), 5)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call)
    return task.result()


async def one_after_the_other(how: str, calls: list[tuple[Any, int]]) -> None:
    with agent_run("orders"):
        for function, number in calls:
            await in_its_own_task(how, function(number))


@pytest.mark.parametrize("how", ["gather", "task", "group"])
def test_calls_swapped_are_found_where_each_has_a_task_of_its_own(how: str) -> None:
    calls = [(reserve, 1), (pay, 1), (reserve, 2)]
    tape = recorded(one_after_the_other, how, calls)
    assert told(replayed(tape, one_after_the_other, how, calls)) == []
    swapped = replayed(tape, one_after_the_other, how, [calls[1], calls[0], calls[2]])
    assert [(d.kind, d.step) for d in swapped.differences] == [("order", 1)]
    arguments = replayed(tape, one_after_the_other, how, [calls[2], calls[1], calls[0]])
    assert [(d.step, d.field) for d in arguments.differences] == [(1, "arguments.number")]


@tool(effect="read")
def draw() -> float:
    return random.random()


async def draws_in_threads() -> list[float]:
    with agent_run("draws"):
        return list(await asyncio.gather(*(asyncio.to_thread(draw) for _ in range(20))))


@pytest.mark.parametrize("guard", [False, True])
def test_equal_calls_in_threads_come_back_to_their_callers_under_the_guard_too(guard: bool) -> None:
    values: list[float] = []

    async def kept() -> None:
        values.extend(await draws_in_threads())

    tape = recorded(kept)
    result = replayed(tape, draws_in_threads, guard=guard)
    assert told(result) == []
    assert result.value == values
    assert result.verdict.matched_by_input == 0
