"""deepagents: a plan, files that tools write and read, and a sub-agent behind the ``task`` tool that has a tool of its own."""

import json

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI
from toolbox import get_weather

agent = create_deep_agent(
    ChatOpenAI(model="gpt-4o-mini", stream_usage=True),
    system_prompt="You write reports.",
    subagents=[{"name": "meteorologist", "description": "Knows the weather.", "system_prompt": "You look it up.", "tools": [get_weather]}],
    name="reporter",
)
state = agent.invoke({"messages": [("user", "Write a report.")]})
files = {path: data["content"] for path, data in state["files"].items()}
results = sorted(message.content for message in state["messages"] if message.type == "tool")
print(json.dumps({"mode": "deep", "output": [files, results, state["messages"][-1].content]}))
