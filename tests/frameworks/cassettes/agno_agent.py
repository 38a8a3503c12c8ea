"""Agno: the agent of any of its recordings."""

import os
from typing import Any

from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.tools.function import Function
from playing import SCENE, function, say, say_error


def tool(told: dict[str, Any]) -> Function:
    return Function(name=told["name"], description=told["description"], parameters=told["parameters"], entrypoint=function(told))


def agent(turn: dict[str, Any]) -> Agent:
    phase = turn["phases"][0]
    kind = OpenAIResponses if turn["api"] == "responses" else OpenAIChat
    model = kind(id=turn["model"], base_url=os.environ["OPENAI_BASE_URL"], api_key="a-key", max_retries=0)
    return Agent(
        name="agent", model=model, description=phase["instructions"], tools=[tool(told) for told in phase["tools"]], telemetry=False
    )


for turn in SCENE["turns"]:
    try:
        if SCENE["streamed"]:
            events = agent(turn).run(turn["question"], stream=True)
            say("".join(str(event.content) for event in events if event.event == "RunContent"))
        else:
            say(agent(turn).run(turn["question"]).content)
    except Exception as error:
        say_error(error)
