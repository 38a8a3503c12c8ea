"""A deep agent: it plans, has a sub-agent look something up, and writes a file.

pip install deepagents langchain-openai
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import os

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


agent = create_deep_agent(
    ChatOpenAI(model=os.environ.get("MODEL", "gpt-4o-mini"), stream_usage=True),
    system_prompt="Have the meteorologist look the weather up, then write it to /report.md.",
    subagents=[
        {"name": "meteorologist", "description": "Knows the weather.", "system_prompt": "You look it up.", "tools": [get_weather]},
    ],
    name="reporter",
)
state = agent.invoke({"messages": [("user", "How is the weather in Paris?")]})
for path, file in state.get("files", {}).items():
    print(path, file["content"])
print(state["messages"][-1].content)
