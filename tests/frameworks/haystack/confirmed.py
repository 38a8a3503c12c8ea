"""Haystack: calls that a person confirms, rejects and changes; tools that write to the agent's state; one that does not exist."""

import json
import sys
from typing import Any

from agent import model, weather
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage
from haystack.hooks.human_in_the_loop import AlwaysAskPolicy, BlockingConfirmationStrategy, ConfirmationHook, ConfirmationUIResult
from haystack.tools import Tool, create_tool_from_function
from toolbox import ran


class Person:
    """Says yes to one order, no to the second, and another amount for the third."""

    def get_user_confirmation(self, tool_name: str, tool_description: str, tool_params: dict[str, Any]) -> ConfirmationUIResult:
        ran("Person")
        if tool_params["order"] == 2:
            return ConfirmationUIResult(action="reject", feedback="Not that one.")
        if tool_params["order"] == 3:
            return ConfirmationUIResult(action="modify", new_tool_params={"order": 4})
        return ConfirmationUIResult(action="confirm")

    def to_dict(self) -> dict[str, Any]:
        return {}


def refund(order: int) -> str:
    """Refund an order."""
    ran("refund")
    return f"refunded {order}"


def note(text: str) -> dict[str, str]:
    """Take a note."""
    ran("note")
    return {"note": text, "told": "noted"}


def count(state: State) -> str:
    """Count the orders."""
    ran("count")
    state.set("orders", (state.get("orders") or 0) + 3)
    return "counted"


def run() -> str:
    strategy = BlockingConfirmationStrategy(confirmation_policy=AlwaysAskPolicy(), confirmation_ui=Person())
    written = Tool(
        name="note",
        description="Take a note.",
        parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        function=note,
        outputs_to_state={"note": {"source": "note"}},
        outputs_to_string={"source": "told"},
    )
    agent = weather(
        chat_generator=model("chat"),
        tools=[create_tool_from_function(refund), written, create_tool_from_function(count)],
        state_schema={"note": {"type": str}, "orders": {"type": int}},
        hooks={"before_tool": [ConfirmationHook(confirmation_strategies={"refund": strategy})]},
    )
    done = agent.run([ChatMessage.from_user("Refund 1, 2 and 3.")])
    return f"{done['last_message'].text} {done['note']} {done['orders']} {done['step_count']}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run()}), flush=True)
