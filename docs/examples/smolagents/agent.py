"""An agent of smolagents that writes code, with a tool and an agent that it manages.

pip install "smolagents[openai]"
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import os

from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel(os.environ.get("MODEL", "gpt-4o-mini"), api_base=os.environ.get("OPENAI_BASE_URL"))


@tool
def sales(month: int) -> dict:
    """Get the sales of a month, by product.

    Args:
        month: from 1.
    """
    return {"tea": 3 * month, "cake": 7}


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    return f"{city}: 21 °C and sunny"


forecaster = ToolCallingAgent(tools=[get_weather], model=model, name="forecaster", description="Knows the weather.", verbosity_level=0)
analyst = CodeAgent(tools=[sales], managed_agents=[forecaster], model=model, name="analyst", description="Counts.", verbosity_level=0)
print(analyst.run("How is the weather in Paris, and how much was sold in the first three months?"))
