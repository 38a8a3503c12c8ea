"""Google ADK's seams, on modules of the same shape."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from spanreplay.instrumentation.adapters import google_adk as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

RAN: list[str] = []


class Actions(BaseModel):
    """``EventActions``, as far as the adapter looks at it."""

    state_delta: dict[str, Any] = Field(default_factory=dict)
    requested_tool_confirmations: dict[str, Any] = Field(default_factory=dict)
    requested_auth_configs: dict[str, Any] = Field(default_factory=dict)
    escalate: bool | None = None


class Context:
    """``ToolContext``: what is set in its state is in its actions too."""

    def __init__(self, call_id: str, confirmed: bool | None = None) -> None:
        self.function_call_id = call_id
        self.tool_confirmation = None if confirmed is None else SimpleNamespace(confirmed=confirmed)
        self.actions = Actions()
        self.state = self.actions.state_delta


class Tool:
    description, is_long_running = "Does it.", False

    def __init__(self, name: str) -> None:
        self.name = name

    def _get_declaration(self) -> Any:
        return SimpleNamespace(model_dump=lambda **_: {"name": self.name, "parameters": {"type": "object"}})

    async def run_async(self, *, args: Any, tool_context: Any) -> Any:
        RAN.append(self.name)
        if self.name == "remember":
            tool_context.state["word"] = args["word"]
            tool_context.actions.escalate = True
        if self.name == "ask":
            tool_context.actions.requested_tool_confirmations[tool_context.function_call_id] = {"hint": "may I?"}
            return {"error": "This tool call requires confirmation, please approve or reject."}
        return {"result": self.name}


class TransferToAgentTool(Tool):
    pass


def content(text: str) -> Any:
    return SimpleNamespace(parts=[SimpleNamespace(text=text, thought=None)])


def event(text: str) -> Any:
    return SimpleNamespace(actions=Actions(), long_running_tool_ids=None, content=content(text), is_final_response=lambda: True)


def modules() -> dict[str, ModuleType]:
    made = {
        name: ModuleType(name)
        for name in ("google.adk.flows.llm_flows.tools._caller", "google.adk.agents.base_agent", "google.adk.runners")
    }
    caller, agents, runners = made.values()

    async def _call_tool_async(tool: Any, args: Any, tool_context: Any) -> Any:
        return await tool.run_async(args=args, tool_context=tool_context)

    async def apply_confirmation_gate(tool: Any, function_args: Any, tool_context: Any) -> Any:
        said = tool_context.tool_confirmation
        return None if said is not None and said.confirmed else {"error": "not yet"}

    class BaseAgent:
        description, sub_agents, instruction, model = "An agent.", (), "Be short.", "m"

        def __init__(self, name: str) -> None:
            self.name = name

        async def run_async(self, parent_context: Any) -> AsyncIterator[Any]:
            yield event(f"{self.name} done")

    class Runner:
        app_name = "app"

        def __init__(self) -> None:
            self.agent = BaseAgent("front")

        async def run_async(self, *, user_id: str, session_id: str, new_message: Any = None) -> AsyncIterator[Any]:
            context = SimpleNamespace(user_content=new_message, session=SimpleNamespace(id=session_id, user_id=user_id))
            for agent in (self.agent, BaseAgent("back")):
                async for each in agent.run_async(context):
                    yield each

    vars(caller).update(_call_tool_async=_call_tool_async, apply_confirmation_gate=apply_confirmation_gate)
    vars(agents).update(BaseAgent=BaseAgent)
    vars(runners).update(Runner=Runner)
    return made


@pytest.fixture(name="adk")
def _adk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield SimpleNamespace(caller=made["google.adk.flows.llm_flows.tools._caller"], runner=made["google.adk.runners"].Runner)
    adapter.uninstall()


def test_nothing_happens_while_off_and_all_is_put_back(adk: Any) -> None:
    assert adapter.status() == "active"
    assert asyncio.run(adk.caller._call_tool_async(Tool("look"), {}, Context("c1"))) == {"result": "look"}
    adapter.uninstall()
    assert not hasattr(adk.caller._call_tool_async, "__wrapped__")
    assert not hasattr(adk.runner.run_async, "__wrapped__")


def test_what_a_tool_does_to_the_session_is_done_again_and_its_body_not(adk: Any) -> None:
    ids = iter(["adk-1", "adk-2", "adk-3", "adk-4"])

    async def agent() -> Any:
        keeper, asker = Context("c1"), Context(next(ids))
        call = adk.caller._call_tool_async
        given = await call(Tool("remember"), {"word": "blue"}, keeper), await call(Tool("ask"), {}, asker)
        await call(TransferToAgentTool("transfer_to_agent"), {"agent_name": "back"}, Context(next(ids)))
        asked = list(asker.actions.requested_tool_confirmations)
        return [*given, keeper.state["word"], keeper.actions.escalate, asked == [asker.function_call_id]]

    tape = recorded(agent)
    assert tape.outcomes == ["ok", "interrupted", "ok"]
    assert [step.get(names.GEN_AI_TOOL_CALL_ID) for step in tape.steps] == ["c1", None, None]
    assert [step[names.STEP_KIND] for step in tape.steps] == ["tool_call", "tool_call", "handoff"]
    before = list(RAN)
    again = replayed(tape, agent)
    error = {"error": "This tool call requires confirmation, please approve or reject."}
    assert (again.equal, again.value) == (True, [{"result": "remember"}, error, "blue", True, True])
    assert [*before, "transfer_to_agent"] == RAN


@pytest.mark.parametrize(("confirmed", "outcomes"), [(None, ["interrupted"]), (True, ["ok"]), (False, ["ok", "rejected"])])
def test_what_a_person_says_of_a_call_is_kept(adk: Any, confirmed: bool | None, outcomes: list[str]) -> None:
    async def agent() -> Any:
        return await adk.caller.apply_confirmation_gate(Tool("delete"), {"path": "a"}, Context("c1", confirmed))

    tape = recorded(agent)
    assert tape.outcomes == outcomes
    if confirmed is not None:
        assert json.loads(tape.steps[0][names.DECISION])["outcome"] == ("allow" if confirmed else "deny")
    assert replayed(tape, agent).equal


def test_a_runner_is_a_run_and_the_agent_it_goes_over_to_a_step_of_it(adk: Any) -> None:
    async def agent() -> Any:
        events = adk.runner().run_async(user_id="ann", session_id="s1", new_message=content("hello"))
        return [each.content.parts[0].text async for each in events]

    tape = recorded(agent)
    front, back = tape.steps
    assert (front[names.RUN_NAME], back[names.GEN_AI_AGENT_NAME]) == ("front", "back")
    assert (front[names.USER_ID], front[names.GEN_AI_CONVERSATION_ID]) == ("ann", "s1")
    assert json.loads(front[names.RUN_OUTPUT]) == "back done"
    assert json.loads(front[names.RUN_DEFINITION])["instructions"] == ["Be short."]
    assert replayed(tape, agent).value == ["front done", "back done"]


def test_another_adk_is_said_to_be_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "google.adk.agents.base_agent", SimpleNamespace(__name__="google.adk.agents.base_agent", BaseAgent=int)
    )
    adapter.uninstall()
    adapter.install()
    try:
        assert "wanted a function int.run_async" in adapter.status()
    finally:
        adapter.uninstall()


def declaring(module: str) -> Any:
    """A tool whose declaration is made by code of this module, and tells how often it was asked for."""

    def _get_declaration(self: Any) -> Any:
        self.asked += 1
        return SimpleNamespace(model_dump=lambda **_: {"parameters": {"type": "object", "title": self.description}})

    _get_declaration.__module__ = module
    return type("FunctionTool", (Tool,), {"_get_declaration": _get_declaration, "asked": 0, "func": None})("look")


@pytest.mark.parametrize(("module", "times"), [("google.adk.tools.function_tool", 2), ("program", 4)])
def test_adks_own_tools_are_declared_once_until_they_are_something_else(adk: Any, module: str, times: int) -> None:
    tool = declaring(module)

    async def agent() -> None:
        for description in ("Looks.", "Looks.", "Sees.", "Sees."):
            tool.description = description
            await adk.caller._call_tool_async(tool, {}, Context("c1"))

    digests = [step[names.TOOL_SCHEMA_DIGEST] for step in recorded(agent).steps]
    assert (digests[0], digests[2], digests[0] == digests[2]) == (digests[1], digests[3], False)
    assert tool.asked == times
