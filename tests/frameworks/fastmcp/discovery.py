"""fastmcp 4 asks an unknown server which revisions of the protocol it speaks, before anything else."""

import asyncio
import json

from fastmcp import Client
from memory import station

from spanreplay.instrumentation import agent_run


async def main() -> str:
    async with agent_run("weather") as run, Client(station) as client:
        run.output = (await client.call_tool("get_time", {"city": "Oslo"})).data
        return run.output


print(json.dumps({"mode": "discovery", "output": asyncio.run(main())}))
