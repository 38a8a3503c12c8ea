"""Haystack: an agent with four plain tools and another agent behind a fifth, over both model APIs."""

import asyncio
import json
import os
import sys
from typing import Any

os.environ["OPENAI_API_KEY"] = os.environ.get("OPENAI_API_KEY", "a-key")

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.tools import create_tool_from_function
from toolbox import get_alerts, get_time, get_weather, roll


def model(api: str) -> Any:
    kind = OpenAIResponsesChatGenerator if api == "responses" else OpenAIChatGenerator
    return kind(model="gpt-4o-mini", api_base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))


class specialist(Agent):
    """Its name is the agent's."""


class weather(Agent):
    """Its name is the agent's."""


async def run(mode: str, question: str) -> str:
    way, _, api = mode.partition("-")
    expert = specialist(chat_generator=model(api), system_prompt="You know about umbrellas.")

    def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str(expert.run([ChatMessage.from_user(question)])["last_message"].text)

    tools = [create_tool_from_function(function) for function in (get_weather, get_time, roll, get_alerts, ask_specialist)]
    agent = weather(chat_generator=model(api), system_prompt="You are a weather assistant.", tools=tools)
    messages = [ChatMessage.from_user(question)]
    if way == "sync":
        return str(agent.run(messages)["last_message"].text)
    if way == "async":
        return str((await agent.run_async(messages))["last_message"].text)
    parts: list[str] = []
    if way == "stream":
        agent.run(messages, streaming_callback=lambda chunk: parts.append(chunk.content))
        return "".join(parts)

    async def seen(chunk: StreamingChunk) -> None:
        parts.append(chunk.content)

    await agent.run_async(messages, streaming_callback=seen)
    return "".join(parts)


for mode in sys.argv[1:] if __name__ == "__main__" else ():
    print(json.dumps({"mode": mode, "output": asyncio.run(run(mode, "What is the weather?"))}), flush=True)
