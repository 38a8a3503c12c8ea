"""The tools as an MCP server, of version 1 and of version 2 of the SDK: ``server.py`` speaks over stdio, ``server.py PORT`` over HTTP."""

import itertools
import sys

import toolbox

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
from mcp.types import ToolAnnotations
from toolbox import get_alerts, get_time, get_weather, roll

READS = ToolAnnotations(readOnlyHint=True)


def server(**options: object) -> Server:
    made = Server("weather-station", **options)
    for function in (get_weather, get_time, get_alerts):
        made.tool(annotations=READS)(function)
    made.tool()(roll)

    @made.resource("station://manual")
    def manual() -> str:
        return "Turn it on."

    @made.prompt()
    def forecast(city: str) -> str:
        return f"What will the weather of {city} be?"

    return made


def over_http(port: int) -> None:
    try:
        server(host="127.0.0.1", port=port).run("streamable-http")
    except TypeError:
        server().run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    toolbox._rolls = itertools.count(101)  # no roll of this process is one of the agent's
    if len(sys.argv) > 1:
        over_http(int(sys.argv[1]))
    else:
        server().run("stdio")
