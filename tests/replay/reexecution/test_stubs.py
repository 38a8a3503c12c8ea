"""What a difference says: field, place, and only one for each stop."""

import asyncio
import threading
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.errors import ReplayDivergence
from support.taped import recorded, replayed, told


def ask(kind: Any, asked: object) -> Any:
    scope = boundary.here()
    assert scope is not None
    return boundary.call(scope, Call(kind=kind, name="n", input=codec.encode(asked)), lambda: "live")


@pytest.mark.parametrize(
    ("kind", "before", "after", "field"),
    [
        ("tool_call", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "arguments.a[1].b"),
        ("tool_call", [1], [2], "arguments[0]"),
        ("tool_call", 1, 2, "arguments"),
        ("model_call", {"body": {"messages": [{"content": "x"}]}}, {"body": {"messages": [{"content": "y"}]}}, "messages[0].content"),
        ("io", {"url": "a"}, {"url": "b"}, "url"),
        ("io", 1, 2, "input"),
        ("tool_call", {"a": 1}, {}, "arguments.a"),
        ("tool_call", {}, {"a": None}, "arguments.a"),
    ],
)
def test_the_field_that_differs_is_named_as_people_name_it(kind: Any, before: object, after: object, field: str) -> None:
    tape = recorded(ask, kind, before)
    assert replayed(tape, ask, kind, before).equal
    assert told(replayed(tape, ask, kind, after)) == [("input", 1, f"{kind} n", field)]


def test_everything_after_a_difference_is_stopped_with_the_same_one() -> None:
    seen: list[ReplayDivergence] = []

    def agent(*values: int) -> None:
        for value in values:
            try:
                ask("tool_call", value)
            except ReplayDivergence as stop:
                seen.append(stop)

    tape = recorded(agent, 1, 2, 3)
    result = replayed(tape, agent, 1, 9, 3)
    assert len(seen) == 2
    assert seen[0].difference is seen[1].difference
    assert len(result.differences) == 1


def test_many_threads_that_differ_at_once_are_one_difference() -> None:
    def agent(shift: int) -> None:
        threads = [threading.Thread(target=_quietly, args=(i + shift,)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    tape = recorded(agent, 0)
    result = replayed(tape, agent, 100)
    assert len(result.differences) == 1
    assert result.verdict.exit_code == 1


def _quietly(value: int) -> None:
    try:
        ask("tool_call", value)
    except ReplayDivergence:
        return


def test_steps_inside_a_stubbed_tool_are_covered_and_its_body_does_not_run() -> None:
    ran: list[int] = []

    @tool(effect="read")
    def inner(x: int) -> int:
        ran.append(x)
        return x

    @tool(effect="read")
    async def outer(x: int) -> int:
        return inner(x) + inner(x + 1)

    tape = recorded(outer, 1)
    ran.clear()
    result = replayed(tape, outer, 1)
    assert result.equal
    assert result.value == 3
    assert ran == []
    assert (result.verdict.matched, result.verdict.covered) == (1, 2)


@pytest.mark.parametrize(("kind", "passed"), [("tool_call", True), ("handoff", False)])
def test_a_tool_that_is_an_agent_and_a_handoff_run_again_and_what_they_call_is_answered(kind: Any, passed: bool) -> None:
    ran: list[str] = []

    def agent(answer: str) -> None:
        scope = boundary.here()
        assert scope is not None

        def body() -> str:
            ran.append("body")
            ask("tool_call", 1)
            return answer

        boundary.call(scope, Call(kind=kind, name="specialist", input=codec.encode({}), passed=passed), body)
        ask("tool_call", 2)

    tape = recorded(agent, "yes")
    result = replayed(tape, agent, "yes")
    assert result.equal
    assert (result.verdict.covered, result.verdict.order_relaxed) == (0, 0)
    assert ran == ["body", "body"]
    assert told(replayed(tape, agent, "no")) == [("output", 1, f"{kind} specialist", "output")]


def test_an_agent_that_waits_for_a_person_is_recorded_so() -> None:
    def agent() -> None:
        with agent_run("asking") as run:
            run.outcome = "interrupted"

    tape = recorded(agent)
    assert [run.outcome for run in tape.runs() if run.agent_name == "asking"] == ["interrupted"]
    assert replayed(tape, agent).equal


def test_a_secret_in_the_input_does_not_differ_from_its_own_redaction() -> None:
    key = "sk-" + "a1B2" * 12

    def agent(secret: str) -> None:
        ask("tool_call", {"key": secret})

    tape = recorded(agent, key)
    assert key not in str(tape.steps)
    assert replayed(tape, agent, key).equal
    assert replayed(tape, agent, "sk-" + "Zz99" * 12).equal  # the replay may have another key, or none


def test_a_coroutine_function_is_run_to_its_end_and_its_value_kept() -> None:
    async def agent() -> str:
        await asyncio.sleep(0)
        return str(ask("tool_call", 1))

    tape = recorded(agent)
    assert replayed(tape, agent).value == "live"


def asks_in_turn(*questions: str) -> None:
    for question in questions:
        with agent_run("a", input=question):
            ask("tool_call", question)


async def asks_in_tasks_in_turn(*questions: str) -> None:
    for question in questions:
        await asyncio.create_task(_asks(question))


async def asks_at_once(*questions: str) -> None:
    await asyncio.gather(*map(_asks, questions))


async def asks_in_tasks_that_were_started_together(*questions: str) -> None:
    before = None
    tasks = []
    for question in questions:
        before = asyncio.create_task(_asks(question, before))
        tasks.append(before)
    await asyncio.gather(*tasks)


async def _asks(question: str, before: asyncio.Task[None] | None = None) -> None:
    if before is not None:
        await before
    async with agent_run("a", input=question):
        ask("tool_call", question)


@pytest.mark.parametrize("agent", [asks_in_turn, asks_in_tasks_in_turn])
def test_runs_that_one_task_began_in_turn_have_an_order(agent: Any) -> None:
    tape = recorded(agent, "go", "other", "third")
    assert replayed(tape, agent, "go", "other", "third").equal
    result = replayed(tape, agent, "go", "third", "other")
    (difference,) = result.differences
    assert (difference.kind, difference.step, difference.name, result.verdict.exit_code) == ("order", None, "agent a", 1)
    first, second = (run.run_id[:12] for run in tape.runs()[-2:])
    assert difference.detail == f"recorded as run {first}, before run {second}, which the agent has now made without it"


@pytest.mark.parametrize("agent", [asks_at_once, asks_in_tasks_that_were_started_together])
def test_which_of_several_tasks_begins_its_run_first_is_chance(agent: Any) -> None:
    tape = recorded(agent, "go", "other")
    assert replayed(tape, agent, "other", "go").equal
