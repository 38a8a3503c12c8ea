"""A workflow: two agents one after the other, two beside each other, streamed and asynchronous; one that a person lets go on."""

import asyncio
import json
import sys

from agent import model
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.workflow import Step, Workflow
from agno.workflow.parallel import Parallel
from agno.workflow.types import HumanReview
from toolbox import get_weather


def agent(name: str) -> Agent:
    return Agent(name=name, model=model("chat"), tools=[get_weather], telemetry=False)


def plan() -> Workflow:
    return Workflow(name="plan", steps=[agent("researcher"), agent("writer")], telemetry=False)


def sync() -> str:
    return str(plan().run("Rome.").content)


def stream() -> str:
    return str([event.content for event in plan().run("Rome.", stream=True) if event.event == "WorkflowCompleted"])


def asynchronous() -> str:
    return str(asyncio.run(plan().arun("Rome.")).content)


def beside() -> str:
    whole = Workflow(name="both", steps=[Parallel(agent("left"), agent("right"), name="sides")], telemetry=False)
    return str(whole.run("Rome.").status)


def confirmed() -> str:
    steps = [Step(name="send", agent=agent("sender"), human_review=HumanReview(requires_confirmation=True))]
    whole = Workflow(name="letters", steps=steps, db=InMemoryDb(), telemetry=False)
    paused = whole.run("Send it.")
    for waiting in paused.active_step_requirements:
        waiting.confirm()
    return f"{paused.is_paused} {whole.continue_run(paused).content}"


WAYS = {"sync": sync, "stream": stream, "async": asynchronous, "beside": beside, "confirmed": confirmed}
for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": WAYS[mode]()}), flush=True)
