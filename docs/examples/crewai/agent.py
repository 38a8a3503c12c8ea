"""A crew of two: one looks something up with a tool, the other writes it down.

pip install crewai
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import os

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


@tool("get_weather")
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


llm = LLM(model=f"openai/{os.environ.get('MODEL', 'gpt-4o-mini')}")
scout = Agent(role="scout", goal="Find out how the weather is", backstory="You look things up.", llm=llm, tools=[get_weather])
writer = Agent(role="writer", goal="Write what travellers like to read", backstory="You are brief.", llm=llm)
find = Task(description="How is the weather in {city}?", expected_output="The weather.", agent=scout)
tell = Task(description="Write one sentence about it.", expected_output="One sentence.", agent=writer)
print(Crew(agents=[scout, writer], tasks=[find, tell], name="travellers").kickoff(inputs={"city": "Paris"}))
