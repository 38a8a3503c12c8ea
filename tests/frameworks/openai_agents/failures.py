"""What goes wrong: tools that are too slow, that raise, whose sibling is cancelled; a model that fails once; a stream left early."""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, Runner, function_tool
from models import model
from toolbox import get_weather, ran


@function_tool(timeout=0.05)
async def slow() -> str:
    """Take long."""
    ran("slow")
    await asyncio.sleep(5)
    return "done"


@function_tool(timeout=0.05, timeout_behavior="raise_exception")
async def too_slow() -> str:
    """Take too long."""
    ran("too_slow")
    await asyncio.sleep(5)
    return "done"


@function_tool(failure_error_function=lambda _context, error: f"sorry: {error}")
def sorry(number: int) -> str:
    """Fail unless it is 2."""
    ran("sorry")
    if number != 2:
        raise ValueError(f"{number} is not 2")
    return "fine"


@function_tool(failure_error_function=None)
async def fatal() -> str:
    """Fail for good."""
    ran("fatal")
    await asyncio.sleep(0.05)
    raise RuntimeError("no more")


@function_tool
async def sibling() -> str:
    """Wait."""
    ran("sibling")
    await asyncio.sleep(5)
    return "waited"


def agent() -> Agent:
    tools = [slow, too_slow, sorry, fatal, sibling, function_tool(get_weather)]
    return Agent(name="unlucky", instructions="You try.", model=model(), tools=tools)


async def run(question: str, **options: Any) -> str:
    try:
        return str((await Runner.run(agent(), question, **options)).final_output)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def left() -> str:
    result = Runner.run_streamed(agent(), "What is the weather in Paris?")
    seen = []
    async for event in result.stream_events():
        seen.append(event.type)
        if event.type == "run_item_stream_event" and event.item.type == "tool_call_output_item":
            result.cancel()
            break
    await asyncio.gather(*[task for task in asyncio.all_tasks() if task is not asyncio.current_task()], return_exceptions=True)
    return f"{seen[-1]} {result.is_complete}"


async def main(mode: str) -> str:
    if mode == "left":
        return await left()
    return await run(mode, max_turns=1 if mode == "turns" else 10)


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode))}), flush=True)
