"""An agent of Strands with another agent as a tool, and a tool that asks a person.

pip install "strands-agents[openai]"
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import os

from strands import Agent, ToolContext, tool
from strands.models.openai import OpenAIModel

model = OpenAIModel(model_id=os.environ.get("MODEL", "gpt-4o-mini"))


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


@tool(context=True)
def book(tool_context: ToolContext, city: str, nights: int) -> str:
    """Book a room."""
    said = tool_context.interrupt("book", reason=f"{nights} nights in {city}?")
    return f"{nights} nights in {city} are booked" if said == "yes" else "not booked"


forecaster = Agent(model=model, name="forecaster", system_prompt="You say what the weather is.", tools=[get_weather], callback_handler=None)
ask = forecaster.as_tool(name="ask_forecaster", description="Ask what the weather is.")
planner = Agent(model=model, name="planner", system_prompt="You plan trips.", tools=[ask, book], callback_handler=None)

result = planner("Book two nights in Oslo or Paris, wherever it is warmer.")
while result.interrupts:
    for interrupt in result.interrupts:
        print(f"approved: {interrupt.reason}")
    result = planner([{"interruptResponse": {"interruptId": i.id, "response": "yes"}} for i in result.interrupts])
print(result)
