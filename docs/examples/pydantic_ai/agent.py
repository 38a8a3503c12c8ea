"""An agent of Pydantic AI with a typed tool, and one that a person approves.

pip install "pydantic-ai-slim[openai]"
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.models.openai import OpenAIChatModel


class Order(BaseModel):
    number: int
    euros: int


agent = Agent(
    OpenAIChatModel(os.environ.get("MODEL", "gpt-4o-mini")),
    name="billing",
    instructions="Look the order up and refund it.",
    output_type=[str, DeferredToolRequests],
)


@agent.tool_plain
def find_order(customer: str) -> Order:
    """Find the last order of a customer."""
    return Order(number=1042, euros=30)


@agent.tool_plain(requires_approval=True)
def refund(order: int, euros: int) -> str:
    """Refund an order."""
    return f"{euros} euros of order {order} are on their way back"


async def main() -> None:
    result = await agent.run("I am Ana. The lamp arrived broken, I want my money back.")
    while isinstance(result.output, DeferredToolRequests):
        said = DeferredToolResults()
        for call in result.output.approvals:
            print(f"approved: {call.tool_name}({call.args})")
            said.approvals[call.tool_call_id] = True
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=said)
    print(result.output)


asyncio.run(main())
