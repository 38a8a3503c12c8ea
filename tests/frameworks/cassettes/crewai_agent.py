"""CrewAI: the agent of any of its recordings. Plans are the framework's own."""

import os
from typing import Any

from crewai import LLM, Agent
from crewai.agent.planning_config import PlanningConfig
from crewai.tools import tool
from playing import SCENE, function, say, say_error

PLAN = "create_reasoning_plan"


def llm(turn: dict[str, Any]) -> LLM:
    if turn["api"] == "messages":
        return LLM(model=f"anthropic/{turn['model']}", base_url=os.environ["ANTHROPIC_BASE_URL"], max_retries=0, stream=SCENE["streamed"])
    return LLM(model=f"openai/{turn['model']}", base_url=os.environ["OPENAI_BASE_URL"], max_retries=0, stream=SCENE["streamed"])


def tools(phase: dict[str, Any]) -> list[Any]:
    made = [tool(told["name"])(function(told)) for told in phase["tools"]]
    for one in made:
        one.cache_function = lambda arguments, result: False
    return made


def played(turn: dict[str, Any], planned: bool) -> str:
    phase = turn["phases"][0]
    # One question to the model for each step of a plan, and one for the answer, as when it was recorded.
    planning = {"planning": True, "planning_config": PlanningConfig(reasoning_effort="low", max_step_iterations=1)} if planned else {}
    story = phase["instructions"] or "An assistant."
    agent = Agent(role="agent", goal="do the task", backstory=story, llm=llm(turn), tools=tools(phase), **planning)
    return str(agent.kickoff(turn["question"]).raw)


planned = False
for turn in SCENE["turns"]:
    if any(told["name"] == PLAN for told in turn["phases"][0]["tools"]):
        planned = True
        continue
    try:
        say(played(turn, planned))
    except Exception as error:
        say_error(error)
        break
