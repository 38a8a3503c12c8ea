"""What tools give but text: an artifact, commands that change the state and jump, objects. Some get the state, some are called bare."""

import asyncio
import json
from operator import add
from typing import Annotated

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, Send
from pydantic import BaseModel
from toolbox import ran


class Place(BaseModel):
    name: str
    people: int


class State(MessagesState):
    seen: Annotated[list[str], add]


@tool(response_format="content_and_artifact")
def find(name: str) -> tuple[str, Place]:
    """Find a place."""
    ran("find")
    return f"found {name}", Place(name=name, people=7)


@tool
def note(text: str, state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Note a text in the state."""
    ran("note")
    told = f"{len(state['messages'])} messages before"
    return Command(update={"seen": [text], "messages": [ToolMessage(told, tool_call_id=tool_call_id)]})


@tool
def jump(to: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Let another node go on."""
    ran("jump")
    return Command(goto=Send("other", {"seen": [to]}), update={"messages": [ToolMessage("gone", tool_call_id=tool_call_id)]})


@tool
async def measure(name: str) -> Place:
    """Measure a place, for whoever asks."""
    ran("measure")
    return Place(name=name, people=8)


CALLS = [("find", {"name": "Rome"}), ("note", {"text": "noted"}), ("jump", {"to": "there"}), ("measure", {"name": "Bonn"})]


def ask(_: State) -> dict:
    return {"messages": [AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"call_{n}"} for n, a in CALLS])]}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("tools", ToolNode([find, note, jump, measure]))
builder.add_node("other", lambda state: {"seen": [f"other got {state['seen']}"]})
builder.add_edge(START, "ask")
builder.add_edge("ask", "tools")
builder.add_edge("tools", END)


async def main() -> None:
    state = await builder.compile(name="places").ainvoke({"messages": [("user", "Go.")]})
    results = [
        [m.name, m.content, None if m.artifact is None else repr(m.artifact), m.tool_call_id] for m in state["messages"] if m.type == "tool"
    ]
    bare = await measure.ainvoke({"name": "Oslo"})
    print(json.dumps({"mode": "graph", "output": [sorted(results, key=str), state["seen"], repr(bare), find.invoke({"name": "Kiel"})]}))


asyncio.run(main())
