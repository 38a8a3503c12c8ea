"""A swarm of AutoGen: one agent hands over to another, which has a tool.

pip install autogen-agentchat "autogen-ext[openai]"
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

model = OpenAIChatCompletionClient(model=os.environ.get("MODEL", "gpt-4o-mini"))


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


planner = AssistantAgent("planner", model_client=model, system_message="Leave the weather to the forecaster.", handoffs=["forecaster"])
forecaster = AssistantAgent("forecaster", model_client=model, tools=[get_weather], reflect_on_tool_use=True)


async def main() -> None:
    team = Swarm([planner, forecaster], termination_condition=TextMessageTermination("forecaster"))
    async for message in team.run_stream(task="How is the weather in Oslo?"):
        print(message.to_text() if hasattr(message, "to_text") else message.stop_reason)


asyncio.run(main())
