"""A call of a tool that there is none of is ``malformed``, and the model is told so; sync, async and beside a call that is fine."""

import asyncio
import json

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from toolbox import get_weather

agent = create_agent(ChatOpenAI(model="gpt-4o-mini", stream_usage=True), [get_weather], name="helper")


def show(mode, state):
    results = [message.content for message in state["messages"] if message.type == "tool"]
    print(json.dumps({"mode": mode, "output": [results, state["messages"][-1].content]}), flush=True)


show("sync", agent.invoke({"messages": [("user", "Sell it.")]}))
show("async", asyncio.run(agent.ainvoke({"messages": [("user", "Sell it.")]})))
