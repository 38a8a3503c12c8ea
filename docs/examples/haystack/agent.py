"""An agent of Haystack that looks things up and asks a person before it books, in a pipeline that renders its question.

Run it with ``pip install haystack-ai``, ``OPENAI_API_KEY`` set, and ``spanreplay record -- python agent.py``.
"""

import os
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.hooks.human_in_the_loop import AlwaysAskPolicy, BlockingConfirmationStrategy, ConfirmationHook, SimpleConsoleUI
from haystack.tools import tool

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


@tool
def get_weather(city: Annotated[str, "Its name"]) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


@tool
def book(city: Annotated[str, "Its name"], nights: Annotated[int, "How many"]) -> str:
    """Book a room."""
    return f"{nights} nights in {city} are booked"


asking = BlockingConfirmationStrategy(confirmation_policy=AlwaysAskPolicy(), confirmation_ui=SimpleConsoleUI())
desk = Agent(
    chat_generator=OpenAIChatGenerator(model=MODEL),
    system_prompt="You help travellers.",
    tools=[get_weather, book],
    hooks={"before_tool": [ConfirmationHook(confirmation_strategies={"book": asking})]},
)
answer = desk.run([ChatMessage.from_user("If Paris is sunny, book two nights there.")])
print(answer["last_message"].text)
