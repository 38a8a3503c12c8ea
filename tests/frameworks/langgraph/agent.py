"""LangChain's ``create_agent``: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import sys

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from toolbox import get_alerts, get_time, get_weather, roll

model = ChatOpenAI(model="gpt-4o-mini", max_retries=0, stream_usage=True)
specialist = create_agent(model, name="specialist", system_prompt="You know about umbrellas.")
ALERTS = tool(get_alerts)


@tool
def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    return str(specialist.invoke({"messages": [("user", question)]})["messages"][-1].content)


@tool("ask_specialist")
async def ask_specialist_async(question: str) -> str:
    """Ask the specialist."""
    return str((await specialist.ainvoke({"messages": [("user", question)]}))["messages"][-1].content)


def failed(request, error):
    return ToolMessage(str(error), tool_call_id=request.tool_call["id"], name=request.tool_call["name"], status="error")


@wrap_tool_call
def told(request, handler):
    try:
        return handler(request)
    except RuntimeError as error:
        return failed(request, error)


@wrap_tool_call
async def told_async(request, handler):
    try:
        return await handler(request)
    except RuntimeError as error:
        return failed(request, error)


def made(specialist_tool, middleware):
    return create_agent(
        model,
        [get_weather, get_time, roll, ALERTS, specialist_tool],
        name="weather",
        system_prompt="You are a weather assistant.",
        middleware=[middleware],
    )


AGENT, ASYNC_AGENT = made(ask_specialist, told), made(ask_specialist_async, told_async)


def sync(asked):
    return AGENT.invoke(asked)["messages"][-1].content


async def asynchronous(asked):
    return (await ASYNC_AGENT.ainvoke(asked))["messages"][-1].content


def stream(asked):
    *_, last = AGENT.stream(asked, stream_mode="updates")
    return last["model"]["messages"][-1].content


async def astream(asked):
    said = {}
    async for message, about in ASYNC_AGENT.astream(asked, stream_mode="messages"):
        if about["langgraph_node"] == "model":
            said[message.id] = said.get(message.id, "") + message.content
    return [*said.values()][-1]


MODES = {"sync": sync, "async": asynchronous, "stream": stream, "astream": astream}
with asyncio.Runner() as runner:  # one event loop: the model's HTTP client is kept for all runs
    for mode in sys.argv[1:]:
        asked = {"messages": [("user", "What is the weather?")]}
        output = MODES[mode](asked) if mode in ("sync", "stream") else runner.run(MODES[mode](asked))
        print(json.dumps({"mode": mode, "output": output}), flush=True)
