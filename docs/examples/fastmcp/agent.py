"""An agent without a model, to see what of fastmcp is recorded: `spanreplay record -- python agent.py`, with `pip install fastmcp`."""

import asyncio

from fastmcp import Client, FastMCP

from spanreplay.instrumentation import agent_run

server = FastMCP("orders", version="1.4.0")
ORDERS = {"4711": "lost", "4712": "on its way"}


@server.tool(annotations={"readOnlyHint": True})
def order_status(order: str) -> str:
    """Where an order is."""
    return ORDERS[order]


@server.tool(annotations={"destructiveHint": True})
def refund(order: str) -> str:
    """Refund an order. It cannot be taken back."""
    return f"{order} refunded"


async def main() -> str:
    async with agent_run("refunds", input="What of my orders 4711 and 4712?") as run, Client(server) as client:
        await client.list_tools()  # what the server says of its tools: their versions, and what they do outside
        states = {order: (await client.call_tool("order_status", {"order": order})).data for order in ORDERS}
        done = [await client.call_tool("refund", {"order": order}) for order, state in states.items() if state == "lost"]
        run.output = "; ".join(result.data for result in done)
        return run.output


print(asyncio.run(main()))
