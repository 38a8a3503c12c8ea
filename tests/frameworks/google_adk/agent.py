"""Google ADK: an agent with four plain tools and another agent as a fifth."""

import asyncio
import json
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import BaseModel
from toolbox import get_alerts, get_time, get_weather, roll

os.environ.setdefault("GOOGLE_API_KEY", "a-key")


class Question(BaseModel):
    question: str


def alerts(city: str) -> dict[str, str]:
    """Get the weather alerts of a city."""
    try:
        return {"alerts": get_alerts(city)}
    except RuntimeError as error:
        return {"error": str(error)}


alerts.__name__ = "get_alerts"


def agent() -> LlmAgent:
    specialist = LlmAgent(name="specialist", model="gemini-2.5-flash", instruction="You know about umbrellas.", input_schema=Question)
    ask = AgentTool(specialist)
    ask.name = "ask_specialist"
    return LlmAgent(
        name="weather",
        model="gemini-2.5-flash",
        instruction="You are a weather assistant.",
        tools=[get_weather, get_time, roll, alerts, ask],
    )


async def run(mode: str) -> str:
    runner = InMemoryRunner(agent=agent(), app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text="What is the weather?")])
    config = RunConfig(streaming_mode=StreamingMode.SSE if mode == "stream" else StreamingMode.NONE)
    asked = {"user_id": "ann", "session_id": session.id, "new_message": message, "run_config": config}
    if mode == "sync":
        events = await asyncio.to_thread(lambda: list(runner.run(**asked)))
    else:
        events = [event async for event in runner.run_async(**asked)]
    final = next(event for event in reversed(events) if event.is_final_response())
    return "".join(part.text or "" for part in final.content.parts)


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await run(mode)}), flush=True)


asyncio.run(main())
