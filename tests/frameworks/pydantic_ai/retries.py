"""Pydantic AI: a tool that asks for another try, wrong arguments, a time-out, a failure that ends the run, a sibling that is cancelled."""

import asyncio
import json
import sys

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.usage import RunUsage
from toolbox import get_weather, ran

agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="clerk", tools=[get_weather], retries=1)


@agent.tool_plain
def book(seats: int) -> str:
    """Book seats."""
    ran("book")
    if seats > 4:
        raise ModelRetry("at most 4 seats")
    return f"{seats} seats"


@agent.tool_plain
async def slow(seconds: float) -> str:
    """Takes its time, and is given a moment of it."""
    ran("slow")
    await asyncio.wait_for(asyncio.sleep(seconds), 0.01)
    return "slept"


@agent.tool_plain
async def waits() -> str:
    """Waits until it is cancelled."""
    ran("waits")
    await asyncio.Event().wait()
    return "never"


@agent.tool_plain
async def breaks() -> str:
    """Breaks, after the others have begun."""
    ran("breaks")
    await asyncio.sleep(0.05)
    raise ValueError("broken")


async def run(mode: str) -> object:
    try:
        result = await agent.run(mode)
    except (TimeoutError, ValueError, UnexpectedModelBehavior) as error:
        return f"{type(error).__name__}: {error}"
    usage = result.usage
    counted: RunUsage = usage if isinstance(usage, RunUsage) else usage()
    return [result.output, counted.requests, counted.tool_calls]


async def main() -> None:
    for each in sys.argv[1:]:
        print(json.dumps({"mode": each, "output": await run(each)}), flush=True)


asyncio.run(main())
