"""An agent of LangChain on LangGraph: a tool that a person approves, in a thread that waits for it.

pip install langchain langchain-openai
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import os

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


def find_order(customer: str) -> str:
    """Find the last order of a customer."""
    return "order 1042, 30 euros"


def refund(order: int, euros: int) -> str:
    """Refund an order."""
    return f"{euros} euros of order {order} are on their way back"


agent = create_agent(
    ChatOpenAI(model=os.environ.get("MODEL", "gpt-4o-mini"), stream_usage=True),
    [find_order, refund],
    name="billing",
    system_prompt="Look the order up and refund it.",
    middleware=[HumanInTheLoopMiddleware({"refund": True})],
    checkpointer=InMemorySaver(),
)
config = {"configurable": {"thread_id": "ana"}}
state = agent.invoke({"messages": [("user", "I am Ana. The lamp arrived broken, I want my money back.")]}, config)
while waiting := state.get("__interrupt__"):
    asked = waiting[0].value["action_requests"]
    for action in asked:
        print(f"approved: {action['name']}({action['args']})")
    state = agent.invoke(Command(resume={"decisions": [{"type": "approve"} for _ in asked]}), config)
print(state["messages"][-1].content)
