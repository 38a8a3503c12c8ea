"""smolagents: an agent that writes code, one that it manages, and what its code may do with the results of tools."""

import json
import os

from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool
from toolbox import get_time, ran

model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "a-key"))


@tool
def sales(month: int) -> dict:
    """Get the sales of a month, by product.

    Args:
        month: from 1.
    """
    ran("sales")
    if month > 12:
        raise ValueError(f"there is no month {month}")
    return {"tea": 3 * month, "cake": 7}


@tool
def time(city: str) -> str:
    """Get the local time of a city.

    Args:
        city: its name.
    """
    return get_time(city)


clerk = ToolCallingAgent(tools=[time], model=model, name="clerk", description="Knows the time.", verbosity_level=0)
agent = CodeAgent(tools=[sales], managed_agents=[clerk], model=model, name="analyst", description="Counts.", verbosity_level=0)
print(json.dumps({"mode": "code", "output": agent.run("How much was sold?")}))
