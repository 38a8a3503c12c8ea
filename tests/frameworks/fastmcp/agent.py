"""fastmcp's client: a loop over the OpenAI SDK whose tools are those of a server in a process of its own, and of one in memory."""

import asyncio
import inspect
import json
import os
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import PythonStdioTransport
from openai import AsyncOpenAI
from server import station

from spanreplay.instrumentation import agent_run

QUESTION = "What is the weather?"
LEGACY = {"mode": "legacy"} if "mode" in inspect.signature(Client).parameters else {}


def over_stdio() -> PythonStdioTransport:
    environment = {name: os.environ[name] for name in ("TOOL_BODIES", "PYTHONPATH")}
    script = str(Path(__file__).with_name("server.py"))
    return PythonStdioTransport(script, env=environment, python_cmd=sys.executable, keep_alive=False)


async def answer(client: Client) -> str:
    offered = [tool.model_dump(by_alias=True) for tool in await client.list_tools()]
    tools = [
        {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]}}
        for t in offered
    ]
    messages = [{"role": "user", "content": QUESTION}]
    async with AsyncOpenAI() as model:
        while True:
            reply = (await model.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)).choices[0].message
            messages.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                return reply.content
            calls = [
                client.call_tool(call.function.name, json.loads(call.function.arguments), raise_on_error=False) for call in reply.tool_calls
            ]
            for call, result in zip(reply.tool_calls, await asyncio.gather(*calls), strict=True):
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "".join(part.text for part in result.content)})


async def main(mode: str) -> str:
    async with agent_run("weather", input=QUESTION) as run, Client(over_stdio() if mode == "stdio" else station, **LEGACY) as client:
        run.output = await answer(client)
        return run.output


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode))}), flush=True)
