"""A store that tools write to and read, and the run's context that one changes: both are so after the calls of a replay too."""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from toolbox import ran


@dataclass
class Customer:
    name: str
    told: list[str] = field(default_factory=list)


@tool
async def remember(fact: str, runtime: ToolRuntime[Customer, Any]) -> str:
    """Remember a fact."""
    ran("remember")
    runtime.context.told.append(fact)
    await runtime.store.aput(("customers", runtime.context.name), "fact", {"text": fact})
    return "remembered"


@tool
def recall(runtime: ToolRuntime[Customer, Any]) -> str:
    """Recall the fact."""
    ran("recall")
    return str(runtime.store.get(("customers", runtime.context.name), "fact").value["text"])


async def main() -> str:
    store, ana = InMemoryStore(), Customer("ana")
    agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), [remember, recall], store=store, context_schema=Customer, name="clerk")
    asked = {"messages": [("user", "I like tea.")]}
    state = await agent.ainvoke(asked, context=ana)
    found = await store.asearch(("customers",), filter={"text": "tea"})
    missing = store.get(("customers", "ben"), "fact")
    return f"{state['messages'][-1].content} {ana.told} {[item.key for item in found]} {store.list_namespaces()} {missing}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main())}), flush=True)
