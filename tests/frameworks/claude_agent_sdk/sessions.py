"""One query, and a conversation of two turns; tools of the CLI's own, one of this program's, and a callback that allows or not."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from toolbox import get_weather

os.environ["FAKE_CLI_PYTHON"] = sys.executable


@tool("get_weather", "Get the weather of a city.", {"city": str})
async def weather(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": get_weather(arguments["city"])}]}


turns = 0


async def may_use(name: str, arguments: dict[str, Any], _context: Any) -> Any:
    global turns
    turns += 1
    return PermissionResultAllow() if turns % 2 else PermissionResultDeny(message="not today")


def options() -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cli_path=Path(__file__).parent / "fake_cli",
        model="claude-test",
        system_prompt="You help.",
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[weather])},
        can_use_tool=may_use,
        allowed_tools=["Bash", "mcp__desk__get_weather"],
    )


async def once() -> list[str]:
    async def prompt() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": "hello"}, "parent_tool_use_id": None, "session_id": "s1"}

    return [f"{type(message).__name__}" async for message in query(prompt=prompt(), options=options())]


async def conversation() -> list[str]:
    said = []
    async with ClaudeSDKClient(options()) as client:
        for prompt in ("one", "two"):
            await client.query(prompt)
            said += [str(message.result) async for message in client.receive_response() if isinstance(message, ResultMessage)]
    return said


for mode in sys.argv[1:]:
    done = asyncio.run(once() if mode == "query" else conversation())
    print(json.dumps({"mode": mode, "output": done}), flush=True)
