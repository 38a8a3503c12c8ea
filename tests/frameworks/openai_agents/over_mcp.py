"""An agent whose tools are those of an MCP server: a call that the framework and the MCP client both see is one step."""

import asyncio
import json
import os
import sys
from pathlib import Path

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

set_tracing_disabled(True)
SERVER = Path(__file__).parent.parent / "mcp" / "server.py"


async def main() -> str:
    environment = {name: os.environ[name] for name in ("TOOL_BODIES", "PYTHONPATH")}
    parameters = {"command": sys.executable, "args": [str(SERVER)], "env": environment}
    async with MCPServerStdio(params=parameters, cache_tools_list=True, client_session_timeout_seconds=60) as server:
        model = OpenAIChatCompletionsModel("gpt-4o-mini", AsyncOpenAI())
        agent = Agent(name="weather", model=model, model_settings=ModelSettings(store=False), mcp_servers=[server])
        return (await Runner.run(agent, "What is the weather?")).final_output


print(json.dumps({"mode": "mcp", "output": asyncio.run(main())}))
