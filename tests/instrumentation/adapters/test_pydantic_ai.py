"""Pydantic AI's seams, on modules of the same shape."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import pydantic_ai as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

RAN: list[str] = []


class ModelRetry(Exception):
    __module__ = "pydantic_ai.exceptions"


class CallDeferred(Exception):
    __module__ = "pydantic_ai.exceptions"


class ApprovalRequired(Exception):
    __module__ = "pydantic_ai.exceptions"


def asked(name: str, call_id: str, **arguments: Any) -> Any:
    return SimpleNamespace(
        tool_name=name, tool_call_id=call_id, args=json.dumps(arguments), args_as_dict=lambda: arguments, part_kind="tool-call"
    )


def tool(name: str, kind: str = "function") -> Any:
    return SimpleNamespace(
        tool_def=SimpleNamespace(name=name, description=f"To {name}.", parameters_json_schema={"type": "object"}, kind=kind),
        source_tool=SimpleNamespace(call_func=len),
    )


class Toolset:
    async def call_tool(self, name: str, args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        RAN.append(name)
        if name == "retry":
            raise ModelRetry("again")
        if name == "later":
            raise CallDeferred
        if name == "ask":
            raise ApprovalRequired
        return {"name": name, **args}


def modules() -> tuple[ModuleType, ModuleType]:
    tools, agents = ModuleType("pydantic_ai.tool_manager"), ModuleType("pydantic_ai.agent")

    class ToolManager:
        def __init__(self) -> None:
            self.toolset, self.failed_tools = Toolset(), set[str]()
            self.tools = {name: tool(name) for name in ("look", "retry", "later", "ask")}

        async def _raw_execute(self, validated: Any, *, usage: Any) -> Any:
            try:
                result = await self.toolset.call_tool(validated.call.tool_name, validated.args, validated.ctx, validated.tool)
            except ModelRetry:
                self.failed_tools.add(validated.call.tool_name)
                raise
            usage.append(validated.call.tool_name)
            return result

        async def execute_tool_call(self, validated: Any) -> Any:
            if not validated.args_valid:
                raise ModelRetry("not so")
            return await self._raw_execute(validated, usage=[])

    class Agent:
        name, model_settings, output_type = "clerk", {"temperature": 0}, str
        model = SimpleNamespace(model_name="m")
        _instructions, _system_prompts = ["Be short."], ()

        @asynccontextmanager
        async def iter(self, user_prompt: Any = None, **options: Any) -> AsyncIterator[Any]:
            yield SimpleNamespace(result=SimpleNamespace(output=options.get("gives", f"{user_prompt}!")))

    tools.ToolManager = ToolManager  # type: ignore[attr-defined]
    agents.Agent = Agent  # type: ignore[attr-defined]
    return tools, agents


@pytest.fixture
def pydantic_ai(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    made = modules()
    errors = ModuleType("pydantic_ai.exceptions")
    vars(errors).update({kind.__name__: kind for kind in (ModelRetry, CallDeferred, ApprovalRequired)})
    for module in (*made, errors):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield made
    adapter.uninstall()


def execute(tools: Any, name: str, call_id: str, manager: Any = None, usage: Any = None, **arguments: Any) -> Any:
    validated = SimpleNamespace(
        call=asked(name, call_id, **arguments), args=arguments, tool=tool(name), ctx=SimpleNamespace(tool_call_id=call_id), args_valid=True
    )
    return (manager or tools.ToolManager())._raw_execute(validated, usage=[] if usage is None else usage)


def test_nothing_happens_while_off_and_all_is_put_back(pydantic_ai: tuple[Any, Any]) -> None:
    tools, agents = pydantic_ai
    assert adapter.status() == "active"
    assert asyncio.run(execute(tools, "look", "c1", city="Paris")) == {"name": "look", "city": "Paris"}
    adapter.uninstall()
    assert "functools" not in repr(agents.Agent.iter)
    assert tools.ToolManager._raw_execute.__qualname__.endswith("ToolManager._raw_execute")


def test_a_tool_is_a_step_and_a_replay_counts_as_the_agent_did(pydantic_ai: tuple[Any, Any]) -> None:
    tools, agents = pydantic_ai

    async def agent() -> Any:
        usage: list[str] = []
        manager = tools.ToolManager()
        async with agents.Agent().iter("hello") as run:
            given = await execute(tools, "look", "c1", manager, usage, city="Paris")
            for name in ("retry", "later", "ask"):
                with pytest.raises((ModelRetry, CallDeferred, ApprovalRequired)):
                    await execute(tools, name, f"c-{name}", manager, usage)
        return [given, sorted(manager.failed_tools), usage, run.result.output]

    tape = recorded(agent)
    assert tape.outcomes == ["ok", "ok", "tool_error", "deferred", "interrupted"]
    run, look, *_ = tape.steps
    assert json.loads(run[names.RUN_DEFINITION]) == {
        "instructions": ["Be short."],
        "model": "m",
        "model_settings": {"temperature": 0},
        "output_type": "str",
    }
    assert (look[names.GEN_AI_TOOL_CALL_ID], look[names.GEN_AI_TOOL_DESCRIPTION]) == ("c1", "To look.")
    before = list(RAN)
    again = replayed(tape, agent)
    assert (again.equal, again.value, RAN) == (True, [{"name": "look", "city": "Paris"}, ["retry"], ["look"], "hello!"], before)


def test_a_call_that_does_not_fit_the_tool_is_kept_as_malformed(pydantic_ai: tuple[Any, Any]) -> None:
    tools, _ = pydantic_ai

    async def agent() -> None:
        validated = SimpleNamespace(call=asked("look", "c1", city=7), args_valid=False)
        with pytest.raises(ModelRetry):
            await tools.ToolManager().execute_tool_call(validated)

    tape = recorded(agent)
    assert tape.outcomes == ["malformed"]
    assert replayed(tape, agent).equal


def test_calls_left_open_and_what_is_said_of_them_are_kept(pydantic_ai: tuple[Any, Any]) -> None:
    _, agents = pydantic_ai
    kind = type("DeferredToolRequests", (), {})
    requests = kind()
    requests.approvals, requests.calls = [asked("delete", "c1", path="a")], [asked("elsewhere", "c2")]
    said = SimpleNamespace(approvals={"c1": False})
    history = [SimpleNamespace(parts=[asked("delete", "c1", path="a")])]

    async def agent() -> None:
        async with agents.Agent().iter("go", gives=requests):
            pass
        async with agents.Agent().iter(None, message_history=history, deferred_tool_results=said):
            pass

    first, wanted, left, _, decided = recorded(agent).steps
    assert first[names.STEP_OUTCOME] == "interrupted"
    assert json.loads(wanted[names.DECISION])["outcome"] == "require_approval"
    assert (left[names.GEN_AI_TOOL_NAME], left[names.STEP_OUTCOME]) == ("elsewhere", "deferred")
    told = json.loads(decided[names.DECISION])
    assert (told["tool"], told["outcome"], told["call_id"]) == ("delete", "deny", "c1")


@pytest.mark.parametrize(("given", "valid", "kept"), [({"n": "5"}, {"n": 5, "m": 1}, {"n": "5"}), ({"n": 5}, {"n": 9}, {"n": 9})])
def test_arguments_are_the_models_unless_a_hook_has_changed_them(given: Any, valid: Any, kept: Any) -> None:
    assert adapter._arguments(asked("look", "c1", **given), valid) == kept


def test_another_pydantic_ai_is_said_to_be_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("pydantic_ai.tool_manager")
    module.ToolManager = type("ToolManager", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.install()
    try:
        assert adapter.status().startswith("unsupported: wanted a function ToolManager._call_tool")
    finally:
        adapter.uninstall()


def test_a_handler_of_calls_that_wait_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("pydantic_ai.capabilities.deferred_tool_handler")

    class HandleDeferredToolCalls:
        async def handle_deferred_tool_calls(self, ctx: Any, *, requests: Any) -> Any:
            RAN.append("handler")
            return SimpleNamespace(approvals={"c1": True, "c2": False}, calls={"c3": 1})

    HandleDeferredToolCalls.__module__ = module.__name__
    vars(module)["HandleDeferredToolCalls"] = HandleDeferredToolCalls
    monkeypatch.setitem(sys.modules, module.__name__, module)
    requests = SimpleNamespace(approvals=[asked("pay", "c1"), asked("pay", "c2")], calls=[asked("job", "c3")])
    RAN.clear()
    adapter.uninstall()
    adapter.install()

    async def agent() -> Any:
        results = await HandleDeferredToolCalls().handle_deferred_tool_calls(None, requests=requests)
        return None if results is None else "answered"

    try:
        tape = recorded(agent)
        steps = [(step[names.STEP_KIND], step[names.STEP_NAME]) for step in tape.steps]
        assert (
            steps == [("decision", "pay")] * 2 + [("tool_call", "job"), ("human", "handle_deferred_tool_calls")] + [("decision", "pay")] * 2
        )
        said = [step.get(names.GEN_AI_TOOL_CALL_DECISION_OUTCOME) for step in tape.steps]
        assert said == ["require_approval", "require_approval", None, None, "allow", "deny"]
        replayed(tape, agent)
        assert RAN == ["handler"]
    finally:
        adapter.uninstall()
