"""Agno: a call that a person confirms and one that is rejected; a team, streamed and not; a typed tool; the session's state."""

import asyncio
import json
import sys

from agent import model
from agno.agent import Agent
from agno.run import RunContext
from agno.team import Team
from agno.tools import tool
from pydantic import BaseModel
from toolbox import get_weather, ran


class Price(BaseModel):
    amount: int


@tool(requires_confirmation=True)
def refund(order: int) -> str:
    """Refund an order."""
    ran("refund")
    return f"refunded {order}"


def price(item: str) -> Price:
    """Look a price up."""
    ran("price")
    return Price(amount=len(item))


def note(run_context: RunContext, text: str) -> str:
    """Take a note."""
    ran("note")
    run_context.session_state["notes"].append(text)
    return f"{len(run_context.session_state['notes'])} notes"


async def state() -> str:
    agent = Agent(
        name="clerk",
        model=model("chat"),
        instructions="Notes so far: {notes}",
        tools=[note],
        session_state={"notes": []},
        telemetry=False,
    )
    done = await agent.arun("Note that it rains.")
    return f"{done.content} {done.session_state['notes']}"


async def confirmed() -> str:
    agent = Agent(name="support", model=model("chat"), tools=[refund, price], telemetry=False)
    paused = await agent.arun("Refund order 1, not order 2.")
    waiting = [requirement for requirement in paused.active_requirements if requirement.needs_confirmation]
    for number, requirement in enumerate(waiting):
        requirement.reject() if number else requirement.confirm()
    done = await agent.acontinue_run(run_response=paused, requirements=paused.requirements)
    return f"{paused.is_paused} {len(waiting)} {done.content}"


async def team(streamed: bool) -> str:
    member = Agent(name="meteorologist", role="Knows the weather.", model=model("chat"), tools=[get_weather], telemetry=False)
    whole = Team(name="desk", id="desk", members=[member], model=model("chat"), telemetry=False)
    if not streamed:
        return str((await whole.arun("What is the weather in Paris?")).content)
    return "".join([e.content async for e in whole.arun("What is the weather in Paris?", stream=True) if e.event == "TeamRunContent"])


for mode in sys.argv[1:]:
    done = confirmed() if mode == "confirmed" else state() if mode == "state" else team(mode == "team-stream")
    print(json.dumps({"mode": mode, "output": asyncio.run(done)}), flush=True)
