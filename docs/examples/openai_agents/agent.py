"""Two agents of the OpenAI Agents SDK: one hands over, the other asks a person before it refunds.

pip install openai-agents
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from agents import Agent, Runner, SQLiteSession, function_tool

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


@function_tool
def find_order(customer: str) -> dict[str, object]:
    """Find the last order of a customer."""
    return {"order": 1042, "customer": customer, "euros": 30}


@function_tool(needs_approval=True)
def refund(order: int, euros: int) -> str:
    """Refund an order."""
    return f"{euros} euros of order {order} are on their way back"


billing = Agent(name="billing", instructions="Look the order up and refund it.", model=MODEL, tools=[find_order, refund])
triage = Agent(name="triage", instructions="Hand questions of money over to billing.", model=MODEL, handoffs=[billing])


async def main() -> None:
    session = SQLiteSession("ana", "conversation.db")
    result = await Runner.run(triage, "I am Ana. The lamp arrived broken, I want my money back.", session=session)
    while result.interruptions:
        state = result.to_state()
        for call in result.interruptions:
            print(f"approved: {call.name}({call.arguments})")
            state.approve(call)
        result = await Runner.run(triage, state, session=session)
    print(result.final_output)


asyncio.run(main())
