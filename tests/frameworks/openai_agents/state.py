"""What tools change in the context of the run, a dataclass and a dictionary, is seen by what comes after them, also in a replay."""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, RunContextWrapper, Runner, function_tool
from models import model
from toolbox import ran


@dataclass
class Shop:
    customer: str
    found: list[str] = field(default_factory=list)
    total: int = 0


@function_tool
async def find(context: RunContextWrapper[Shop], article: str) -> str:
    """Find an article."""
    ran("find")
    context.context.found.append(article)
    context.context.total += 10
    return f"{article}: 10 euros"


@function_tool
async def note(context: RunContextWrapper[dict[str, Any]], text: str) -> str:
    """Keep a note."""
    ran("note")
    context.context["notes"] = [*context.context.get("notes", ()), text]
    return "noted"


def told(context: RunContextWrapper[Any], _agent: Any) -> str:
    return f"You see {context.context}."


async def main(mode: str) -> str:
    given: Any = Shop("ana") if mode == "object" else {}
    agent = Agent(name="clerk", instructions=told, tools=[find, note], model=model())
    result = await Runner.run(agent, "Go on.", context=given)
    return f"{result.final_output} {given}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode))}), flush=True)
