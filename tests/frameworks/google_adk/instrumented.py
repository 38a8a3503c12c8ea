"""Google ADK, whose own spans go to a provider: still one step for each call."""

import asyncio
import json
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from toolbox import get_time, get_weather

os.environ.setdefault("GOOGLE_API_KEY", "a-key")
trace.set_tracer_provider(TracerProvider())
specialist = LlmAgent(name="specialist", model="gemini-2.5-flash", tools=[get_time])
agent = LlmAgent(name="weather", model="gemini-2.5-flash", tools=[get_weather, AgentTool(specialist)])


async def main() -> None:
    runner = InMemoryRunner(agent=agent, app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text="How is it?")])
    events = [event async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=message)]
    print(json.dumps({"mode": "async", "output": events[-1].content.parts[0].text}))


asyncio.run(main())
