"""Google ADK: a run with a limit of time, one of whose two tools never ends."""

import asyncio
import json
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from toolbox import get_weather, wait_for_ever

os.environ.setdefault("GOOGLE_API_KEY", "a-key")


async def main() -> None:
    runner = InMemoryRunner(
        agent=LlmAgent(name="weather", model="gemini-2.5-flash", tools=[get_weather, wait_for_ever]), app_name="weather"
    )
    session = await runner.session_service.create_session(app_name="weather", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text="What is the weather?")])
    try:
        async with asyncio.timeout(4):
            said = str([event async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=message)])
    except TimeoutError:
        said = "too late"
    print(json.dumps({"mode": "limited", "output": said}), flush=True)


asyncio.run(main())
