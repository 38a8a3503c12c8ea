"""Strands: a tool that asks a person, a hook that asks before a call, and one that cancels it; the run goes on with the answers."""

import json

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.types.tools import ToolContext
from toolbox import get_weather, ran


@tool(context=True)
def pay(tool_context: ToolContext, amount: int) -> str:
    """Pay an amount."""
    ran("pay")
    said = tool_context.interrupt("limit", reason={"amount": amount})
    return f"{amount} paid, {said}"


@tool
def delete(path: str) -> str:
    """Delete a file."""
    ran("delete")
    return f"{path} is gone"


def guard(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "delete":
        path = event.tool_use["input"]["path"]
        if path.startswith("/"):
            event.cancel_tool = "not outside of the folder"
        elif event.interrupt("delete", reason=path) != "yes":
            event.cancel_tool = "the person says no"


def agent() -> Agent:
    made = Agent(model=OpenAIModel(model_id="gpt-4o-mini"), name="clerk", tools=[tool(get_weather), pay, delete], callback_handler=None)
    made.add_hook(guard, BeforeToolCallEvent)
    return made


clerk = agent()
asked = clerk("Pay 7, and tidy up.")
waiting = sorted((i.name, json.dumps(i.reason)) for i in asked.interrupts)
print(json.dumps({"mode": "asked", "output": [asked.stop_reason, waiting]}), flush=True)
answers = {"limit": "Ann agrees", "delete": "yes"}
said = [{"interruptResponse": {"interruptId": i.id, "response": answers[i.name]}} for i in asked.interrupts]
print(json.dumps({"mode": "answered", "output": str(clerk(said))}), flush=True)

other = agent()
asked = other("Delete b.txt.")
said = [{"interruptResponse": {"interruptId": i.id, "response": "no"}} for i in asked.interrupts]
print(json.dumps({"mode": "denied", "output": str(other(said))}), flush=True)
