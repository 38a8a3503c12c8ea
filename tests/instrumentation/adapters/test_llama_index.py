"""The adapter of LlamaIndex on modules of the same shape: what it observes, and what it leaves alone."""

import asyncio
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import llama_index as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, recording, replayed

BASE, TEAM = "llama_index.core.agent.workflow.base_agent", "llama_index.core.agent.workflow.multi_agent_workflow"


class ToolOutput:
    def __init__(self, content: str, tool_name: str, raw_input: Any, raw_output: Any, is_error: bool = False) -> None:
        self.content, self.tool_name, self.raw_input, self.raw_output, self.is_error = content, tool_name, raw_input, raw_output, is_error
        self.blocks = [content]


class FunctionTool:
    requires_context = False
    ctx_param_name = None
    metadata = SimpleNamespace(get_name=lambda: "search", description="Search.", get_parameters_dict=lambda: {"type": "object"})

    def __init__(self) -> None:
        self.ran = 0

    def found(self, args: Any, kwargs: Any) -> ToolOutput:
        self.ran += 1
        return ToolOutput("found", "search", {"args": args, "kwargs": kwargs}, "found")

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        return self.found(args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        return self.found(args, kwargs)


class Agent:
    async def _call_tool(self, ctx: Any, tool: Any, tool_input: Any) -> Any:
        return await tool.acall(**tool_input)

    async def call_tool(self, ctx: Any, ev: Any) -> Any:
        return await self._call_tool(ctx, ev.tool, ev.tool_kwargs)


class Workflow:
    def run(self, ctx: Any = None, start_event: Any = None, **kwargs: Any) -> Any:
        async def steps() -> Any:
            output = await Agent().call_tool(None, SimpleNamespace(tool=kwargs["tool"], tool_kwargs={"q": "x"}, tool_id="c1"))
            return SimpleNamespace(response=SimpleNamespace(content=output.content))

        return asyncio.ensure_future(steps())


@pytest.fixture
def tool(seams: Any) -> FunctionTool:
    seams.module(BASE, BaseWorkflowAgent=Agent)
    seams.module(TEAM, AgentWorkflow=type("AgentWorkflow", (Agent,), {}))
    seams.module("llama_index.core.tools.function_tool", FunctionTool=FunctionTool)
    seams.module("llama_index.core.tools.types", ToolOutput=ToolOutput)
    seams.module("workflows.workflow", Workflow=Workflow)
    seams.install(adapter)
    return FunctionTool()


def agent(tool: FunctionTool) -> str:
    async def run() -> str:
        made = await Workflow().run(tool=tool)
        return str(made.response.content)

    return asyncio.run(run())


def test_a_workflow_is_an_agent_and_its_tools_are_steps(tool: FunctionTool) -> None:
    assert agent(tool) == "found", "off, it is as it was"
    with recording() as tape:
        assert agent(tool) == "found"
    run, call = tape.steps
    assert (run[names.STEP_NAME], run[names.RUN_OUTPUT]) == ("Workflow", '"found"')
    assert (call[names.STEP_NAME], call[names.GEN_AI_TOOL_CALL_ID], call[names.GEN_AI_TOOL_CALL_RESULT]) == ("search", "c1", '"found"')


def test_a_replay_gives_the_output_again_and_runs_nothing(tool: FunctionTool) -> None:
    tape = recorded(agent, tool)
    result = replayed(tape, agent, tool)
    assert (result.equal, result.value, tool.ran) == (True, "found", 1)


def test_a_bare_tool_is_a_step(tool: FunctionTool) -> None:
    with recording() as tape:
        assert tool.call(q="x").raw_output == "found"
        assert asyncio.run(tool.acall(q="x")).raw_output == "found"
    assert [step[names.GEN_AI_TOOL_CALL_ARGUMENTS] for step in tape.steps[:1]] == ['{"q":"x"}']


def test_a_run_whose_task_is_cancelled_ends_though_nobody_settles_its_handler(seams: Any) -> None:
    class Older:
        def run(self, ctx: Any = None, start_event: Any = None, **kwargs: Any) -> Any:
            handler: Any = asyncio.get_running_loop().create_future()
            handler._run_task = asyncio.ensure_future(asyncio.Event().wait())
            return handler

    seams.module("workflows.workflow", Workflow=Older)
    seams.install(adapter)

    async def left() -> None:
        Older().run()
        await asyncio.sleep(0)

    with recording() as tape:
        asyncio.run(left())
    [run] = tape.steps
    assert (run[names.STEP_OUTCOME], tape.twice) == ("cancelled", [])


def test_another_shape_is_said_and_left_alone(seams: Any) -> None:
    other = type("Workflow", (), {"run": lambda self, event: event})
    module: ModuleType = seams.module("workflows.workflow", Workflow=other)
    seams.install(adapter)
    assert "workflows.workflow" not in adapter.status()
    assert adapter.status().startswith("unsupported: wanted Workflow.run")
    assert module.Workflow().run(1) == 1
