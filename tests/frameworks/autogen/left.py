"""AutoGen: a run with a limit of time, one of whose two tools never ends; a stream left after a call."""

import asyncio
import json
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from toolbox import get_weather, wait_for_ever

model = OpenAIChatCompletionClient(model="gpt-4o-mini")


def agent() -> AssistantAgent:
    return AssistantAgent("weather", model_client=model, tools=[get_weather, wait_for_ever], max_tool_iterations=9)


async def limited() -> str:
    try:
        async with asyncio.timeout(4):
            return str((await agent().run(task="What is the weather?")).messages[-1])
    except TimeoutError:
        return "too late"


async def left() -> str:
    events = agent().run_stream(task="What is the weather?")
    async for event in events:
        if type(event).__name__ == "ToolCallExecutionEvent":
            break
    await events.aclose()
    return str(event.content[0].content)


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await {"limited": limited, "left": left}[mode]()}), flush=True)


asyncio.run(main())
