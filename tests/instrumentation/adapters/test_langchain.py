"""The adapter of LangChain on modules of the same shape: what it observes, and what it leaves alone."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import langchain as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, recording, replayed

EVENTS: list[str] = []
RAN: list[Any] = []


class ToolMessage:
    __module__ = "langchain_core.messages.tool"

    def __init__(self, content: str, *, tool_call_id: str, name: str, status: str = "success", artifact: Any = None) -> None:
        self.content, self.tool_call_id, self.name, self.status, self.artifact = content, tool_call_id, name, status, artifact
        self.type = "tool"


class GraphInterrupt(Exception):
    __module__ = "langgraph.errors"


class BaseTool:
    description, args_schema, metadata = "Search.", None, {"readOnlyHint": True}
    tool_call_schema = {"type": "object", "properties": {"q": {}}}
    handle_tool_error = handle_validation_error = False
    response_format = "content"

    def __init__(self, name: str = "search") -> None:
        self.name = name

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: Any) -> Any:
        return (), {"q": tool_input["q"]}

    def _run(self, q: str) -> Any:
        RAN.append(q)
        if q == "ask":
            raise GraphInterrupt(())
        if q == "fail":
            raise ValueError("no")
        return f"found {q}"

    def run(self, tool_input: Any, verbose: bool | None = None, *, config: Any = None, tool_call_id: str | None = None) -> Any:
        EVENTS.append("start")
        args, kwargs = self._to_args_and_kwargs(tool_input, tool_call_id)
        given = self._run(*args, **kwargs)
        EVENTS.append("end")
        return (
            given if tool_call_id is None or not isinstance(given, str) else ToolMessage(given, tool_call_id=tool_call_id, name=self.name)
        )

    async def _arun(self, q: str) -> Any:
        return self._run(q)

    async def arun(self, tool_input: Any, *, config: Any = None, tool_call_id: str | None = None) -> Any:
        args, kwargs = self._to_args_and_kwargs(tool_input, tool_call_id)
        given = await self._arun(*args, **kwargs)
        return (
            given if tool_call_id is None or not isinstance(given, str) else ToolMessage(given, tool_call_id=tool_call_id, name=self.name)
        )


@pytest.fixture(autouse=True)
def installed(seams: Any) -> Any:
    EVENTS.clear()
    RAN.clear()
    seams.module("langchain_core.tools.base", BaseTool=BaseTool)
    seams.module("langchain_core.messages.tool", ToolMessage=ToolMessage)
    middleware = type("HumanInTheLoopMiddleware", (), {"_process_decision": staticmethod(lambda decision, tool_call, config: tool_call)})
    made = seams.module("langchain.agents.middleware.human_in_the_loop", interrupt=lambda value: value, HumanInTheLoopMiddleware=middleware)
    seams.install(adapter)
    return made


def ask(q: str = "x", state: Any = None) -> Any:
    return BaseTool().run({"q": q, "state": state}, config={"configurable": {"checkpoint_ns": "n"}}, tool_call_id="c1")


def test_a_call_is_a_step_with_what_the_model_said_and_was_told() -> None:
    assert ask().content == "found x"
    with recording() as tape:
        message = ask(state=object())
    (step,) = tape.steps
    assert message.tool_call_id == "c1"
    assert (step[names.GEN_AI_TOOL_CALL_ARGUMENTS], step[names.GEN_AI_TOOL_CALL_RESULT]) == ('{"q":"x"}', '"found x"')
    assert (step[names.GEN_AI_TOOL_CALL_ID], step[names.STEP_EFFECT], step[names.STEP_NAME]) == ("c1", "read", "search")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_replay_runs_no_body_and_all_that_is_around_it(asynchronous: bool) -> None:
    def run() -> tuple[str, str]:
        tool, asked = BaseTool(), {"q": "x"}
        given = asyncio.run(tool.arun(asked, tool_call_id="c1")) if asynchronous else tool.run(asked, tool_call_id="c1")
        return given.content, given.tool_call_id

    tape = recorded(run)
    result = replayed(tape, run)
    assert (result.equal, result.value, RAN) == (True, ("found x", "c1"), ["x"])
    assert EVENTS == [] if asynchronous else ["start", "end"] * 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_tool_that_runs_a_sub_agent_runs_in_a_replay_and_what_the_agent_calls_does_not(asynchronous: bool) -> None:
    class Task(BaseTool):
        def func(self) -> None: ...

        func.__module__ = "deepagents.middleware.subagents"

        def _run(self, q: str) -> Any:
            EVENTS.append(f"task {q}")
            return str(BaseTool().run({"q": q}, tool_call_id="c2").content)

    def run() -> str:
        tool, asked = Task("task"), {"q": "x"}
        given = asyncio.run(tool.arun(asked, tool_call_id="c1")) if asynchronous else tool.run(asked, tool_call_id="c1")
        return str(given.content)

    tape = recorded(run)
    before, EVENTS[:] = list(EVENTS), []
    result = replayed(tape, run)
    assert (result.equal, result.value, RAN, EVENTS) == (True, "found x", ["x"], before)


def test_how_a_call_ended() -> None:
    assert recorded(ask, "ask").outcomes == ["interrupted"]
    assert recorded(ask, "fail").outcomes == ["error"]
    with pytest.raises(ValueError, match="no"):
        ask("fail")


@pytest.mark.parametrize(("module", "name"), [("langgraph.prebuilt.tool_node", "ToolNode"), ("langchain.tools.tool_node", "_ToolNode")])
def test_a_call_of_a_tool_that_there_is_none_of_is_malformed(module: str, name: str, seams: Any) -> None:
    class ToolNode:
        __module__ = module

        def _validate_tool_call(self, call: Any) -> Any:
            return None if call["name"] == "search" else ToolMessage("No such tool.", tool_call_id=call["id"], name=call["name"])

    seams.module(module, **{name: ToolNode})
    if name == "ToolNode":  # imported there too
        seams.module("langchain.tools.tool_node", _ToolNode=ToolNode)
    seams.install(adapter)

    def look_up() -> list[bool]:
        calls = [{"name": name, "args": {"q": "x"}, "id": f"id-{name}"} for name in ("sell", "search")]
        return [ToolNode()._validate_tool_call(call) is None for call in calls]

    tape = recorded(look_up)
    (step,) = tape.steps
    assert (step[names.STEP_NAME], step[names.STEP_OUTCOME], step[names.GEN_AI_TOOL_CALL_ID]) == ("sell", "malformed", "id-sell")
    assert (step[names.GEN_AI_TOOL_CALL_ARGUMENTS], step[names.GEN_AI_TOOL_CALL_RESULT]) == ('{"q":"x"}', '"No such tool."')
    assert replayed(tape, look_up).equal


def test_decisions_are_kept_with_the_call_that_they_are_about(installed: Any) -> None:
    asked = {"name": "pay", "args": {"euro": 1}, "id": "c1"}
    with recording() as tape:
        installed.HumanInTheLoopMiddleware._process_decision({"type": "reject", "message": "too much"}, asked, {})
        installed.HumanInTheLoopMiddleware()._process_decision({"type": "approve"}, asked, {})
        installed.interrupt(SimpleNamespace())
        installed.HumanInTheLoopMiddleware._process_decision("odd", asked, {})
    assert [step[names.GEN_AI_TOOL_CALL_DECISION_OUTCOME] for step in tape.steps] == ["deny", "allow"]
    assert [step[names.GEN_AI_TOOL_CALL_ID] for step in tape.steps] == ["c1", "c1"]


def test_afterwards_all_is_as_it_was(installed: Any) -> None:
    adapter.uninstall()
    assert isinstance(vars(installed.HumanInTheLoopMiddleware)["_process_decision"], staticmethod)
    with recording() as tape:
        ask()
    assert tape.steps == []


def test_another_shape_is_said_and_left_alone(seams: Any) -> None:
    adapter.uninstall()
    seams.module("langchain_core.tools.base", BaseTool=type("BaseTool", (), {"run": lambda self, what: what, "arun": None}))
    seams.install(adapter)
    assert adapter.status().startswith("unsupported: wanted BaseTool.run(self, tool_input, tool_call_id)")
