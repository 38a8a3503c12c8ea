"""Pydantic AI: models that are functions of this process."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from toolbox import get_weather, ran


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    ran("model")
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("get_weather", {"city": "Paris"}, tool_call_id="call_1")])
    return ModelResponse(parts=[TextPart(f"It is {messages[-1].parts[0].content}.")])


async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    ran("model")
    if len(messages) == 1:
        yield {0: DeltaToolCall("get_weather", '{"city": ', tool_call_id="call_2")}
        yield {0: DeltaToolCall(None, '"Oslo"}')}
    else:
        for word in ("Sunny ", "there."):
            yield word


agent = Agent(FunctionModel(answer, stream_function=stream), name="weather", instructions="Be short.", tools=[get_weather])


async def plain() -> object:
    return (await agent.run("How is it?")).output


async def streamed() -> object:
    async with agent.run_stream("How is it?") as run:
        return [text async for text in run.stream_text(delta=True, debounce_by=None)]


async def made_up() -> object:
    return (await agent.run("How is it?", model=TestModel())).output


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await globals()[mode]()}), flush=True)


asyncio.run(main())
