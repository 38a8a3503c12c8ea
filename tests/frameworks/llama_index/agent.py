"""LlamaIndex: an agent with four plain tools and another agent behind a fifth."""

import asyncio
import json
import sys

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.llms.openai import OpenAI
from toolbox import get_alerts, get_time, get_weather, roll


def made():
    llm = OpenAI(model="gpt-4o-mini", max_retries=0)
    specialist = FunctionAgent(name="specialist", system_prompt="You know about umbrellas.", llm=llm, streaming=False)

    async def ask_specialist(question: str) -> str:
        """Ask the specialist."""
        return str(await specialist.run(question))

    tools = [get_weather, get_time, roll, get_alerts, ask_specialist]
    return FunctionAgent(name="weather", system_prompt="You are a weather assistant.", llm=llm, tools=tools)


async def asynchronous(asked):
    agent = made()
    agent.streaming = False
    return str(await agent.run(user_msg=asked))


async def stream(asked):
    handler = made().run(user_msg=asked)
    said = [
        event.delta async for event in handler.stream_events() if isinstance(event, AgentStream) and event.current_agent_name == "weather"
    ]
    await handler
    return "".join(said)


with asyncio.Runner() as runner:
    for mode in sys.argv[1:]:
        output = runner.run({"async": asynchronous, "stream": stream}[mode]("What is the weather?"))
        print(json.dumps({"mode": mode, "output": output}), flush=True)
