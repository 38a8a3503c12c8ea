"""A server in memory whose tool makes calls of its own: they belong to the tool's step, two calls at once included."""

import asyncio
import inspect
import json

from fastmcp import Client, FastMCP
from toolbox import ran

from spanreplay.instrumentation import agent_run, tool

station = FastMCP("weather-station")
LEGACY = {"mode": "legacy"} if "mode" in inspect.signature(Client).parameters else {}


@tool
def look_up(city: str) -> str:
    ran("look_up")
    return f"{city}: 59.9 N"


@station.tool
async def forecast(city: str) -> str:
    await asyncio.sleep(0)
    return look_up(city)


async def main() -> list[str]:
    async with agent_run("weather") as run, Client(station, **LEGACY) as client:
        await client.list_tools()
        calls = [client.call_tool("forecast", {"city": city}) for city in ("Oslo", "Bergen")]
        run.output = [result.content[0].text for result in await asyncio.gather(*calls)]
        return run.output


print(json.dumps({"mode": "inside", "output": asyncio.run(main())}))
