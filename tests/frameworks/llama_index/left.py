"""LlamaIndex: a run with a limit of time and one that its handler cancels, where one of two tools never ends."""

import asyncio
import json
import sys

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.llms.openai import OpenAI
from toolbox import get_weather, wait_for_ever


def agent(**options: object) -> FunctionAgent:
    llm = OpenAI(model="gpt-4o-mini", max_retries=0)
    return FunctionAgent(name="weather", llm=llm, tools=[get_weather, wait_for_ever], streaming=False, **options)


async def limited() -> str:
    try:
        return str(await agent(timeout=4).run(user_msg="What is the weather?"))
    except Exception as error:
        return type(error).__name__


async def cancelled() -> str:
    handler = agent().run(user_msg="What is the weather?")
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            break
    await handler.cancel_run()
    try:
        await handler
    except BaseException as error:
        return f"{event.tool_output.content}; {type(error).__name__}"
    return "not cancelled"


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await {"limited": limited, "cancelled": cancelled}[mode]()}), flush=True)


asyncio.run(main())
