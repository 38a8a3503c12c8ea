"""Agno: an agent with four plain tools and another agent behind a fifth, over both model APIs."""

import asyncio
import json
import os
import sys
from typing import Any

from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses
from toolbox import get_alerts, get_time, get_weather, roll


def model(api: str) -> Any:
    kind = OpenAIResponses if api == "responses" else OpenAIChat
    return kind(id="gpt-4o-mini", base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), api_key="a-key")


async def run(mode: str, question: str) -> str:
    way, _, api = mode.partition("-")
    specialist = Agent(name="specialist", model=model(api), instructions="You know about umbrellas.", telemetry=False)

    def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str(specialist.run(question).content)

    async def aask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str((await specialist.arun(question)).content)

    aask_specialist.__name__ = "ask_specialist"
    ask = ask_specialist if way == "sync" else aask_specialist
    tools: list[Any] = [get_weather, get_time, roll, get_alerts, ask]
    agent = Agent(name="weather", model=model(api), instructions="You are a weather assistant.", tools=tools, telemetry=False)
    if way == "sync":
        return str(agent.run(question).content)
    if way == "async":
        return str((await agent.arun(question)).content)
    parts = [event.content async for event in agent.arun(question, stream=True) if event.event == "RunContent"]
    return "".join(parts)


async def main() -> None:
    for mode in sys.argv[1:]:  # in one event loop: agno keeps its clients
        print(json.dumps({"mode": mode, "output": await run(mode, "What is the weather?")}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
