"""Claude Agent SDK over a stand-in for its CLI: tools of this program's own, and a sub-agent of the CLI's."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, query, tool
from toolbox import get_alerts, get_time, get_weather, roll

os.environ["FAKE_CLI_PYTHON"] = sys.executable
PROMPT = "How is the weather?"


def offered(function: Callable[..., str], schema: dict[str, Any]) -> Any:
    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": function(**arguments)}]}

    return tool(function.__name__, function.__doc__ or "", schema)(handler)


TOOLS = [offered(each, {"city": str}) for each in (get_weather, get_time, get_alerts)] + [offered(roll, {})]


def options(mode: str) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cli_path=Path(__file__).parent / "fake_cli",
        model="claude-test",
        system_prompt="You tell the weather.",
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=TOOLS)},
        agents={"specialist": AgentDefinition(description="Knows umbrellas.", prompt="You know umbrellas.", tools=[])},
        include_partial_messages=mode == "stream",
    )


async def asked() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": PROMPT}, "parent_tool_use_id": None, "session_id": "s1"}


async def run(mode: str) -> Any:
    if mode == "client":
        async with ClaudeSDKClient(options(mode)) as client:
            await client.query(PROMPT)
            return [message.result async for message in client.receive_response() if isinstance(message, ResultMessage)][-1]
    return [message.result async for message in query(prompt=asked(), options=options(mode)) if isinstance(message, ResultMessage)][-1]


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(run(mode))}), flush=True)
