"""The adapter of CrewAI on modules of the same shape: what it observes, and what it leaves alone."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.boundary import reports
from spanreplay.instrumentation import agent_run
from spanreplay.instrumentation.adapters import crewai as adapter
from spanreplay.instrumentation.shims import untaped
from spanreplay.semconv import attributes as names
from support.taped import recorded, recording, replayed


class BaseTool:
    name, description, args_schema = "search", "Search.", None

    def __init__(self) -> None:
        self.ran = self.claimed = 0

    def _claim_usage(self) -> None:
        self.claimed += 1

    def run(self, *args: Any, **kwargs: Any) -> str:
        self._claim_usage()
        self.ran += 1
        return f"found {kwargs['q']}"

    async def arun(self, *args: Any, **kwargs: Any) -> str:
        return "found later"


class Tool(BaseTool):
    def run(self, *args: Any, **kwargs: Any) -> str:
        self._claim_usage()
        self.ran += 1
        return f"found {kwargs['q']}"


class AgentExecutor:
    def _execute_single_native_tool_call(self, tool_call: Any) -> str:
        return str(tool_call["tool"].run(q="x"))


class Agent:
    role, goal, backstory, tools = "finder", "find", "Old.", ()
    llm = SimpleNamespace(model="gpt", temperature=None, top_p=object())

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool

    def kickoff(self, messages: Any) -> Any:
        asked = {"id": "c1", "tool": self.tool}
        return SimpleNamespace(raw=AgentExecutor()._execute_single_native_tool_call(asked), pydantic=None)

    async def kickoff_async(self, messages: Any) -> Any:
        return SimpleNamespace(raw=await self.tool.arun(q="x"))

    def execute_task(self, task: Any, context: Any = None) -> str:
        return str(self.tool.run(q=task.description))

    async def aexecute_task(self, task: Any, context: Any = None) -> str:
        return "later"


class Crew:
    name, stream, process = "crew", False, SimpleNamespace(value="sequential")

    def __init__(self, tool: BaseTool) -> None:
        self.agents = [Agent(tool)]
        self.tasks = [SimpleNamespace(description="y", expected_output="z")]

    def kickoff(self, inputs: Any = None) -> Any:
        return SimpleNamespace(raw=self.agents[0].execute_task(self.tasks[0]), pydantic=None, json_dict=None)

    async def akickoff(self, inputs: Any = None) -> Any:
        return self.kickoff(inputs)


class BaseLLM:
    def _handle_tool_execution(self, function_name: str, function_args: Any, available_functions: Any, from_task: Any = None) -> str:
        return str(available_functions[function_name](**function_args))


@pytest.fixture
def tool(seams: Any) -> BaseTool:
    seams.module("crewai.tools.base_tool", BaseTool=BaseTool, Tool=Tool)
    seams.module("crewai.llms.base_llm", BaseLLM=BaseLLM)
    seams.module("crewai.agents.agent_executor", AgentExecutor=AgentExecutor)
    seams.module("crewai.agent.core", Agent=Agent)
    seams.module("crewai.crew", Crew=Crew)
    seams.install(adapter)
    return Tool()


def test_an_agent_is_a_run_and_its_tools_are_steps_with_the_ids_of_the_calls(tool: BaseTool) -> None:
    with recording() as tape:
        assert Agent(tool).kickoff("Find it.").raw == "found x"
        assert asyncio.run(Agent(tool).kickoff_async("Find it.")).raw == "found later"
    run, call, *_ = tape.steps
    assert (run[names.STEP_NAME], run[names.RUN_INPUT], run[names.RUN_OUTPUT]) == ("finder", '"Find it."', '"found x"')
    assert '"model":{"model":"gpt"}' in run[names.RUN_DEFINITION]
    assert (call[names.STEP_NAME], call[names.GEN_AI_TOOL_CALL_ID], call[names.GEN_AI_TOOL_CALL_RESULT]) == ("search", "c1", '"found x"')
    assert tape.steps[3][names.GEN_AI_TOOL_CALL_RESULT] == '"found later"'
    assert names.GEN_AI_TOOL_CALL_ID not in tape.steps[3]


def test_a_crew_is_a_run_of_its_agents(tool: BaseTool) -> None:
    with recording() as tape:
        assert Crew(tool).kickoff({"year": 2026}).raw == "found y"
    assert tape.paths == ["agent:crew#0", "agent:finder#0", "agent:finder#0/tool_call:search#0"]
    assert tape.steps[0][names.RUN_OUTPUT] == '"found y"'


def test_a_replay_runs_no_tool_and_counts_its_call(tool: BaseTool) -> None:
    tape = recorded(Agent(tool).kickoff, "Find it.")
    assert (tool.ran, tool.claimed) == (1, 1)
    result = replayed(tape, Agent(tool).kickoff, "Find it.")
    assert (result.equal, result.value.raw, tool.ran, tool.claimed) == (True, "found x", 1, 2)


def test_a_function_that_a_model_runs_is_a_step_and_does_not_run_in_a_replay(tool: BaseTool) -> None:
    ran = []

    def rate(pair: str) -> str:
        ran.append(pair)
        return f"{pair}: 0.92"

    def ask(model: BaseLLM) -> str:
        return model._handle_tool_execution("rate", {"pair": "USD/EUR"}, {"rate": rate, "search": tool.run})

    tape = recorded(ask, BaseLLM())
    step = tape.steps[0]
    assert (step[names.STEP_NAME], step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == ("rate", '{"pair":"USD/EUR"}')
    result = replayed(tape, ask, BaseLLM())
    assert (result.equal, result.value, ran) == (True, "USD/EUR: 0.92", ["USD/EUR"])


def test_a_function_of_the_framework_that_a_model_runs_is_no_step(tool: BaseTool) -> None:
    def plan(text: str) -> str:
        return text

    plan.__module__ = "crewai.utilities.reasoning_handler"
    with recording() as tape:
        assert BaseLLM()._handle_tool_execution("plan", {"text": "go"}, {"plan": plan}) == "go"
    assert tape.steps == []


def test_afterwards_all_is_as_it_was(tool: BaseTool) -> None:
    assert "crewai" in reports.scopes
    adapter.uninstall()
    assert "crewai" not in reports.scopes
    with recording() as tape:
        assert Agent(tool).kickoff("Find it.").raw == "found x"
    assert tape.steps == []


def test_another_shape_is_said_and_left_alone(seams: Any) -> None:
    seams.module("crewai.crew", Crew=type("Crew", (), {"kickoff": lambda self: 1}))
    seams.install(adapter)
    assert adapter.status().startswith("unsupported: wanted Crew.kickoff(self, inputs)")


def test_what_crewai_keeps_of_the_last_crew_is_not_named_as_an_act_of_the_agent(seams: Any, tmp_path: Path) -> None:
    class Storage:
        def __init__(self, db_path: str | None = None) -> None:
            self.path = Path(db_path or tmp_path / "own.db")

        def add(self) -> None:
            untaped.note(untaped.DATABASE, str(self.path))

        update = load = delete_all = add

    module = seams.module("crewai.memory.storage.kickoff_task_outputs_storage", KickoffTaskOutputsSQLiteStorage=Storage)
    seams.install(adapter)

    def agent() -> None:
        with agent_run("crew"):
            for path in (None, str(tmp_path / "given.db")):
                module.KickoffTaskOutputsSQLiteStorage(path).add()

    (run,) = recorded(agent, whole_process=True).runs()
    assert [named["target"] for named in run.untaped] == [str(tmp_path / "given.db")]
