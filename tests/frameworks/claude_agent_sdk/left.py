"""A query whose reader goes after the first answer, a client that has a limit of time while a tool waits."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, query, tool
from toolbox import ran

os.environ["FAKE_CLI_PYTHON"] = sys.executable


@tool("wait", "Wait for ever.", {})
async def wait(_arguments: dict[str, Any]) -> dict[str, Any]:
    ran("wait")
    await asyncio.Event().wait()
    return {}


def options() -> ClaudeAgentOptions:
    desk = create_sdk_mcp_server("desk", tools=[wait])
    return ClaudeAgentOptions(cli_path=Path(__file__).parent / "fake_cli", model="claude-test", mcp_servers={"desk": desk})


async def asked() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": "hello"}, "parent_tool_use_id": None, "session_id": "s1"}


async def abandoned() -> list[str]:
    messages = query(prompt=asked(), options=options())
    async for message in messages:
        if isinstance(message, AssistantMessage):
            break
    await messages.aclose()
    await asyncio.sleep(0)
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)  # in one of them the SDK ends the CLI
    return [type(message).__name__]


async def limited() -> list[str]:
    said = []
    async with ClaudeSDKClient(options()) as client:
        await client.query("wait")
        try:
            async with asyncio.timeout(3):
                async for message in client.receive_response():
                    said += [type(message).__name__]
        except TimeoutError:
            said.append("too late")
    return said


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(abandoned() if mode == "abandoned" else limited())}), flush=True)
