"""The Microsoft Agent Framework's seams, on modules of the same shape."""

import asyncio
import gc
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import agent_framework as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

RAN: list[str] = []


def content(kind: str, **more: Any) -> Any:
    return SimpleNamespace(**{"type": kind, "text": None, "function_call": None, "user_input_request": None, **more})


def asked() -> Any:
    return SimpleNamespace(type="function_call", name="refund", call_id="call_1", parse_arguments=lambda: {"order": 1}, text=None)


class Stream:
    """The parts of ``ResponseStream`` that the adapter uses."""

    def __init__(self, response: Any, error: Exception | None = None) -> None:
        self._response, self._error = response, error
        self._stream_error: Exception | None = None
        self._pulls: list[Any] = []
        self._cleanups: list[Any] = []

    def with_pull_context_manager(self, factory: Any) -> "Stream":
        self._pulls.append(factory)
        return self

    def with_cleanup_hook(self, hook: Any) -> "Stream":
        self._cleanups.append(hook)
        return self

    async def get_final_response(self) -> Any:
        return self._response

    async def __aiter__(self) -> Any:
        for factory in self._pulls:
            with factory():
                pass
        yield "update"
        self._stream_error = self._error
        for hook in self._cleanups:
            await hook()
        if self._error is not None:
            raise self._error


def modules() -> dict[str, ModuleType]:
    made = {
        name: ModuleType(name)
        for name in ("agent_framework", "agent_framework._tools", "agent_framework._agents", "agent_framework._workflows._workflow")
    }

    class FunctionTool:
        name, description = "price", "Look a price up."

        def __init__(self, func: Any) -> None:
            self.func = func

        def parameters(self) -> dict[str, Any]:
            return {"type": "object"}

        async def invoke(self, *, arguments: Any = None, context: Any = None, tool_call_id: str | None = None) -> Any:
            return [await self._invoke_function(dict(arguments))]

        async def _invoke_function(self, call_kwargs: Any) -> Any:
            return self.func(**call_kwargs)

    class RawAgent:
        name, description, client, default_options = "helper", None, None, {"instructions": "You help."}
        contents: list[Any] = [content("text", text="done")]
        error: Exception | None = None

        def run(self, messages: Any = None, *, stream: bool = False, session: Any = None) -> Any:
            response = SimpleNamespace(messages=[SimpleNamespace(contents=self.contents)])
            return Stream(response, self.error) if stream else Stream(response).get_final_response()

    class Agent(RawAgent):
        def run(self, messages: Any = None, *, stream: bool = False, session: Any = None) -> Any:
            return super().run(messages, stream=stream, session=session)

    class Workflow:
        name = "WorkflowBuilder-1234"

        def run(self, message: Any = None, *, stream: bool = False) -> Any:
            return Stream(SimpleNamespace(get_outputs=lambda: [SimpleNamespace(text="a"), "b"])).get_final_response()

    made["agent_framework._tools"].FunctionTool = FunctionTool  # type: ignore[attr-defined]
    made["agent_framework._agents"].RawAgent = RawAgent  # type: ignore[attr-defined]
    made["agent_framework._agents"].Agent = Agent  # type: ignore[attr-defined]
    made["agent_framework._workflows._workflow"].Workflow = Workflow  # type: ignore[attr-defined]
    return made


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(adapter, "_version", lambda: "agent-framework-core 0")
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield SimpleNamespace(
        tool=made["agent_framework._tools"].FunctionTool,
        agent=made["agent_framework._agents"].Agent,
        workflow=made["agent_framework._workflows._workflow"].Workflow,
    )
    adapter.uninstall()


def price(item: str) -> int:
    RAN.append(item)
    if item == "nothing":
        raise KeyError(item)
    return len(item)


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert asyncio.run(sdk.tool(price).invoke(arguments={"item": "umbrella"})) == [8]
    adapter.uninstall()
    assert adapter.status() == "off"
    assert not hasattr(sdk.tool.invoke, "__wrapped__")
    assert not hasattr(sdk.agent.run, "__wrapped__")


@pytest.mark.parametrize(("item", "outcome"), [("umbrella", "ok"), ("nothing", "error")])
def test_a_tool_call_is_a_step_and_is_given_again(sdk: Any, item: str, outcome: str) -> None:
    async def ask() -> Any:
        try:
            return await sdk.tool(price).invoke(arguments={"item": item}, tool_call_id="call_1")
        except KeyError as error:
            return str(error)

    tape = recorded(ask)
    (step,) = tape.steps
    assert (step[names.STEP_OUTCOME], step[names.GEN_AI_TOOL_CALL_ID]) == (outcome, "call_1")
    assert step[names.GEN_AI_TOOL_CALL_ARGUMENTS] == f'{{"item":"{item}"}}'
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, [8] if outcome == "ok" else "'nothing'", [item])


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_has_its_input_output_and_definition(sdk: Any, stream: bool) -> None:
    async def ask() -> None:
        running = sdk.agent().run("hello", stream=stream)
        if stream:
            async for _ in running:
                pass
        else:
            await running

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "helper"]
    assert (run.input, run.output, run.definition["instructions"]) == ("hello", "done", "You help.")
    assert replayed(tape, ask).equal


def test_a_stream_that_fails_or_is_left_ends_its_run_so(sdk: Any) -> None:
    async def ask() -> None:
        agent = sdk.agent()
        agent.error = ValueError("no")
        async for _ in agent.run("fails", stream=True):
            pass

    async def read_one() -> None:
        async for _ in sdk.agent().run("left", stream=True):
            break

    def leave() -> None:
        asyncio.run(read_one())
        gc.collect()  # from Python 3.12 on it goes only then

    assert recorded(ask).outcomes == ["error"]
    assert recorded(leave).outcomes == ["abandoned"]


def test_what_a_person_said_and_is_asked(sdk: Any) -> None:
    async def ask() -> None:
        agent = sdk.agent()
        agent.contents = [content("function_approval_request", function_call=asked()), asked_of_the_caller()]
        answers = [content("function_approval_response", function_call=asked(), approved=approved) for approved in (True, False)]
        await agent.run([SimpleNamespace(role="user", contents=answers)])

    tape = recorded(ask)
    decisions = [step.get(names.GEN_AI_TOOL_CALL_DECISION_OUTCOME) for step in tape.steps]
    assert decisions == [None, "allow", "deny", None, "require_approval", None]
    assert tape.outcomes == ["interrupted", "ok", "ok", "rejected", "ok", "deferred"]
    assert told(replayed(tape, ask)) == []


def asked_of_the_caller() -> Any:
    made = asked()
    made.user_input_request = True
    return made


def test_a_workflow_without_a_name_has_the_same_one_in_every_run(sdk: Any) -> None:
    async def ask() -> None:
        await sdk.workflow().run("hello")

    tape = recorded(ask)
    assert [(run.agent_name, run.output) for run in tape.runs()] == [("workflow", ["a", "b"])]
    assert replayed(tape, ask).equal


def test_another_release_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("agent_framework._tools")

    class FunctionTool:
        async def invoke(self, *, arguments: Any, context: Any, tool_call_id: str) -> None: ...

    module.FunctionTool = FunctionTool  # type: ignore[attr-defined]
    before = FunctionTool.invoke
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert adapter.status() == "unsupported: wanted a function FunctionTool._invoke_function, found none"
        assert FunctionTool.invoke is before
    finally:
        adapter.uninstall()
