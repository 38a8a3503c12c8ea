"""Agno's seams, on modules of the same shape."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation import agno_runs
from spanreplay.instrumentation.adapters import agno as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

RAN: list[str] = []


class Function:
    description, parameters = "Look a price up.", {"type": "object"}

    def __init__(self, entrypoint: Any) -> None:
        self.name, self.entrypoint = "price", entrypoint


def modules() -> dict[str, ModuleType]:
    made = {
        name: ModuleType(name) for name in ("agno", "agno.tools.function", "agno.agent.agent", "agno.team.team", "agno.workflow.workflow")
    }

    class FunctionCall:
        def __init__(self, entrypoint: Any) -> None:
            self.function, self.arguments, self.call_id = Function(entrypoint), {"item": "umbrella"}, "call_1"

        def execute(self) -> Any:
            return self.function.entrypoint(**self.arguments)

        async def aexecute(self) -> Any:
            result = self.function.entrypoint(**self.arguments)
            return await result if asyncio.iscoroutine(result) else result

    class Agent:
        name, instructions = "helper", "You help."
        response: Any = SimpleNamespace(content="done")

        def run(self, input: Any, *, stream: bool = False) -> Any:
            return (event for event in events()) if stream else self.response

        def arun(self, input: Any, *, stream: bool = False) -> Any:
            return aevents() if stream else self._arun()

        async def _arun(self) -> Any:
            return self.response

        def continue_run(self, run_response: Any) -> Any:
            return SimpleNamespace(content="refunded")

    class Workflow:
        name, session_id = "plan", "s1"

        def __init__(self, steps: Any) -> None:
            self.steps = steps

        def run(self, input: Any, *, stream: bool = False) -> Any:
            said = [step.run(input).content for step in self.steps]
            return (
                (one for one in [SimpleNamespace(event="WorkflowCompleted", content=said[-1])])
                if stream
                else SimpleNamespace(content=said[-1])
            )

        async def arun(self, input: Any) -> Any:
            return SimpleNamespace(content=None, is_paused=True, step_requirements=[asked_about("send", None)])

        async def acontinue_run(self, run_response: Any, *, stream: bool = False) -> Any:
            return wevents() if stream else SimpleNamespace(content="sent")

    made["agno.tools.function"].FunctionCall = FunctionCall  # type: ignore[attr-defined]
    made["agno.agent.agent"].Agent = Agent  # type: ignore[attr-defined]
    made["agno.team.team"].Team = type("Team", (Agent,), {"run": Agent.run, "arun": Agent.arun})  # type: ignore[attr-defined]
    made["agno.workflow.workflow"].Workflow = Workflow  # type: ignore[attr-defined]
    return made


def events() -> list[Any]:
    return [SimpleNamespace(event="RunContent", content=part) for part in ("do", "ne")]


def asked_about(step: str, confirmed: bool | None) -> Any:
    return SimpleNamespace(step_id="1", step_name=step, requires_confirmation=True, confirmed=confirmed)


async def wevents() -> AsyncIterator[Any]:
    yield SimpleNamespace(event="WorkflowCompleted", content="sent")


async def aevents() -> AsyncIterator[Any]:
    for event in events():
        yield event


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(agno_runs, "_version", lambda: "agno 0")
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield SimpleNamespace(
        call=made["agno.tools.function"].FunctionCall,
        agent=made["agno.agent.agent"].Agent,
        workflow=made["agno.workflow.workflow"].Workflow,
    )
    adapter.uninstall()


def price(item: str) -> int:
    RAN.append(item)
    return len(item)


async def aprice(item: str) -> int:
    return price(item)


def prices(item: str) -> Iterator[int]:
    yield price(item)


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert sdk.call(price).execute() == 8
    adapter.uninstall()
    assert adapter.status() == "off"
    assert not hasattr(sdk.call.execute, "__wrapped__")
    assert not hasattr(sdk.agent.run, "__wrapped__")


@pytest.mark.parametrize("function", [price, aprice])
def test_a_tool_call_is_a_step_and_is_given_again(sdk: Any, function: Any) -> None:
    async def ask() -> Any:
        asked = sdk.call(function)
        before = asked.function
        result = await asked.aexecute() if function is aprice else asked.execute()
        assert asked.function is before
        return result

    tape = recorded(ask)
    (step,) = tape.steps
    assert (step[names.GEN_AI_TOOL_CALL_ID], step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == ("call_1", '{"item":"umbrella"}')
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, 8, ["umbrella"])


def noted(item: str, run_context: Any) -> int:
    run_context.session_state["notes"].append(item)
    return price(item)


async def anoted(item: str, run_context: Any) -> int:
    return noted(item, run_context)


@pytest.mark.parametrize("function", [noted, anoted])
def test_what_a_tool_changes_in_the_state_is_changed_again(sdk: Any, function: Any) -> None:
    async def ask() -> Any:
        state = {"notes": list[str]()}
        asked = sdk.call(function)
        context = {"run_context": SimpleNamespace(session_state=state)}
        asked.arguments |= context
        result = await asked.aexecute() if function is anoted else asked.execute()
        return result, state

    tape = recorded(ask)
    result = replayed(tape, ask)
    assert (result.value, RAN) == ((8, {"notes": ["umbrella"]}), ["umbrella"])


def test_the_id_of_an_item_is_no_id_of_a_call(sdk: Any) -> None:
    asked = sdk.call(price)
    asked.call_id = "fc_1"
    (step,) = recorded(asked.execute).steps
    assert names.GEN_AI_TOOL_CALL_ID not in step


def test_a_tool_that_is_a_generator_is_left_alone(sdk: Any) -> None:
    tape = recorded(lambda: list(sdk.call(prices).execute()))
    assert (tape.steps, RAN) == ([], ["umbrella"])


@pytest.mark.parametrize("way", ["run", "arun", "stream", "astream"])
def test_a_run_has_its_input_output_and_definition(sdk: Any, way: str) -> None:
    async def ask() -> None:
        agent = sdk.agent()
        match way:
            case "run":
                agent.run("hello")
            case "arun":
                await agent.arun("hello")
            case "stream":
                assert len(list(agent.run("hello", stream=True))) == 2
            case _:
                assert len([event async for event in agent.arun("hello", stream=True)]) == 2

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "helper"]
    assert (run.input, run.output, run.definition["instructions"]) == ("hello", "done", "You help.")
    assert replayed(tape, ask).equal


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_of_which_only_the_end_is_not_read_was_not_left(sdk: Any, asynchronous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*events(), SimpleNamespace(run_id="1", content="whole")]

    async def asynchronously() -> AsyncIterator[Any]:
        for event in given:
            yield event

    monkeypatch.setattr(sys.modules[__name__], "events", lambda: (event for event in given))
    monkeypatch.setattr(sys.modules[__name__], "aevents", asynchronously)

    async def read(until: int) -> None:
        seen = 0
        if asynchronous:
            source = sdk.agent().arun("hello", stream=True)
            while seen < until:
                await anext(source)
                seen += 1
            await source.aclose()
        else:
            source = sdk.agent().run("hello", stream=True)
            while seen < until:
                next(source)
                seen += 1
            source.close()

    for until, outcome, output in ((3, "ok", "whole"), (1, "abandoned", None)):
        tape = recorded(read, until)
        (run,) = [run for run in tape.runs() if run.agent_name == "helper"]
        assert (run.outcome, run.output) == (outcome, output)
        assert replayed(tape, read, until).equal


def test_what_a_person_is_asked_and_has_said(sdk: Any) -> None:
    def waiting(confirmed: bool | None) -> Any:
        return SimpleNamespace(tool_name="refund", tool_args={}, tool_call_id="call_1", requires_confirmation=True, confirmed=confirmed)

    def ask() -> None:
        agent = sdk.agent()
        agent.response = SimpleNamespace(content=None, is_paused=True, tools=[waiting(None)])
        agent.run("hello")
        agent.continue_run(SimpleNamespace(run_id="1", tools=[waiting(True), waiting(False)]))

    tape = recorded(ask)
    assert [step.get(names.GEN_AI_TOOL_CALL_DECISION_OUTCOME) for step in tape.steps] == [
        None, "require_approval", None, "allow", "deny", None,
    ]  # fmt: skip
    assert tape.outcomes == ["interrupted", "ok", "ok", "ok", "ok", "rejected"]
    assert told(replayed(tape, ask)) == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_workflow_is_a_run_around_those_of_its_agents(sdk: Any, stream: bool) -> None:
    def ask() -> None:
        given = sdk.workflow([sdk.agent()]).run("hello", stream=stream)
        assert not stream or len(list(given)) == 1

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "plan"]
    assert (run.input, run.output, run.definition["steps"], run.session_id) == ("hello", "done", ["helper"], "s1")
    assert [(step.kind, step.name) for step in run.steps] == [("agent", "helper")]
    assert replayed(tape, ask).equal


@pytest.mark.parametrize("stream", [False, True])
def test_a_workflow_that_waits_for_a_person_goes_on(sdk: Any, stream: bool) -> None:
    async def ask() -> None:
        await sdk.workflow([]).arun("hello")
        goes_on = SimpleNamespace(run_id="1", step_requirements=[asked_about("send", True)])
        given = await sdk.workflow([]).acontinue_run(goes_on, stream=stream)
        assert not stream or [event.content async for event in given] == ["sent"]

    tape = recorded(ask)
    first, second = [run for run in tape.runs() if run.agent_name == "plan"]
    assert (first.outcome, second.outcome, second.output) == ("interrupted", "ok", "sent")
    assert [step.decision["outcome"] for run in (first, second) for step in run.steps] == ["require_approval", "allow"]
    assert replayed(tape, ask).equal


def test_another_release_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("agno.tools.function")
    module.FunctionCall = type("FunctionCall", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert adapter.status() == "unsupported: wanted a function FunctionCall.execute, found none"
    finally:
        adapter.uninstall()
