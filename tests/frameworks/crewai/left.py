"""An agent with a limit of time, and a tool that ends after it."""

import json
import os
import time

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from toolbox import get_weather, ran

llm = LLM(model="openai/gpt-4o-mini", max_retries=0, base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))


@tool("wait_a_while")
def wait_a_while() -> str:
    """Wait a while."""
    ran("wait_a_while")
    time.sleep(5)
    return "at last"


tools = [tool("get_weather")(get_weather), wait_a_while]
agent = Agent(
    role="weather", goal="tell the weather", backstory="An assistant.", llm=llm, tools=tools, max_retry_limit=0, max_execution_time=3
)
task = Task(description="What is the weather?", expected_output="The weather.", agent=agent)
try:
    output = Crew(agents=[agent], tasks=[task]).kickoff().raw
except TimeoutError:
    output = "too late"
print(json.dumps({"mode": "limited", "output": output}), flush=True)
