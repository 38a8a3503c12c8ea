"""A crew of two with a task each, in a flow: a tool with a limit, a typed result of a tool, a typed result of the crew."""

import json
import os

from crewai import LLM, Agent, Crew, Task
from crewai.flow.flow import Flow, listen, start
from crewai.tools import BaseTool
from pydantic import BaseModel
from toolbox import ran

llm = LLM(model="openai/gpt-4o-mini", max_retries=0, base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))


class Place(BaseModel):
    name: str
    people: int


class Measure(BaseTool):
    name: str = "Measure a place"
    description: str = "How many people live there."
    max_usage_count: int | None = 1

    def _run(self, name: str) -> Place:
        ran("measure")
        return Place(name=name, people=7)


class Trip(Flow):
    @start()
    def plan(self) -> str:
        scout = Agent(role="scout", goal="find a place", backstory="Young.", llm=llm, tools=[Measure()])
        writer = Agent(role="writer", goal="write it down", backstory="Old.", llm=llm)
        find = Task(description="Find a place.", expected_output="Its name.", agent=scout)
        tell = Task(description="Tell of it.", expected_output="A report.", agent=writer, output_pydantic=Place)
        return str(Crew(agents=[scout, writer], tasks=[find, tell], name="travellers").kickoff(inputs={"year": 2026}).pydantic)

    @listen(plan)
    def publish(self, report: str) -> str:
        return f"published {report}"


print(json.dumps({"mode": "flow", "output": Trip().kickoff()}), flush=True)
