"""An agent that looks at the back end of an application, changes it, and makes one mistake, all through the platform's MCP server."""

import asyncio
import json
import os

from mcp import ClientSession, StdioServerParameters, stdio_client
from openai import AsyncOpenAI

from spanreplay.instrumentation import agent_run

TASK = "Add a table of invoices, and a bucket for their files."


def platform() -> StdioServerParameters:
    arguments = [os.environ["SERVER"], "--api_key", os.environ["API_KEY"], "--api_base_url", os.environ["BACK_END"]]
    return StdioServerParameters(command=os.environ["NODE"], args=arguments)


async def main() -> str:
    async with (
        agent_run("builder", input=TASK) as run,
        stdio_client(platform()) as (reading, writing),
        ClientSession(reading, writing) as session,
        AsyncOpenAI() as model,
    ):
        await session.initialize()
        offered = (await session.list_tools()).model_dump(by_alias=True)["tools"]
        tools = [
            {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]}}
            for t in offered
        ]
        messages: list = [{"role": "user", "content": TASK}]
        while True:
            reply = (await model.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)).choices[0].message
            messages.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                run.output = reply.content
                return reply.content
            calls = [session.call_tool(call.function.name, json.loads(call.function.arguments)) for call in reply.tool_calls]
            for call, result in zip(reply.tool_calls, await asyncio.gather(*calls), strict=True):
                text = "".join(part.text for part in result.content)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


print(json.dumps({"mode": "stdio", "output": asyncio.run(main())}))
