"""A tool that tells how far it is and writes to its client's log: a replay tells it again, to the callbacks of the program."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client

from spanreplay.instrumentation import agent_run

TOLD = []


async def progress(done, total, message) -> None:
    TOLD.append(f"{done} of {total}")


async def log(params) -> None:
    TOLD.append(f"{params.level}: {params.data}")


async def seen(message) -> None:
    TOLD.append(getattr(getattr(message, "root", message), "method", "other"))


async def main() -> list[str]:
    environment = {name: os.environ[name] for name in ("TOOL_BODIES", "PYTHONPATH")}
    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "server"], env=environment)
    async with (
        agent_run("walker") as run,
        stdio_client(parameters) as (reading, writing),
        ClientSession(reading, writing, logging_callback=log, message_handler=seen) as session,
    ):
        await session.initialize()
        for city in ("Oslo", "Lima"):
            result = await session.call_tool("walk", {"city": city}, progress_callback=progress)
            TOLD.append(result.content[0].text)
        run.output = TOLD
        return TOLD


def serve() -> None:
    from toolbox import ran

    try:
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import Context
        from mcp.server.fastmcp import FastMCP as Server

    station = Server("walker")

    async def walk(city: str, ctx: Context) -> str:
        ran("walk")
        await ctx.report_progress(1, 2)
        await ctx.info(f"on the way to {city}")
        await ctx.session.send_tool_list_changed()
        await ctx.report_progress(2, 2)
        return f"in {city}"

    walk.__annotations__["ctx"] = Context
    station.tool()(walk)
    station.run("stdio")


if __name__ == "__main__":
    if "server" in sys.argv:
        serve()
    else:
        print(json.dumps({"mode": "telling", "output": asyncio.run(main())}))
