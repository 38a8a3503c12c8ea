"""An agent without a model, to see what of MCP is recorded: `spanreplay record -- python agent.py`, with `pip install mcp`."""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

from spanreplay.instrumentation import agent_run

SERVER = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("server.py"))])


async def main() -> str:
    async with agent_run("refunds", input="What of my orders 4711 and 4712?") as run, Client(SERVER) as client:
        await client.list_tools()  # what the server says of its tools: their versions, and what they do outside
        policy = (await client.read_resource("orders://policy")).contents[0].text
        orders = ["4711", "4712"]
        asked = [client.call_tool("order_status", {"order": order}) for order in orders]
        states = [result.content[0].text for result in await asyncio.gather(*asked)]
        done = [await client.call_tool("refund", {"order": order}) for order, state in zip(orders, states, strict=True) if state == "lost"]
        run.output = f"{policy} {'; '.join(result.content[0].text for result in done)}."
        return run.output


print(asyncio.run(main()))
