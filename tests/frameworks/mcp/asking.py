"""A tool that asks back while it runs: the model of its client (sampling), and the human behind it (elicitation)."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CreateMessageResult, ElicitResult, TextContent
from openai import AsyncOpenAI

from spanreplay.instrumentation import agent_run


async def sample(context, params) -> CreateMessageResult:
    async with AsyncOpenAI() as model:
        asked = [{"role": "user", "content": params.messages[0].content.text}]
        reply = (await model.chat.completions.create(model="gpt-4o-mini", messages=asked)).choices[0].message.content
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text=reply), model="gpt-4o-mini")


async def elicit(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content={"sure": True})


async def main() -> str:
    environment = {name: os.environ[name] for name in ("TOOL_BODIES", "PYTHONPATH")}
    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "server"], env=environment)
    async with (
        agent_run("adviser") as run,
        stdio_client(parameters) as (reading, writing),
        ClientSession(reading, writing, sampling_callback=sample, elicitation_callback=elicit) as session,
    ):
        await session.initialize()
        run.output = (await session.call_tool("advise", {"city": "Oslo"})).content[0].text
        return run.output


def serve() -> None:
    from mcp.types import SamplingMessage
    from pydantic import BaseModel
    from toolbox import ran

    try:
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import Context
        from mcp.server.fastmcp import FastMCP as Server

    class Sure(BaseModel):
        sure: bool

    station = Server("adviser")

    async def advise(city: str, ctx: Context) -> str:
        ran("advise")
        said = await ctx.elicit("Are you sure?", Sure)
        message = SamplingMessage(role="user", content=TextContent(type="text", text=f"What to wear in {city}?"))
        advice = await ctx.session.create_message([message], max_tokens=50)
        return f"{advice.content.text} ({said.action})"

    advise.__annotations__["ctx"] = Context
    station.tool()(advise)
    station.run("stdio")


if __name__ == "__main__":
    if "server" in sys.argv:
        serve()
    else:
        print(json.dumps({"mode": "asking", "output": asyncio.run(main())}))
