"""A team of Agno whose member looks things up, and an agent that asks before it books.

Run it with ``pip install agno openai``, ``OPENAI_API_KEY`` set, and ``spanreplay record -- python agent.py``.
"""

import os

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team
from agno.tools import tool

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


@tool(requires_confirmation=True)
def book(city: str, nights: int) -> str:
    """Book a room."""
    return f"{nights} nights in {city} are booked"


meteorologist = Agent(name="meteorologist", role="Knows the weather.", model=OpenAIChat(id=MODEL), tools=[get_weather], telemetry=False)
desk = Team(name="desk", members=[meteorologist], model=OpenAIChat(id=MODEL), telemetry=False)
clerk = Agent(name="clerk", instructions="You book rooms.", model=OpenAIChat(id=MODEL), tools=[book], telemetry=False)

print(desk.run("Is Oslo or Paris warmer?").content)
answer = clerk.run("Two nights in Paris.")
while answer.is_paused:
    for requirement in answer.active_requirements:
        requirement.confirm()
    answer = clerk.continue_run(run_response=answer, requirements=answer.requirements)
print(answer.content)
