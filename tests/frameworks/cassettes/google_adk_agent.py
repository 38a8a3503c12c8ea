"""Google ADK: the agent of any of its recordings."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types
from playing import SCENE, function, say, say_error


def agent(turn: dict[str, Any]) -> LlmAgent:
    phase = turn["phases"][0]
    return LlmAgent(name="agent", model=turn["model"], instruction=phase["instructions"], tools=[function(told) for told in phase["tools"]])


async def main() -> None:
    runner, session = None, None
    config = RunConfig(streaming_mode=StreamingMode.SSE if SCENE["streamed"] else StreamingMode.NONE)
    for turn in SCENE["turns"]:
        if runner is None or session is None or not turn["goes_on"]:
            runner = InMemoryRunner(agent=agent(turn), app_name="app")
            session = await runner.session_service.create_session(app_name="app", user_id="ann")
        message = types.Content(role="user", parts=[types.Part(text=turn["question"])])
        try:
            asked = runner.run_async(user_id="ann", session_id=session.id, new_message=message, run_config=config)
            events = [event async for event in asked]
        except Exception as error:
            say_error(error)
            return
        final = next(event for event in reversed(events) if event.is_final_response())
        say("".join(part.text or "" for part in final.content.parts))


asyncio.run(main())
