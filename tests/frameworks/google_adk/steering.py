"""Google ADK: calls without an id, a transfer, agents in sequence and at once, state, a typed output, a long job, a confirmation."""

import asyncio
import json
import os
import sys

from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel
from toolbox import get_time, get_weather, ran

os.environ.setdefault("GOOGLE_API_KEY", "a-key")
MODEL = "gemini-2.5-flash"


class Trip(BaseModel):
    city: str
    minutes: int


def remember(word: str, tool_context: ToolContext) -> str:
    """Remember a word."""
    ran("remember")
    tool_context.state["word"] = word
    return "kept"


def deploy(target: str) -> dict[str, str]:
    """Deploy; another system does it."""
    ran("deploy")
    return {"ticket": f"{target}-7"}


def delete(path: str) -> str:
    """Delete a file."""
    ran("delete")
    return f"{path} is gone"


def agent(name: str, **options: object) -> LlmAgent:
    return LlmAgent(name=name, model=MODEL, description=f"The {name}.", **options)


def text_of(events: list) -> str:
    return " | ".join(
        f"{event.author}: {part.text}" for event in events for part in (event.content.parts if event.content else ()) or () if part.text
    )


class Talk:
    def __init__(self, root: object) -> None:
        self.runner = InMemoryRunner(agent=root, app_name="app")
        self.session = None

    async def say(self, *parts: types.Part) -> list:
        service = self.runner.session_service
        if self.session is None:
            self.session = await service.create_session(app_name="app", user_id="ann")
        message = types.Content(role="user", parts=list(parts))
        events = self.runner.run_async(user_id="ann", session_id=self.session.id, new_message=message)
        seen = [event async for event in events]
        self.session = await service.get_session(app_name="app", user_id="ann", session_id=self.session.id)
        return seen


HELLO = types.Part(text="Please.")


async def transfer() -> object:
    return text_of(await Talk(agent("front", sub_agents=[agent("back", tools=[get_weather])])).say(HELLO))


async def sequence() -> object:
    return text_of(await Talk(SequentialAgent(name="both", sub_agents=[agent("draft", output_key="line"), agent("check")])).say(HELLO))


async def parallel() -> object:
    events = await Talk(ParallelAgent(name="team", sub_agents=[agent("one", tools=[get_time])])).say(HELLO)
    return text_of(events)


async def state() -> object:
    talk = Talk(agent("keeper", tools=[remember]))
    return [text_of(await talk.say(HELLO)), talk.session.state["word"]]


async def typed() -> object:
    talk = Talk(agent("planner", output_schema=Trip, output_key="trip"))
    await talk.say(HELLO)
    return talk.session.state["trip"]


async def long() -> object:
    talk = Talk(agent("deployer", tools=[LongRunningFunctionTool(deploy)]))
    first = await talk.say(HELLO)
    call = next(call for event in first for call in event.get_function_calls())
    done = types.FunctionResponse(id=call.id, name="deploy", response={"ticket": "web-7", "status": "done"})
    second = await talk.say(types.Part(function_response=done))
    return [text_of(first), text_of(second)]


async def confirm() -> object:
    said = []
    for yes in (True, False):
        talk = Talk(agent("janitor", tools=[FunctionTool(delete, require_confirmation=True)]))
        first = await talk.say(HELLO)
        asked = next(call for event in first for call in event.get_function_calls() if call.name == "adk_request_confirmation")
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": yes})
        said.append(text_of(await talk.say(types.Part(function_response=answer))))
    return said


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await globals()[mode]()}), flush=True)


asyncio.run(main())
