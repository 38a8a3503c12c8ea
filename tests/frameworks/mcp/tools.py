"""A loop over the OpenAI SDK whose tools are those of an MCP server: a process of its own, in memory, or behind a URL."""

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client
from openai import AsyncOpenAI
from pydantic import AnyUrl
from server import server

from spanreplay.instrumentation import agent_run

VERSION_2 = importlib.util.find_spec("mcp.server.mcpserver") is not None


@contextlib.asynccontextmanager
async def over_stdio():
    environment = {name: os.environ[name] for name in ("TOOL_BODIES", "PYTHONPATH")}
    parameters = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("server.py"))], env=environment)
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def in_memory():
    if VERSION_2:
        from mcp import Client

        async with Client(server(), mode="legacy") as client:
            yield client.session
    else:
        from mcp.shared.memory import create_connected_server_and_client_session

        async with create_connected_server_and_client_session(server()._mcp_server) as session:
            yield session


@contextlib.asynccontextmanager
async def over_http():
    try:
        from mcp.client.streamable_http import streamable_http_client as connect
    except ImportError:
        from mcp.client.streamable_http import streamablehttp_client as connect
    async with connect(os.environ["STATION"]) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        yield session


def text(result) -> str:
    return "".join(part.text for part in result.content)


async def answer(session, question: str) -> str:
    offered = (await session.list_tools()).model_dump(by_alias=True)["tools"]
    tools = [
        {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]}}
        for t in offered
    ]
    messages = [{"role": "user", "content": question}]
    async with AsyncOpenAI() as model:
        while True:
            reply = (await model.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)).choices[0].message
            messages.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                return reply.content
            calls = [session.call_tool(call.function.name, json.loads(call.function.arguments)) for call in reply.tool_calls]
            for call, result in zip(reply.tool_calls, await asyncio.gather(*calls), strict=True):
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text(result)})


async def main(connect) -> str:
    async with agent_run("weather", input="What is the weather?") as run, connect() as session:
        manual = await session.read_resource("station://manual" if VERSION_2 else AnyUrl("station://manual"))
        prompt = await session.get_prompt("forecast", {"city": "Oslo"})
        assert (manual.contents[0].text, prompt.messages[0].content.text) == ("Turn it on.", "What will the weather of Oslo be?")
        refused = await asyncio.gather(session.get_prompt("none"), return_exceptions=True)
        assert "none" in refused[0].error.message, refused
        run.output = await answer(session, "What is the weather?")
        return run.output


MODES = {"stdio": over_stdio, "memory": in_memory, "http": over_http}
if __name__ == "__main__":
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": asyncio.run(main(MODES[mode]))}), flush=True)
