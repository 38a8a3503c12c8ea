"""A stream that is left after its first words, and a run of which nobody reads any more."""

import asyncio
import json
import sys

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.llms.openai import OpenAI
from toolbox import get_weather


async def abandoned(mode: str) -> str:
    agent = FunctionAgent(name="weather", llm=OpenAI(model="gpt-4o-mini", max_retries=0), tools=[get_weather], streaming=True)
    handler = agent.run(user_msg="What is the weather?")
    async for event in handler.stream_events():
        if isinstance(event, AgentStream) and event.delta:
            break
    if mode == "left":
        return event.delta
    await handler.cancel_run()
    try:
        await handler
    except BaseException as error:
        return f"{event.delta}; {type(error).__name__}"
    return "not cancelled"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(abandoned(mode))}), flush=True)
