"""fastmcp's client with a server in memory: three calls at once, one of which fails, then a resource and a prompt."""

import asyncio
import inspect
import json

from fastmcp import Client, FastMCP
from toolbox import get_alerts, get_time, get_weather

from spanreplay.instrumentation import agent_run

station = FastMCP("weather-station", version="1.2")
for function in (get_time, get_alerts):
    station.tool(function)
station.tool(get_weather, annotations={"readOnlyHint": True})


@station.resource("station://manual")
def manual() -> str:
    return "Turn it on."


@station.prompt
def forecast(city: str) -> str:
    return f"What will the weather of {city} be?"


LEGACY = {"mode": "legacy"} if "mode" in inspect.signature(Client).parameters else {}
"""Version 4 asks the server which revision of the protocol it speaks; the handshake of version 3 is still there."""


async def main() -> object:
    async with agent_run("weather") as run, Client(station, **LEGACY) as client:
        names = sorted(tool.name for tool in await client.list_tools())
        calls = [client.call_tool(name, {"city": "Oslo"}, raise_on_error=False) for name in names]
        results = [[result.is_error, result.content[0].text] for result in await asyncio.gather(*calls)]
        read = (await client.read_resource("station://manual"))[0].text
        prompt = (await client.get_prompt("forecast", {"city": "Oslo"})).messages[0].content.text
        run.output = [names, results, read, prompt]
        return run.output


if __name__ == "__main__":
    print(json.dumps({"mode": "memory", "output": asyncio.run(main())}))
