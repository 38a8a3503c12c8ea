"""Haystack's seams, on modules of the same shape."""

import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import haystack as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

RAN: list[Any] = []


@dataclass
class Asked:
    id: str = "call_1"
    tool_name: str = "price"
    extra: Any = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"item": "umbrella"}


@dataclass
class Said:
    action: str
    feedback: str | None = None
    new_tool_params: Any = None


def price(item: str, state: Any = None) -> int:
    """Look a price up."""
    RAN.append(item)
    return len(item)


async def aprice(item: str) -> int:
    return price(item)


class State:
    def __init__(self) -> None:
        self.data: dict[str, Any] = {"messages": [], "total": 0}


def count(state: State) -> str:
    RAN.append("count")
    state.data["total"] += 3
    state.data["messages"].append("counted")
    return "counted"


async def acount(state: State) -> str:
    return count(state)


def modules() -> dict[str, ModuleType]:
    parts = ("tools.tool", "components.agents.tool_calling", "components.agents.agent", "core.pipeline.pipeline")
    made = {f"haystack.{part}": ModuleType(f"haystack.{part}") for part in (*parts, "hooks.human_in_the_loop.strategies")}
    made["haystack"] = ModuleType("haystack")

    class Tool:
        name, description, parameters = "price", "Look a price up.", {"type": "object"}

        def __init__(self, function: Any = None, async_function: Any = None) -> None:
            self.function, self.async_function = function, async_function

        def invoke(self, **kwargs: Any) -> Any:
            return self.function(**kwargs)

        async def invoke_async(self, **kwargs: Any) -> Any:
            return await self.async_function(**kwargs) if self.async_function else self.invoke(**kwargs)

    def _make_context_bound_invoke(tool: Any, args: Any, tool_call: Any) -> Any:
        import contextvars

        context = contextvars.copy_context()
        return lambda: context.run(tool.invoke, **args)

    def _make_bounded_invoke_async(tool: Any, args: Any, semaphore: Any, tool_call: Any) -> Any:
        return lambda: tool.invoke_async(**args)

    def _resolve_tool_calls(messages_with_tool_calls: Any, tools_with_names: Any, *, raise_on_failure: bool) -> Any:
        return [call for message in messages_with_tool_calls for call in message.tool_calls if call.tool_name in tools_with_names]

    class Agent:
        system_prompt = "You help."

        def __init__(self, answer: Any = None) -> None:
            self.chat_generator = SimpleNamespace(model="gpt-4o-mini", generation_kwargs={"temperature": 0})
            self._answer = answer or (lambda: SimpleNamespace(text="done"))

        def run(self, messages: Any, **options: Any) -> Any:
            return {"messages": [], "last_message": self._answer()}

        async def run_async(self, messages: Any, **options: Any) -> Any:
            return self.run(messages)

    class Pipeline:
        metadata = {"name": "desk"}
        graph = SimpleNamespace(nodes=["llm"], edges=lambda data: [])

        def get_component(self, name: str) -> Any:
            return self

        def run(self, data: Any) -> Any:
            return {"llm": {"replies": [data]}}

        async def run_async(self, data: Any) -> Any:
            last = None
            async for part in self.run_async_generator(data):
                last = part
            return last

        async def run_async_generator(self, data: Any) -> AsyncIterator[Any]:
            yield {}
            yield {"llm": {"replies": [data]}}

    class BlockingConfirmationStrategy:
        def __init__(self, confirmation_ui: Any) -> None:
            self.confirmation_ui = confirmation_ui

        def run(self, *, tool_name: str, tool_description: str, tool_params: Any, tool_call_id: Any = None) -> Any:
            return self.confirmation_ui.get_user_confirmation(tool_name, tool_description, tool_params).action

    for name, what in (
        ("tools.tool", [Tool]),
        ("components.agents.tool_calling", [_make_context_bound_invoke, _make_bounded_invoke_async, _resolve_tool_calls]),
        ("components.agents.agent", [Agent]),
        ("core.pipeline.pipeline", [Pipeline]),
        ("hooks.human_in_the_loop.strategies", [BlockingConfirmationStrategy]),
    ):
        vars(made[f"haystack.{name}"]).update({one.__name__: one for one in what})
    return made


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(adapter, "_version", lambda: "haystack-ai 0")
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    classes = {name: value for module in made.values() for name, value in vars(module).items() if isinstance(value, type)}
    yield SimpleNamespace(**classes, calling=made["haystack.components.agents.tool_calling"])
    adapter.uninstall()


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert sdk.Tool(price).invoke(item="umbrella") == 8
    adapter.uninstall()
    assert adapter.status() == "off"
    for function in (sdk.Tool.invoke, sdk.Agent.run, sdk.Pipeline.run, sdk.calling._make_context_bound_invoke):
        assert not hasattr(function, "__wrapped__")


