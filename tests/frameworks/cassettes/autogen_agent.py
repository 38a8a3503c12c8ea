"""AutoGen: the agent of any of its recordings. It answers from what its tools gave where it is asked once more without them."""

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from playing import SCENE, function, say, say_error


def agent(turn: dict[str, Any]) -> AssistantAgent:
    first, *later = turn["phases"]
    return AssistantAgent(
        "agent",
        model_client=OpenAIChatCompletionClient(model=turn["model"], max_retries=0),
        model_client_stream=SCENE["streamed"],
        system_message=first["instructions"] or None,
        tools=[FunctionTool(function(told), told["description"]) for told in first["tools"]],
        reflect_on_tool_use=any(not phase["tools"] for phase in later),
        max_tool_iterations=9,
    )


async def main() -> None:
    playing = None
    for turn in SCENE["turns"]:
        if playing is None or not turn["goes_on"]:
            playing = agent(turn)
        try:
            events = [event async for event in playing.run_stream(task=turn["question"])]
        except Exception as error:
            say_error(error)
            return
        say(events[-1].messages[-1].content)


asyncio.run(main())
