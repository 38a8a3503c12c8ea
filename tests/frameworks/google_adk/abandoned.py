"""A stream that is left after its first words."""

import asyncio
import json
import os

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types
from toolbox import get_weather

os.environ.setdefault("GOOGLE_API_KEY", "a-key")


async def main() -> None:
    runner = InMemoryRunner(agent=LlmAgent(name="weather", model="gemini-2.5-flash", tools=[get_weather]), app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text="What is the weather?")])
    options = RunConfig(streaming_mode=StreamingMode.SSE)
    stream = runner.run_async(user_id="ann", session_id=session.id, new_message=message, run_config=options)
    said = ""
    async for event in stream:
        said = "".join(part.text or "" for part in event.content.parts)
        if said:
            break
    await stream.aclose()
    print(json.dumps({"mode": "abandoned", "output": said}), flush=True)


asyncio.run(main())
