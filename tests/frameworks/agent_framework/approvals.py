"""Calls that wait for a person, one approved and one rejected, awaited and streamed; an agent as a tool; a typed answer; a workflow."""

import asyncio
import json
import sys
from typing import Any

from agent_framework import Agent, AgentExecutor, Content, Message, WorkflowBuilder, tool
from models import client
from pydantic import BaseModel
from toolbox import get_time, ran


@tool(approval_mode="always_require")
def refund(order: int) -> str:
    """Refund an order."""
    ran("refund")
    return f"refunded {order}"


class Price(BaseModel):
    amount: int
    currency: str = "EUR"


@tool
def price(item: str) -> Price:
    """Look a price up."""
    ran("price")
    return Price(amount=len(item))


async def run(agent: Agent, messages: Any, streamed: bool, **options: Any) -> Any:
    if not streamed:
        return await agent.run(messages, **options)
    stream = agent.run(messages, stream=True, **options)
    async for _ in stream:
        pass
    return await stream.get_final_response()


async def approvals(streamed: bool) -> str:
    agent = Agent(client(), "You help customers.", name="support", tools=[refund, tool(get_time)])
    session = agent.create_session()
    first = await run(agent, "Refund orders 1 and 2.", streamed, session=session)
    waiting = [request.function_call.name for request in first.user_input_requests]
    answers: list[Content] = [
        request.to_function_approval_response(approved=number == 0) for number, request in enumerate(first.user_input_requests)
    ]
    last = await run(agent, [Message("user", answers)], streamed, session=session)
    return f"{waiting} {last.text}"


async def as_tool(streamed: bool) -> str:
    buyer = Agent(client(), "You know prices.", name="buyer", tools=[price])
    agent = Agent(client(), "You help.", name="helper", tools=[buyer.as_tool(name="ask_buyer", propagate_session=True)])
    answer = await run(agent, "What is an umbrella?", streamed, options={"response_format": Price})
    return f"{answer.value!r}"


async def workflow(streamed: bool) -> str:
    writer = Agent(client(), "You write.", name="writer")
    editor = Agent(client(), "You edit.", name="editor")
    first, second = AgentExecutor(writer), AgentExecutor(editor)
    flow = WorkflowBuilder(name="publish", start_executor=first).add_edge(first, second).build()
    if streamed:
        stream = flow.run("Umbrellas", stream=True)
        async for _ in stream:
            pass
        events = await stream.get_final_response()
    else:
        events = await flow.run("Umbrellas")
    return str([output.text for output in events.get_outputs()])


CASES = {"approvals": approvals, "as_tool": as_tool, "workflow": workflow}
for mode in sys.argv[1:]:
    case, _, way = mode.partition("-")
    print(json.dumps({"mode": mode, "output": asyncio.run(CASES[case](way == "stream"))}), flush=True)
