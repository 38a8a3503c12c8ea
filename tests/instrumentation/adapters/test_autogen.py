"""AutoGen's seams, on modules of the same shape."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import autogen as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

RAN: list[str] = []


def message(text: str) -> Any:
    return SimpleNamespace(source="user", to_text=lambda: text)


def result(text: str) -> Any:
    return SimpleNamespace(messages=[message(text)])


def modules() -> dict[str, ModuleType]:
    made = {
        name: ModuleType(name)
        for name in (
            "autogen_core.tools._base",
            "autogen_agentchat.agents._base_chat_agent",
            "autogen_agentchat.agents._assistant_agent",
            "autogen_agentchat.teams._group_chat._base_group_chat",
        )
    }
    tools, agents, assistants, teams = made.values()

    class BaseTool:
        description = "Does it."

        def __init__(self, func: Any, name: str) -> None:
            self._func, self.name, self.schema = func, name, {"parameters": {"type": "object"}}

        def return_value_as_string(self, value: Any) -> str:
            return value.messages[-1].to_text() if hasattr(value, "messages") else str(value)

        async def run_json(self, args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
            RAN.append(self.name)
            return self._func(**args)

    class BaseStreamTool(BaseTool):
        async def run_json_stream(self, args: Any, cancellation_token: Any, call_id: str | None = None) -> AsyncIterator[Any]:
            RAN.append(self.name)
            for item in self._func(**args):
                yield item

    class TaskRunnerTool(BaseStreamTool):
        pass

    class BaseChatAgent:
        description, _system_messages = "An agent.", [SimpleNamespace(content="Be short.")]
        _model_client = SimpleNamespace(_create_args={"model": "m"})

        def __init__(self, name: str) -> None:
            self.name = name

        async def run(self, *, task: Any = None) -> Any:
            return [each async for each in self.on_messages_stream([], None)][-1]

        async def run_stream(self, *, task: Any = None) -> AsyncIterator[Any]:
            async for each in self.on_messages_stream([], None):
                yield each

        def on_messages_stream(self, messages: Any, cancellation_token: Any) -> Any: ...

    class AssistantAgent(BaseChatAgent):
        async def on_messages_stream(self, messages: Any, cancellation_token: Any) -> AsyncIterator[Any]:
            yield result(f"{self.name} says")

    class BaseGroupChat:
        name, description = "team", "A team."
        _participants = (AssistantAgent("one"), AssistantAgent("two"))

        async def run_stream(self, *, task: Any = None) -> AsyncIterator[Any]:
            for each in self._participants:
                async for event in each.on_messages_stream([message("go")], None):
                    yield event

    vars(tools).update(BaseTool=BaseTool, BaseStreamTool=BaseStreamTool, TaskRunnerTool=TaskRunnerTool)
    vars(agents).update(BaseChatAgent=BaseChatAgent)
    vars(assistants).update(AssistantAgent=AssistantAgent)
    vars(teams).update(BaseGroupChat=BaseGroupChat)
    return made


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield SimpleNamespace(**{name: value for module in made.values() for name, value in vars(module).items()})
    adapter.uninstall()


def test_nothing_happens_while_off_and_all_is_put_back(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert asyncio.run(sdk.BaseTool(lambda n: n, "look").run_json({"n": 1}, None)) == 1
    assert asyncio.run(sdk.AssistantAgent("one").run(task="go")).messages[0].to_text() == "one says"
    adapter.uninstall()
    assert not any(hasattr(f, "__wrapped__") for f in (sdk.BaseTool.run_json, sdk.BaseChatAgent.run, sdk.AssistantAgent.on_messages_stream))


def test_a_tool_is_a_step_plain_streamed_or_a_hand_off(sdk: Any) -> None:
    def over() -> str:
        return "over to two"

    over.__module__ = "autogen_agentchat.base._handoff"

    async def agent() -> Any:
        plain = await sdk.BaseTool(lambda n: [n], "look").run_json({"n": 1}, None, call_id="c1")
        streamed = sdk.BaseStreamTool(lambda n: iter((n, 2)), "count").run_json_stream({"n": 1}, None, call_id="c2")
        return [plain, [each async for each in streamed], await sdk.BaseTool(over, "transfer").run_json({}, None)]

    tape = recorded(agent)
    assert [step[names.STEP_KIND] for step in tape.steps] == ["tool_call", "tool_call", "handoff"]
    assert [step.get(names.GEN_AI_TOOL_CALL_ID) for step in tape.steps] == ["c1", "c2", None]
    before = list(RAN)
    again = replayed(tape, agent)
    assert (again.equal, again.value) == (True, [[1], [1, 2], "over to two"])
    assert [*before, "transfer"] == RAN


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_as_a_tool_runs_again_and_what_it_said_is_compared(sdk: Any, stream: bool) -> None:
    said = ["fine", "fine"]

    async def agent() -> Any:
        if stream:
            events = sdk.TaskRunnerTool(lambda: iter([result(said.pop())]), "helper").run_json_stream({}, None, call_id="c1")
            return [each.messages[0].to_text() async for each in events]
        return (await sdk.TaskRunnerTool(lambda: result(said.pop()), "helper").run_json({}, None)).messages[0].to_text()

    tape = recorded(agent)
    assert tape.steps[0][names.GEN_AI_TOOL_CALL_RESULT] == '"fine"'
    assert (replayed(tape, agent).equal, RAN) == (True, ["helper", "helper"])


def test_a_team_is_a_run_and_its_agents_steps_of_it(sdk: Any) -> None:
    async def agent() -> Any:
        return [each.messages[0].to_text() async for each in sdk.BaseGroupChat().run_stream(task="go")]

    tape = recorded(agent)
    team, one, two = tape.steps
    assert [step[names.GEN_AI_AGENT_NAME] for step in (team, one, two)] == ["team", "one", "two"]
    assert json.loads(team[names.RUN_DEFINITION])["members"] == ["one", "two"]
    assert (json.loads(team[names.RUN_INPUT]), json.loads(team[names.RUN_OUTPUT])) == ("go", "two says")
    assert replayed(tape, agent).value == ["one says", "two says"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_by_itself_is_one_run(sdk: Any, stream: bool) -> None:
    async def agent() -> Any:
        one = sdk.AssistantAgent("one")
        return [each async for each in one.run_stream(task="go")] if stream else await one.run(task="go")

    (run,) = recorded(agent).steps
    definition = json.loads(run[names.RUN_DEFINITION])
    assert (definition["instructions"], definition["model"], json.loads(run[names.RUN_OUTPUT])) == (["Be short."], "m", "one says")


def test_another_autogen_is_said_to_be_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("autogen_core.tools._base")
    module.BaseTool = type("BaseTool", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert "wanted a function BaseTool.run_json" in adapter.status()
    finally:
        adapter.uninstall()
