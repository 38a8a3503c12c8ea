"""AutoGen: a swarm that hands over, a round robin, an agent as a tool, typed results, a turn limit."""

import asyncio
import json
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.tools import AgentTool
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel
from toolbox import get_weather, ran

model = OpenAIChatCompletionClient(model="gpt-4o-mini")
one_at_a_time = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)


class Trip(BaseModel):
    city: str
    minutes: int


def plan(city: str) -> Trip:
    """Plan a trip."""
    ran("plan")
    return Trip(city=city, minutes=95)


def agent(name: str, **options: object) -> AssistantAgent:
    return AssistantAgent(name, model_client=options.pop("client", model), **options)


async def swarm() -> object:
    front, back = agent("front", handoffs=["back"]), agent("back", tools=[get_weather], max_tool_iterations=3)
    done = await Swarm([front, back], termination_condition=TextMentionTermination("Sunny.")).run(task="Who knows the weather?")
    return [(message.source, message.to_text()) for message in done.messages if message.source != "user"]


async def robin() -> object:
    team = RoundRobinGroupChat([agent("draft"), agent("check")], termination_condition=MaxMessageTermination(3))
    done = await team.run(task="Write a line.")
    return [(message.source, message.to_text()) for message in done.messages]


async def nested() -> object:
    helper = AgentTool(agent("helper", tools=[get_weather], max_tool_iterations=3), return_value_as_last_message=True)
    outer = agent("outer", client=one_at_a_time, tools=[helper], max_tool_iterations=3)
    return (await outer.run(task="Ask.")).messages[-1].to_text()


async def typed() -> object:
    done = await agent("planner", tools=[FunctionTool(plan, "Plan.")]).run(task="Plan.")
    return done.messages[-1].to_text()


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await globals()[mode]()}), flush=True)


asyncio.run(main())
