"""A team that hands over, a tool that writes to the state, one that waits for a human; a workflow of one's own, a tool called bare."""

import asyncio
import json

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai import OpenAI
from pydantic import BaseModel
from toolbox import ran


class Place(BaseModel):
    name: str
    people: int


def measure(name: str) -> Place:
    """Measure a place."""
    ran("measure")
    return Place(name=name, people=7)


async def note(ctx: Context, text: str) -> str:
    """Note a text."""
    ran("note")
    async with ctx.store.edit_state() as state:
        state["notes"] = [*state.get("notes", []), text]
    return "noted"


async def ask(ctx: Context, question: str) -> str:
    """Ask a human."""
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix=question), waiter_id=question)
    ran("ask")
    return f"the human says {answer.response}"


class Measuring(Workflow):
    @step
    async def only(self, start: StartEvent) -> StopEvent:
        return StopEvent(result=FunctionTool.from_defaults(measure)(name=start.place).raw_output.people)


async def main():
    llm = OpenAI(model="gpt-4o-mini", max_retries=0)
    scout = FunctionAgent(name="scout", description="Measures.", llm=llm, tools=[measure, note], can_handoff_to=["writer"], streaming=False)
    writer = FunctionAgent(name="writer", description="Writes.", llm=llm, tools=[ask], streaming=False)
    team = AgentWorkflow(agents=[scout, writer], root_agent="scout", initial_state={"year": 2026})
    ctx = Context(team)
    handler = team.run(user_msg="Report on Rome.", ctx=ctx)
    asked = []
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            asked.append(event.prefix)
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    said = await handler
    notes = await ctx.store.get("notes")
    print(json.dumps({"mode": "team", "output": [asked, notes, said.current_agent_name, str(said)]}), flush=True)
    print(json.dumps({"mode": "workflow", "output": await Measuring().run(place="Oslo")}), flush=True)


asyncio.run(main())
