"""The OpenAI Agents SDK's seams, on modules of the same shape."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run
from spanreplay.instrumentation.adapters import openai_agents as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

RAN: list[str] = []


@dataclass
class Tool:
    name: str
    on_invoke_tool: Any
    description: str = "Does it."
    params_json_schema: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: float | None = None
    _is_agent_tool: bool = False


@dataclass(frozen=True)
class _FunctionToolInvocationResult:
    output: Any
    is_sdk_generated_error: bool = False


_FunctionToolInvocationResult.__module__ = "agents.tool"


def modules() -> dict[str, ModuleType]:
    parts = (
        "run",
        "tool",
        "run_context",
        "guardrail",
        "tool_guardrails",
        "memory.sqlite_session",
        *(f"run_internal.{name}" for name in _INTERNAL),
    )
    made = {name: ModuleType(name) for name in ("agents", *(f"agents.{part}" for part in parts))}
    tool, run = made["agents.tool"], made["agents.run"]

    async def maybe_invoke_function_tool_failure_error_function(*, function_tool: Any, context: Any, error: BaseException) -> str:
        return "it failed"

    async def _invoke_function_tool_with_metadata(*, function_tool: Any, context: Any, arguments: str) -> Any:
        try:
            return tool._FunctionToolInvocationResult(await function_tool.on_invoke_tool(context, arguments))
        except ValueError as error:
            text = await tool.maybe_invoke_function_tool_failure_error_function(function_tool=function_tool, context=context, error=error)
            return tool._FunctionToolInvocationResult(text, True)

    tool._FunctionToolInvocationResult = _FunctionToolInvocationResult  # type: ignore[attr-defined]
    tool._invoke_function_tool_with_metadata = _invoke_function_tool_with_metadata  # type: ignore[attr-defined]
    tool.maybe_invoke_function_tool_failure_error_function = maybe_invoke_function_tool_failure_error_function  # type: ignore[attr-defined]

    class AgentRunner:
        async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
            return await starting_agent.act(input)

    run.AgentRunner = AgentRunner  # type: ignore[attr-defined]

    async def start_streaming(starting_input: Any, streamed_result: Any, starting_agent: Any, **options: Any) -> None:
        streamed_result.final_output = (await starting_agent.act(starting_input)).final_output

    async def turn(**options: Any) -> Any:
        return await options["agent"].act("turn")

    loop = made["agents.run_internal.run_loop"]
    loop.start_streaming = start_streaming  # type: ignore[attr-defined]
    loop.run_single_turn = loop.run_single_turn_streamed = turn  # type: ignore[attr-defined]

    async def execute_handoffs(*, public_agent: Any, run_handoffs: Any) -> Any:
        RAN.append("hand-off")
        return SimpleNamespace(next_step=SimpleNamespace(new_agent=SimpleNamespace(name=run_handoffs[0].handoff.agent_name)))

    made["agents.run_internal.turn_resolution"].execute_handoffs = execute_handoffs  # type: ignore[attr-defined]

    def rejection(agent: Any, tool_call: Any, **options: Any) -> Any:
        return SimpleNamespace(output="not approved")

    for name in ("function_rejection_item", "shell_rejection_item", "apply_patch_rejection_item"):
        setattr(made["agents.run_internal.items"], name, rejection)

    class Action:
        @classmethod
        async def execute(cls, *, agent: Any, call: Any) -> Any: ...

        @classmethod
        async def _execute_action_and_capture(cls, computer: Any, tool_call: Any) -> str:
            RAN.append("computer")
            return "image"

    for name in ("ComputerAction", "LocalShellAction", "ShellAction", "ApplyPatchAction", "CustomToolAction"):
        setattr(made["agents.run_internal.tool_actions"], name, type(name, (Action,), {}))

    class RunContextWrapper:
        def approve_tool(self, approval_item: Any) -> None: ...
        def reject_tool(self, approval_item: Any, rejection_message: str | None = None) -> None: ...

    made["agents.run_context"].RunContextWrapper = RunContextWrapper  # type: ignore[attr-defined]

    class Guardrail:
        def __init__(self, trips: bool) -> None:
            self.trips = trips

        def get_name(self) -> str:
            return "polite"

        async def run(self, *_: Any) -> Any:
            return SimpleNamespace(output=SimpleNamespace(tripwire_triggered=self.trips))

    class ToolGuardrail(Guardrail):
        async def run(self, *_: Any) -> Any:
            return SimpleNamespace(behavior={"type": "reject_content" if self.trips else "allow"})

    for name in ("ToolInputGuardrail", "ToolOutputGuardrail"):
        setattr(made["agents.tool_guardrails"], name, type(name, (ToolGuardrail,), {}))
    made["agents.guardrail"].InputGuardrail = type("InputGuardrail", (Guardrail,), {})  # type: ignore[attr-defined]
    made["agents.guardrail"].OutputGuardrail = type("OutputGuardrail", (Guardrail,), {})  # type: ignore[attr-defined]

    class SQLiteSession:
        def __init__(self, session_id: str, db_path: str = ":memory:") -> None:
            self.session_id, self.db_path, self.items = session_id, db_path, [1]

        async def get_items(self, limit: int | None = None) -> list[int]:
            RAN.append("get_items")
            return self.items

        async def add_items(self, items: list[int]) -> None: ...
        async def pop_item(self) -> None: ...
        async def clear_session(self) -> None: ...

    made["agents.memory.sqlite_session"].SQLiteSession = SQLiteSession  # type: ignore[attr-defined]
    return made


_INTERNAL = ("run_loop", "turn_resolution", "items", "tool_actions")


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(adapter, "_version", lambda: "openai-agents 0")
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield made
    adapter.uninstall()


def call(sdk: dict[str, ModuleType], tool: Tool, arguments: str = '{"city": "Paris"}') -> Any:
    async def invoke() -> Any:
        context = SimpleNamespace(tool_call_id="call_1")
        return await sdk["agents.tool"]._invoke_function_tool_with_metadata(function_tool=tool, context=context, arguments=arguments)

    return invoke


async def sunny(_context: Any, arguments: str) -> str:
    RAN.append(arguments)
    return "sunny"


async def failing(_context: Any, arguments: str) -> str:
    RAN.append(arguments)
    raise ValueError("no such city")


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: dict[str, ModuleType]) -> None:
    assert adapter.status() == "active"
    assert asyncio.run(call(sdk, Tool("weather", sunny))()) == _FunctionToolInvocationResult("sunny")
    adapter.uninstall()
    assert adapter.status() == "off"
    assert not hasattr(sdk["agents.tool"]._invoke_function_tool_with_metadata, "__wrapped__")
    assert not hasattr(sdk["agents.run"].AgentRunner.run, "__wrapped__")


@pytest.mark.parametrize(
    ("function", "outcome", "given"),
    [(sunny, "ok", _FunctionToolInvocationResult("sunny")), (failing, "tool_error", _FunctionToolInvocationResult("it failed", True))],
)
def test_a_tool_call_is_a_step_and_is_given_again(sdk: dict[str, ModuleType], function: Any, outcome: str, given: Any) -> None:
    invoke = call(sdk, Tool("weather", function))
    tape = recorded(invoke)
    (step,) = tape.steps
    assert (step[names.STEP_OUTCOME], step[names.GEN_AI_TOOL_CALL_ID]) == (outcome, "call_1")
    assert names.TOOL_SCHEMA_DIGEST in step
    assert step.get(names.ERROR_TYPE) == (None if outcome == "ok" else "ValueError")
    result = replayed(tape, invoke)
    assert (result.equal, result.value, len(RAN)) == (True, given, 1)


def test_an_agent_behind_a_tool_runs_again(sdk: dict[str, ModuleType]) -> None:
    invoke = call(sdk, Tool("ask", sunny, _is_agent_tool=True))
    assert replayed(recorded(invoke), invoke).equal
    assert len(RAN) == 2


def agent(waiting: list[Any] | None = None) -> Any:
    async def act(_given: Any) -> Any:
        return SimpleNamespace(final_output="done", interruptions=waiting or [])

    return SimpleNamespace(name="helper", instructions="You help.", handoff_description=None, act=act)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_has_its_input_output_and_definition(sdk: dict[str, ModuleType], streamed: bool) -> None:
    async def ask() -> None:
        if streamed:
            result = SimpleNamespace(final_output=None, interruptions=[])
            await sdk["agents.run_internal.run_loop"].start_streaming("hello", result, agent())
        else:
            await sdk["agents.run"].AgentRunner().run(agent(), "hello")

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "helper"]
    assert (run.input, run.output, run.definition["instructions"]) == ("hello", "done", "You help.")
    assert replayed(tape, ask).equal


def test_calls_that_wait_for_a_person_are_decisions_and_the_run_is_interrupted(sdk: dict[str, ModuleType]) -> None:
    item = SimpleNamespace(raw_item={"type": "function_call", "name": "refund", "arguments": '{"order": 1}', "call_id": "call_1"})

    async def ask() -> None:
        with agent_run("application"):
            await sdk["agents.run"].AgentRunner().run(agent([item]), "hello")
            wrapper = sdk["agents.run_context"].RunContextWrapper()
            wrapper.approve_tool(item)
            wrapper.reject_tool(item, rejection_message="no")
            handed_on: dict[str, Any] = {"__name__": "agents.agent", "wrapper": wrapper, "item": item}
            exec("wrapper.approve_tool(item)", handed_on)  # to an agent inside a tool: decided already
            sdk["agents.run_internal.items"].function_rejection_item(None, item.raw_item)

    tape = recorded(ask)
    decisions = [step.get(names.GEN_AI_TOOL_CALL_DECISION_OUTCOME) for step in tape.steps]
    assert decisions == [None, None, "require_approval", "allow", "deny", None]
    assert tape.outcomes == ["ok", "interrupted", "ok", "ok", "ok", "rejected"]
    assert told(replayed(tape, ask)) == []


def test_handoffs_run_again_and_guardrails_are_decisions(sdk: dict[str, ModuleType]) -> None:
    async def ask() -> Any:
        await sdk["agents.guardrail"].InputGuardrail(True).run()
        await sdk["agents.tool_guardrails"].ToolInputGuardrail(True).run()
        await sdk["agents.tool_guardrails"].ToolOutputGuardrail(False).run()
        asked = SimpleNamespace(handoff=SimpleNamespace(agent_name="billing"), tool_call={"arguments": "{}", "call_id": "call_1"})
        done = await sdk["agents.run_internal.turn_resolution"].execute_handoffs(public_agent=agent(), run_handoffs=[asked])
        return done.next_step.new_agent.name

    tape = recorded(ask)
    assert [(step[names.STEP_KIND], step[names.STEP_NAME]) for step in tape.steps] == [
        *[("decision", "polite")] * 3,
        ("handoff", "billing"),
    ]
    said = [step[names.DECISION] for step in tape.steps if names.DECISION in step]
    assert ["deny" in each for each in said] == [True, True, False]
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, "billing", ["hand-off", "hand-off"])


def test_a_session_is_read_from_the_record_and_opens_no_file_then(sdk: dict[str, ModuleType]) -> None:
    paths = []

    async def ask() -> Any:
        session = sdk["agents.memory.sqlite_session"].SQLiteSession("a", "a.db")
        paths.append(session.db_path)
        return await session.get_items()

    result = replayed(recorded(ask), ask)
    assert (result.equal, result.value, RAN, paths) == (True, [1], ["get_items"], ["a.db", ":memory:"])


def test_local_actions_are_recorded_where_they_leave_the_sdk(sdk: dict[str, ModuleType]) -> None:
    async def ask() -> Any:
        asked = SimpleNamespace(call_id="call_1", actions=[{"type": "screenshot"}])
        return await sdk["agents.run_internal.tool_actions"].ComputerAction._execute_action_and_capture(None, asked)

    result = replayed(recorded(ask), ask)
    assert (result.equal, result.value, RAN) == (True, "image", ["computer"])


def test_another_release_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("agents.tool")

    async def invoke_function_tool(tool: Any) -> None: ...

    module.invoke_function_tool = invoke_function_tool  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agents.tool", module)
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    try:
        assert "function_tool, context, arguments" in adapter.status()
        assert module.invoke_function_tool is invoke_function_tool
    finally:
        adapter.uninstall()
