"""A run with a limit of time whose tool never ends, and a stream whose reader stops it."""

import asyncio
import json
import sys

from agent import model, weather
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from toolbox import get_weather, wait_for_ever

ASKED = [ChatMessage.from_user("What is the weather?")]
NONE = {"type": "object", "properties": {}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


def agent():
    tools = [
        Tool(name="get_weather", description="Weather.", parameters=CITY, function=get_weather),
        Tool(name="wait_for_ever", description="Waits.", parameters=NONE, async_function=wait_for_ever),
    ]
    return weather(chat_generator=model("chat"), system_prompt="You are a weather assistant.", tools=tools)


async def limited():
    try:
        async with asyncio.timeout(4):
            return str((await agent().run_async(ASKED))["last_message"].text)
    except TimeoutError:
        return "too late"


class Enough(Exception):
    """The reader has read enough."""


async def stopped():
    parts = []

    async def seen(chunk):
        parts.append(chunk.content)
        if "".join(parts):
            raise Enough

    try:
        await agent().run_async(ASKED, streaming_callback=seen)
    except BaseException as error:
        return f"{''.join(parts)} {type(error).__name__}"
    return "it was not stopped"


for mode in sys.argv[1:]:
    output = asyncio.run({"limited": limited, "stopped": stopped}[mode]())
    print(json.dumps({"mode": mode, "output": output}), flush=True)
