"""``HumanInTheLoopMiddleware``: a call is approved, one is edited, one is rejected."""

import json

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from toolbox import get_time, get_weather, ran


def pay(amount: int) -> str:
    """Pay somebody.

    Args:
        amount: in euros.
    """
    ran("pay")
    return f"paid {amount}"


agent = create_agent(
    ChatOpenAI(model="gpt-4o-mini", stream_usage=True),
    [pay, get_weather, get_time],
    name="clerk",
    middleware=[HumanInTheLoopMiddleware({"pay": True, "get_weather": True})],
    checkpointer=InMemorySaver(),
)
config = {"configurable": {"thread_id": "1"}}
DECISIONS = [
    {"type": "approve"},
    {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 2}}},
    {"type": "reject", "message": "We know the weather."},
]
state = agent.invoke({"messages": [("user", "Pay.")]}, config)
asked = [action["name"] for action in state["__interrupt__"][0].value["action_requests"]]
state = agent.invoke(Command(resume={"decisions": DECISIONS}), config)
results = [message.content for message in state["messages"] if message.type == "tool"]
print(json.dumps({"mode": "approval", "output": [asked, results, state["messages"][-1].content]}))
