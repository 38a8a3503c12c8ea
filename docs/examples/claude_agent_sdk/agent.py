"""A conversation with Claude, which may read files and ask a tool of this program.

pip install claude-agent-sdk
export ANTHROPIC_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)


@tool("get_price", "Get the price of an article in euros.", {"article": str})
async def get_price(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"{arguments['article']}: 30 euros"}]}


async def may_use(name: str, _arguments: dict[str, Any], _context: Any) -> PermissionResultAllow | PermissionResultDeny:
    """Reading and asking are fine, changing is not."""
    if name in ("Read", "Glob", "Grep") or name.startswith("mcp__shop__"):
        return PermissionResultAllow()
    return PermissionResultDeny(message="this agent only looks")


OPTIONS = ClaudeAgentOptions(
    system_prompt="You help in a shop. Be brief.",
    mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[get_price])},
    can_use_tool=may_use,
    max_turns=5,
)


async def main() -> None:
    async with ClaudeSDKClient(OPTIONS) as client:
        for question in ("What does a lamp cost?", "And two of them?"):
            await client.query(question)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)


asyncio.run(main())
