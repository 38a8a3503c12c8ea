"""What a tool changes in the state of the session is seen by what comes after it, also in a replay."""

import asyncio
import json

from agent_framework import Agent, FunctionInvocationContext, tool
from models import client
from toolbox import ran


@tool
def note(text: str, context: FunctionInvocationContext) -> str:
    """Keep a note."""
    ran("note")
    notes = context.session.state.setdefault("notes", [])
    notes.append(text)
    return f"{len(notes)} notes"


async def main() -> None:
    agent = Agent(client("chat"), "You keep notes.", name="clerk", tools=[note])
    session = agent.create_session()
    for text in ("tea", "milk"):
        said = await agent.run(f"Note {text}.", session=session)
        print(json.dumps({"mode": text, "output": [said.text, session.state["notes"]]}), flush=True)


asyncio.run(main())
