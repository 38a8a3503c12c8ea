"""AutoGen: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from toolbox import get_alerts, get_time, get_weather, roll

model = OpenAIChatCompletionClient(model="gpt-4o-mini")


async def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    specialist = AssistantAgent("specialist", model_client=model, system_message="You know about umbrellas.")
    return (await specialist.run(task=question)).messages[-1].content


def agent(stream: bool) -> AssistantAgent:
    return AssistantAgent(
        "weather",
        model_client=model,
        model_client_stream=stream,
        system_message="You are a weather assistant.",
        tools=[get_weather, get_time, roll, get_alerts, ask_specialist],
        max_tool_iterations=9,
    )


async def run(mode: str) -> str:
    if mode == "async":
        return (await agent(stream=False).run(task="What is the weather?")).messages[-1].content
    events = [event async for event in agent(stream=True).run_stream(task="What is the weather?")]
    return events[-1].messages[-1].content


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await run(mode)}), flush=True)


asyncio.run(main())