@pytest.mark.parametrize(
    ("tool", "awaited"), [({"function": price}, False), ({"function": price}, True), ({"async_function": aprice}, True)]
)
def test_a_tool_call_is_one_step_and_is_given_again(sdk: Any, tool: Any, awaited: bool) -> None:
    async def ask() -> Any:
        made = sdk.Tool(**tool)
        return await made.invoke_async(item="umbrella") if awaited else made.invoke(item="umbrella", state=State())

    tape = recorded(ask)
    (step,) = tape.steps
    assert (step[names.STEP_NAME], step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == ("price", '{"item":"umbrella"}')
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, 8, ["umbrella"])


@pytest.mark.parametrize(
    ("tool", "awaited"), [({"function": count}, False), ({"function": count}, True), ({"async_function": acount}, True)]
)
def test_what_a_tool_writes_to_the_state_is_written_again(sdk: Any, tool: Any, awaited: bool) -> None:
    async def ask() -> Any:
        state, made = State(), sdk.Tool(**tool)
        result = await made.invoke_async(state=state) if awaited else made.invoke(state=state)
        return result, state.data["total"]

    tape = recorded(ask)
    assert len(tape.steps) == 1
    result = replayed(tape, ask)
    assert (told(result), result.value, RAN) == ([], ("counted", 3), ["count"])


@pytest.mark.parametrize(("extra", "call_id"), [(None, "call_1"), ({"call_id": "call_2"}, "call_2")])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_call_of_an_agent_has_the_id_of_the_model(sdk: Any, extra: Any, call_id: str, awaited: bool) -> None:
    async def ask() -> Any:
        asked, args = Asked(extra=extra), {"item": "umbrella", "state": State()}
        if awaited:
            return await sdk.calling._make_bounded_invoke_async(sdk.Tool(price), args, None, asked)()
        return sdk.calling._make_context_bound_invoke(sdk.Tool(price), args, asked)()

    (step,) = recorded(ask).steps
    assert (step[names.GEN_AI_TOOL_CALL_ID], step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == (call_id, '{"item":"umbrella"}')


def test_a_call_of_no_tool_is_malformed(sdk: Any) -> None:
    messages = [SimpleNamespace(tool_calls=[Asked(), Asked(tool_name="prices")])]
    tape = recorded(lambda: sdk.calling._resolve_tool_calls(messages, {"price": 1}, raise_on_failure=False))
    assert (tape.outcomes, [step[names.STEP_NAME] for step in tape.steps]) == (["malformed"], ["prices"])


@pytest.mark.parametrize("awaited", [False, True])
def test_an_agent_is_a_run_with_its_definition(sdk: Any, awaited: bool) -> None:
    async def ask() -> None:
        agent, messages = sdk.Agent(), [SimpleNamespace(role=SimpleNamespace(value="user"), text="hello")]
        await agent.run_async(messages) if awaited else agent.run(messages)

    tape = recorded(ask)
    run = next(run for run in tape.runs() if run.agent_name == "Agent")
    assert (run.input, run.output) == ({"messages": [{"role": "user", "text": "hello"}]}, "done")
    assert (run.definition["system_prompt"], run.definition["settings"]) == ("You help.", {"temperature": 0})
    assert replayed(tape, ask).equal


@pytest.mark.parametrize("way", ["run", "run_async", "run_async_generator"])
def test_a_pipeline_is_one_run(sdk: Any, way: str) -> None:
    async def ask() -> None:
        pipeline = sdk.Pipeline()
        match way:
            case "run":
                pipeline.run({"q": 1})
            case "run_async":
                await pipeline.run_async({"q": 1})
            case _:
                assert len([part async for part in pipeline.run_async_generator({"q": 1})]) == 2

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "desk"]
    assert (run.input, run.output, run.steps) == ({"q": 1}, {"llm": {"replies": [{"q": 1}]}}, ())
    assert run.definition["components"] == {"llm": "Pipeline"}
    assert replayed(tape, ask).equal


def test_a_person_is_asked_once(sdk: Any) -> None:
    class Person:
        def get_user_confirmation(self, tool_name: str, tool_description: str, tool_params: Any) -> Said:
            RAN.append(tool_params["order"])
            return Said("reject", "no") if tool_params["order"] == 2 else Said("confirm")

    def ask() -> list[str]:
        strategy = sdk.BlockingConfirmationStrategy(Person())
        return [strategy.run(tool_name="refund", tool_description="", tool_params={"order": order}) for order in (1, 2)]

    tape = recorded(ask)
    assert [step[names.STEP_KIND] for step in tape.steps] == [*["decision", "human", "decision"] * 2, "tool_call"]
    assert tape.outcomes[-1] == "rejected"
    result = replayed(tape, ask)
    assert (told(result), result.value, RAN) == ([], ["confirm", "reject"], [1, 2])


def test_another_release_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("haystack.tools.tool")
    module.Tool = type("Tool", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert adapter.status() == "unsupported: wanted a function Tool.invoke, found none"
    finally:
        adapter.uninstall()
