"""Requests of an MCP client to a server in the same process, with Logfire's instrumentation, which has their content.

The version 1 of the MCP SDK has no spans of its own.
"""

import asyncio

import logfire
from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session

logfire.configure(send_to_logfire=False, console=False)
logfire.instrument_mcp()

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
server = FastMCP("weather")


@server.tool()
def get_weather(city: str) -> dict:
    return WEATHER[city]


@server.tool()
def get_alerts(city: str) -> dict:
    raise RuntimeError("alert service unavailable")


@server.resource("weather://cities")
def cities() -> str:
    return "Paris, Oslo"


async def main() -> None:
    async with create_connected_server_and_client_session(server._mcp_server) as client:
        await client.list_tools()
        await client.call_tool("get_weather", {"city": "Paris"})
        await client.call_tool("get_alerts", {"city": "Oslo"})
        await client.read_resource("weather://cities")


with logfire.span("work"):
    asyncio.run(main())
logfire.shutdown()
