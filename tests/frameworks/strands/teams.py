"""Strands: a swarm that hands over, a graph, an agent as a tool, a typed output, a tool that streams and one that changes the state."""

import asyncio
import json
import sys

from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder, Swarm
from toolbox import get_weather, ran

model = OpenAIModel(model_id="gpt-4o-mini")


class Trip(BaseModel):
    """A trip."""

    city: str
    minutes: int


@tool(context=True)
def remember(tool_context: ToolContext, word: str) -> str:
    """Remember a word."""
    ran("remember")
    tool_context.agent.state.set("word", word)
    return "kept"


@tool
async def count(to: int):
    """Count."""
    ran("count")
    for number in range(to):
        yield f"{number}…"
    yield f"counted to {to}"


def agent(name: str, *tools: object) -> Agent:
    return Agent(model=model, name=name, tools=list(tools), callback_handler=None)


async def swarm() -> object:
    team = Swarm([agent("front"), agent("back", tool(get_weather))])
    done = await team.invoke_async("Who knows the weather?")
    return [done.status.value, [node.node_id for node in done.node_history], str(done.results["back"].result).strip()]


async def graph() -> object:
    builder = GraphBuilder()
    builder.add_node(agent("draft"), "draft")
    builder.add_node(agent("check"), "check")
    builder.add_edge("draft", "check")
    builder.set_entry_point("draft")
    done = await builder.build().invoke_async("Write a line.")
    return [done.status.value, str(done.results["check"].result).strip()]


async def nested() -> object:
    helper = agent("helper", tool(get_weather))
    outer = agent("outer", helper.as_tool(name="ask_helper", description="Ask the helper."))
    return str(await outer.invoke_async("Ask.")).strip()


async def typed() -> object:
    done = await agent("planner").invoke_async("Plan.", structured_output_model=Trip)
    return repr(done.structured_output)


async def state() -> object:
    keeper = agent("keeper", remember)
    await keeper.invoke_async("Remember blue.")
    return keeper.state.get("word")


async def streamed() -> object:
    counter = agent("counter", count)
    return [event["tool_stream_event"]["data"] async for event in counter.stream_async("Count.") if "tool_stream_event" in event]


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await globals()[mode]()}), flush=True)


asyncio.run(main())
