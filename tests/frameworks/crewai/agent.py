"""CrewAI: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import os
import sys

from crewai import LLM, Agent
from crewai.tools import tool
from toolbox import get_alerts, get_time, get_weather, roll

# An address of its own, also where there is no server: for OpenAI's, CrewAI has OpenAI count tokens.
llm = LLM(model="openai/gpt-4o-mini", max_retries=0, base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))
specialist = Agent(role="specialist", goal="know about umbrellas", backstory="An expert.", llm=llm)


@tool("ask_specialist")
def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    return specialist.kickoff(question).raw


TOOLS = [*(tool(body.__name__)(body) for body in (get_weather, get_time, roll, get_alerts)), ask_specialist]
for one in TOOLS:
    one.cache_function = lambda arguments, result: False


def agent():
    return Agent(role="weather", goal="tell the weather", backstory="An assistant.", llm=llm, tools=TOOLS)


def sync(asked):
    return agent().kickoff(asked).raw


async def asynchronous(asked):
    return (await agent().kickoff_async(asked)).raw


for mode in sys.argv[1:]:
    asked = "What is the weather?"
    output = sync(asked) if mode == "sync" else asyncio.run(asynchronous(asked))
    print(json.dumps({"mode": mode, "output": output}), flush=True)
