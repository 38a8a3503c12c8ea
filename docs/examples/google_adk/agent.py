"""An agent of Google ADK that goes over to another one, whose tool changes the state of the session.

pip install google-adk
export GOOGLE_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.tool_context import ToolContext
from google.genai import types

MODEL = os.environ.get("MODEL", "gemini-2.5-flash")


def get_weather(city: str, tool_context: ToolContext) -> str:
    """Get the weather of a city."""
    tool_context.state["last_city"] = city
    return f"{city}: 21 °C and sunny"


forecaster = LlmAgent(name="forecaster", model=MODEL, description="Knows the weather.", tools=[get_weather])
planner = LlmAgent(name="planner", model=MODEL, instruction="Plan trips; leave the weather to the forecaster.", sub_agents=[forecaster])


async def main() -> None:
    runner = InMemoryRunner(agent=planner, app_name="trips")
    session = await runner.session_service.create_session(app_name="trips", user_id="ana")
    question = types.Content(role="user", parts=[types.Part(text="How is the weather in Oslo?")])
    async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=question):
        if event.is_final_response() and event.content:
            print(event.author, "".join(part.text or "" for part in event.content.parts))


asyncio.run(main())
