"""Strands' seams, on modules of the same shape."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import strands as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

RAN: list[str] = []


class ToolResultEvent(dict[str, Any]):
    def __init__(self, tool_result: Any, exception: Exception | None = None) -> None:
        super().__init__(type="tool_result")
        self.tool_result, self.exception = tool_result, exception


class ToolStreamEvent(dict[str, Any]):
    def __init__(self, tool_use: Any, data: Any) -> None:
        super().__init__(tool_stream_event={"tool_use": tool_use, "data": data})


class ToolInterruptEvent(dict[str, Any]):
    def __init__(self, tool_use: Any, interrupts: list[Any]) -> None:
        super().__init__(interrupts=interrupts)
        self.interrupts = interrupts


class ToolCancelEvent(dict[str, Any]):
    pass


class State(dict[str, Any]):
    def get(self, key: Any = None, default: Any = None) -> Any:
        return dict(self) if key is None else super().get(key, default)

    def set(self, key: str, value: Any) -> None:
        self[key] = value


class Tool:
    """``AgentTool``, as far as the adapter looks at it."""

    def __init__(self, name: str) -> None:
        self.tool_name = name
        self.tool_spec = {"name": name, "description": f"To {name}.", "inputSchema": {"json": {"type": "object"}}}

    async def stream(self, tool_use: Any, invocation_state: Any, **options: Any) -> AsyncIterator[Any]:
        RAN.append(self.tool_name)
        result = {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": "done"}]}
        if self.tool_name == "remember":
            invocation_state["agent"].state.set("word", "blue")
        if self.tool_name in ("note", "break"):
            invocation_state["agent"].state.set("word", "red")
            invocation_state["notes"].append(self.tool_name)
            invocation_state["event_loop_cycle_id"] = self.tool_name
        if self.tool_name == "break":
            raise ValueError("broken")
        if self.tool_name == "count":
            yield ToolStreamEvent(tool_use, 1)
            yield ToolStreamEvent(tool_use, 2)
        if self.tool_name == "ask":
            yield ToolInterruptEvent(tool_use, ["who?"])
            return
        if self.tool_name == "fail":
            yield ToolResultEvent({**result, "status": "error"}, exception=ValueError("no"))
            return
        yield ToolResultEvent(result)


def modules() -> dict[str, ModuleType]:
    found = {name: ModuleType(name) for name in ("strands.tools.executors._executor", "strands.agent.agent", "strands.types._events")}
    executor, agents, events = found.values()

    def _make_execute_tool_terminal(extra_kwargs: Any, preset_result: Any = None) -> Any:
        async def terminal(ctx: Any) -> AsyncIterator[Any]:
            async for event in ctx.tool.stream(ctx.tool_use, ctx.invocation_state, **extra_kwargs):
                yield event
                if isinstance(event, ToolResultEvent):
                    return

        return terminal

    class ToolExecutor:
        @staticmethod
        async def _stream(agent: Any, tool_use: Any, results: Any, state: Any) -> AsyncIterator[Any]:
            if tool_use["name"] == "delete":
                yield ToolCancelEvent()
                return
            tool = agent.tool_registry.registry.get(tool_use["name"])
            context = SimpleNamespace(tool=tool, tool_use=tool_use, invocation_state=state)
            async for event in executor._make_execute_tool_terminal({})(context):
                yield event

    class Agent:
        name, system_prompt, tool_names = "clerk", "Be short.", ["count"]
        model = SimpleNamespace(get_config=lambda: {"model_id": "m", "params": {"temperature": 0}})

        def __init__(self, *calls: tuple[str, str]) -> None:
            self.calls = calls
            self.state = State()
            wanted = {name: Tool(name) for name in ("count", "fail", "ask", "remember", "note", "break", "delete")}
            self.tool_registry = SimpleNamespace(registry=wanted, dynamic_tools={})

        async def stream_async(self, prompt: Any = None, **options: Any) -> AsyncIterator[Any]:
            for name, call_id in self.calls:
                use = {"name": name, "toolUseId": call_id, "input": {"n": 2}}
                async for event in executor.ToolExecutor._stream(self, use, [], {"agent": self}):
                    yield event
            yield {"result": SimpleNamespace(interrupts=None, structured_output={"said": prompt})}

    executor.ToolExecutor = ToolExecutor  # type: ignore[attr-defined]
    executor._make_execute_tool_terminal = _make_execute_tool_terminal  # type: ignore[attr-defined]
    agents.Agent = Agent  # type: ignore[attr-defined]
    vars(events).update({kind.__name__: kind for kind in (ToolResultEvent, ToolStreamEvent, ToolInterruptEvent, ToolCancelEvent)})
    return found


@pytest.fixture(name="agent")
def _agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield made["strands.agent.agent"].Agent
    adapter.uninstall()


def said(agent: Any, *calls: tuple[str, str]) -> Any:
    async def run() -> Any:
        made = agent(*calls)
        seen: list[Any] = []
        async for event in made.stream_async("hello"):
            if isinstance(event, ToolResultEvent):
                seen.append([event.tool_result["status"], str(event.exception)])
            elif isinstance(event, ToolStreamEvent):
                seen.append(event["tool_stream_event"]["data"])
            elif isinstance(event, ToolInterruptEvent):
                seen.append(event.interrupts)
        return [seen, dict(made.state)]

    return run


def test_nothing_happens_while_off_and_all_is_put_back(agent: Any) -> None:
    assert adapter.status() == "active"
    assert asyncio.run(said(agent, ("count", "c1"))()) == [[1, 2, ["success", "None"]], {}]
    adapter.uninstall()
    assert not hasattr(agent.stream_async, "__wrapped__")


def test_what_a_tool_streams_gives_and_changes_comes_back(agent: Any) -> None:
    run = said(agent, ("count", "c1"), ("fail", "c2"), ("ask", "c3"), ("remember", "c4"), ("delete", "c5"))
    tape = recorded(run)
    assert tape.outcomes == ["ok", "ok", "tool_error", "interrupted", "ok", "rejected"]
    top, count, *_ = tape.steps
    definition = json.loads(top[names.RUN_DEFINITION])
    assert (definition["instructions"], definition["model"]) == ("Be short.", "m")
    assert (count[names.GEN_AI_TOOL_CALL_ID], count[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == ("c1", '{"n":2}')
    before = list(RAN)
    again = replayed(tape, run)
    assert again.equal
    assert again.value == [[1, 2, ["success", "None"], ["error", "no"], ["who?"], ["success", "None"]], {"word": "blue"}]
    assert before == RAN


@pytest.mark.parametrize("name", ["note", "break"])
def test_what_a_tool_changes_in_what_the_program_gave_the_run_is_changed_again_also_where_it_raises(agent: Any, name: str) -> None:
    async def run() -> Any:
        made, notes = agent(), list[str]()
        executor: Any = sys.modules["strands.tools.executors._executor"]
        state = {"agent": made, "notes": notes, "event_loop_cycle_id": "1"}
        try:
            async for _ in executor.ToolExecutor._stream(made, {"name": name, "toolUseId": "c1", "input": {}}, [], state):
                pass
        except ValueError as error:
            notes.append(str(error))
        return notes, dict(made.state)

    tape = recorded(run)
    wanted = (["note"] if name == "note" else ["break", "broken"], {"word": "red"})
    assert "cycle" not in json.dumps(tape.steps, default=str)
    again = replayed(tape, run)
    assert (again.equal, again.value, RAN) == (True, wanted, [name])


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ("sunny", [{"text": "sunny"}]),
        ([{"text": "sunny"}], [{"text": "sunny"}]),
        ({"degrees": 21}, [{"text": '{"degrees": 21}'}]),
        ({"status": "success", "content": [{"text": "sunny"}]}, [{"text": "sunny"}]),
    ],
)
def test_what_others_recorded_of_a_result_becomes_one(agent: Any, given: Any, content: Any) -> None:
    (event,) = adapter._events_of(given, {"toolUseId": "c1"})
    assert event.tool_result == {"toolUseId": "c1", "status": "success", "content": content}


def test_what_others_recorded_that_a_function_raised_becomes_the_result_that_the_framework_makes_of_it() -> None:
    texts = [adapter._failure({"toolUseId": "c1"}, error)["content"][0]["text"] for error in (ValueError("no"), KeyError("k"))]
    assert texts == ["Error: no", "Error: KeyError - 'k'"]


def test_another_strands_is_said_to_be_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "strands.tools.executors._executor", ModuleType("strands.tools.executors._executor"))
    adapter.uninstall()
    adapter.install()
    try:
        assert "wanted a function strands.tools.executors._executor._make_execute_tool_terminal" in adapter.status()
    finally:
        adapter.uninstall()
