"""Microsoft Agent Framework: the agent of any of its recordings."""

import asyncio
import os
from typing import Any

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from playing import SCENE, function, say, say_error


def agent(turn: dict[str, Any]) -> Agent:
    phase = turn["phases"][0]
    kind = OpenAIChatClient if turn["api"] == "responses" else OpenAIChatCompletionClient
    client = kind(model=turn["model"], api_key="a-key", base_url=os.environ["OPENAI_BASE_URL"])
    return Agent(client, phase["instructions"], name="agent", tools=[tool(function(told)) for told in phase["tools"]])


async def main() -> None:
    for turn in SCENE["turns"]:
        try:
            if SCENE["streamed"]:
                stream = agent(turn).run(turn["question"], stream=True)
                async for _ in stream:
                    pass
                say((await stream.get_final_response()).text)
            else:
                say((await agent(turn).run(turn["question"])).text)
        except Exception as error:
            say_error(error)
            return


asyncio.run(main())
