"""An MCP server with two tools and a resource, over stdio."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("orders", version="1.4.0")
orders = {"4711": "lost", "4712": "on its way"}


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def order_status(order: str) -> str:
    """Where an order is."""
    return orders[order]


@server.tool(annotations=ToolAnnotations(destructiveHint=True))
def refund(order: str) -> str:
    """Refund an order. It cannot be taken back."""
    return f"{order} refunded"


@server.resource("orders://policy")
def policy() -> str:
    return "Lost orders are refunded."


if __name__ == "__main__":
    server.run("stdio")
