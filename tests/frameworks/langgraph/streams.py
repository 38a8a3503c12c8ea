"""Streams: all events of a run, one that is left early, a sub-agent that is a node; tools that time out, are cancelled, badly called."""

import asyncio
import json
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from toolbox import get_time, get_weather, ran

model = ChatOpenAI(model="gpt-4o-mini", stream_usage=True)
TOOL_EVENTS = ("on_tool_start", "on_tool_end", "on_tool_error")


@tool
async def slow(city: str) -> str:
    """Never come back."""
    ran("slow")
    await asyncio.sleep(30)
    return city


@tool
async def fail(city: str) -> str:
    """Fail at once."""
    ran("fail")
    raise LookupError(f"no {city}")


async def events(asked):
    agent = create_agent(model, [get_weather, get_time], name="events")
    seen = [event async for event in agent.astream_events(asked, version="v2")]
    tools = sorted([event["event"], event["name"], event["data"].get("input")] for event in seen if event["event"] in TOOL_EVENTS)
    return [tools, seen[-1]["data"]["output"]["messages"][-1].content]


async def left(asked):
    agent = create_agent(model, [get_weather], name="left")
    stream = agent.astream(asked, stream_mode=["updates", "values"])
    return [mode async for mode, _ in stream if mode == "updates" and await stream.aclose() is None]


async def nodes(asked):
    helper = create_agent(model, [get_time], name="helper")
    plain = StateGraph(MessagesState).add_node("helper", helper).add_edge(START, "helper").compile()
    team = StateGraph(MessagesState).add_node("plain", plain).add_edge(START, "plain").compile(name="team")
    *_, (_, last) = [item async for item in team.astream(asked, stream_mode="values", subgraphs=True)]
    return last["messages"][-1].content


async def times_out(asked):
    try:
        await asyncio.wait_for(slow.ainvoke({"city": "Rome"}), 0.3)
    except TimeoutError as error:
        return type(error).__name__


async def cancelled(asked):
    calls = [{"name": name, "args": {"city": "Rome"}, "id": name} for name in ("slow", "fail")]
    node = (
        StateGraph(MessagesState)
        .add_node("tools", ToolNode([slow, fail], handle_tool_errors=False))
        .add_edge(START, "tools")
        .compile(name="cancelled")
    )
    try:
        await node.ainvoke({"messages": [{"role": "assistant", "content": "", "tool_calls": calls}]})
    except LookupError as error:
        return str(error)


async def bad(asked):
    agent = create_agent(model, [get_weather], name="bad")
    state = await agent.ainvoke(asked)
    return [(message.type, message.status if message.type == "tool" else "", message.content) for message in state["messages"]]


async def main():
    for mode in sys.argv[1:]:
        output = await globals()[mode]({"messages": [("user", f"Do {mode}.")]})
        print(json.dumps({"mode": mode, "output": output}), flush=True)


asyncio.run(main())
