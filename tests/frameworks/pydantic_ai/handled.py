"""Pydantic AI: calls that a handler approves, refuses and answers while the agent runs: a replay does not ask it again."""

import asyncio
import json

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import ran


async def person(ctx: RunContext[None], requests: DeferredToolRequests) -> DeferredToolResults:
    ran("person")
    said = {call.tool_call_id: call.args_as_dict()["path"] == "a.txt" or ToolDenied("keep it") for call in requests.approvals}
    return DeferredToolResults(approvals=said, calls={call.tool_call_id: "done at night" for call in requests.calls})


agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="janitor", capabilities=[HandleDeferredToolCalls(handler=person)])


@agent.tool_plain(requires_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    ran("delete_file")
    return f"{path} is gone"


@agent.tool_plain
def long_job(size: int) -> str:
    """A job that another system does."""
    ran("long_job")
    raise CallDeferred


async def main() -> None:
    done = await agent.run("Tidy up.")
    print(json.dumps({"mode": "handled", "output": done.output}), flush=True)


asyncio.run(main())
