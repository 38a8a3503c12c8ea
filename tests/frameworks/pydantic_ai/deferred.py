"""Pydantic AI: calls that wait for a person's approval or for another system, and the run that goes on when they have said it."""

import asyncio
import json

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from toolbox import get_weather, ran

ticket = ToolDefinition(name="open_ticket", parameters_json_schema={"type": "object", "properties": {"about": {"type": "string"}}})
agent = Agent(
    OpenAIChatModel("gpt-4o-mini"),
    name="janitor",
    instructions="You tidy up.",
    output_type=[str, DeferredToolRequests],
    tools=[get_weather],
    toolsets=[ExternalToolset([ticket])],
)


@agent.tool_plain(requires_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    ran("delete_file")
    return f"{path} is gone"


@agent.tool
def move_file(ctx: RunContext[None], path: str) -> str:
    """Move a file; a person is asked where it is of the system."""
    ran("move_file")
    if path.startswith("/etc") and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"why": "of the system"})
    return f"{path} moved"


@agent.tool_plain
def long_job(size: int) -> str:
    """A job that another system does."""
    ran("long_job")
    raise CallDeferred(metadata={"queue": "night"})


async def main() -> None:
    first = await agent.run("Tidy up.")
    asked = first.output
    assert isinstance(asked, DeferredToolRequests)
    waiting = {
        "approvals": [(call.tool_name, call.args_as_dict()) for call in asked.approvals],
        "calls": [(call.tool_name, call.args_as_dict()) for call in asked.calls],
        "metadata": getattr(asked, "metadata", {}),
    }
    print(json.dumps({"mode": "asked", "output": waiting}), flush=True)
    said = DeferredToolResults(
        calls={"call_job": "done at night", "call_ticket": {"ticket": 7}},
        approvals={"call_a": True, "call_b": ToolDenied("keep it"), "call_etc": ToolApproved(override_args={"path": "/etc/motd"})},
    )
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=said)
    print(json.dumps({"mode": "answered", "output": second.output}), flush=True)


asyncio.run(main())
