"""An agent of the Microsoft Agent Framework with a tool, another agent as a tool, and an approval.

pip install agent-framework-core agent-framework-openai
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from agent_framework import Agent, Message, tool
from agent_framework.openai import OpenAIChatClient

client = OpenAIChatClient(model=os.environ.get("MODEL", "gpt-4o-mini"))


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


@tool(approval_mode="always_require")
def book(city: str, nights: int) -> str:
    """Book a room."""
    return f"{nights} nights in {city} are booked"


forecaster = Agent(client, "You say in one sentence what the weather is.", name="forecaster", tools=[get_weather])
planner = Agent(client, "You plan trips.", name="planner", tools=[forecaster.as_tool(name="ask_forecaster"), book])


async def main() -> None:
    session = planner.create_session()
    response = await planner.run("Book two nights in Oslo or Paris, wherever it is warmer.", session=session)
    while response.user_input_requests:
        answers = []
        for request in response.user_input_requests:
            print(f"approved: {request.function_call.name}({request.function_call.arguments})")
            answers.append(request.to_function_approval_response(approved=True))
        response = await planner.run([Message("user", answers)], session=session)
    print(response.text)


asyncio.run(main())
