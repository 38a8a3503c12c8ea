"""Calls that wait for a person: one approved and one rejected, the state kept as JSON in between; then the same, streamed."""

import asyncio
import json
import sys

from agents import Agent, Runner, RunState, function_tool
from models import model
from toolbox import get_time, ran


@function_tool(needs_approval=True)
def refund(order: int) -> str:
    """Refund an order."""
    ran("refund")
    return f"refunded {order}"


async def needs_approval(_context: object, arguments: dict[str, int], _call_id: str) -> bool:
    return arguments["days"] > 7


@function_tool(needs_approval=needs_approval)
def extend(days: int) -> str:
    """Extend a trial."""
    ran("extend")
    return f"extended by {days} days"


async def run(agent: Agent, question: object, streamed: bool) -> object:
    if not streamed:
        return await Runner.run(agent, question)
    result = Runner.run_streamed(agent, question)
    async for _ in result.stream_events():
        pass
    return result


async def main(streamed: bool) -> str:
    tools = [refund, extend, function_tool(get_time)]
    agent = Agent(name="support", instructions="You help customers.", model=model(), tools=tools)
    result = await run(agent, "Refund orders 1 and 2, extend the trial.", streamed)
    waiting = [f"{item.name} {item.arguments}" for item in result.interruptions]
    text = result.to_state().to_string()
    state = await RunState.from_string(agent, text)
    first, second = state.get_interruptions()
    state.approve(first)
    state.reject(second)
    done = await run(agent, state, streamed)
    return f"{waiting} {done.final_output} {len(done.interruptions)}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode == "stream"))}), flush=True)
