"""smolagents: a tool-calling agent with four plain tools and another agent behind a fifth.

The model ends with a text: an agent asks for one when it has made all its steps, three here; the specialist only speaks.
"""

import json
import os
import sys
from collections.abc import Iterator

from smolagents import ActionStep, OpenAIModel, ToolCallingAgent, tool
from smolagents.agents import ActionOutput, FinalAnswerStep
from toolbox import get_alerts, get_time, get_weather, roll

model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "a-key"))


class Speaker(ToolCallingAgent):
    """An agent whose answer is what its model says."""

    def _step_stream(self, memory_step: ActionStep) -> Iterator[ActionOutput]:
        said = self.model.generate(self.write_memory_to_messages())
        yield ActionOutput(output=said.content, is_final_answer=True)


specialist = Speaker(
    tools=[], model=model, name="specialist", description="Knows about umbrellas.", instructions="Be short.", verbosity_level=0
)


@tool
def weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    return get_weather(city)


@tool
def time(city: str) -> str:
    """Get the local time of a city.

    Args:
        city: its name.
    """
    return get_time(city)


@tool
def rolled() -> str:
    """Roll a die."""
    return roll()


@tool
def alerts(city: str) -> str:
    """Get the weather alerts of a city.

    Args:
        city: its name.
    """
    return get_alerts(city)


@tool
def ask_specialist(question: str) -> str:
    """Ask the specialist.

    Args:
        question: what to ask.
    """
    return specialist.run(question)


weather.name, time.name, rolled.name, alerts.name = "get_weather", "get_time", "roll", "get_alerts"


def agent(stream: bool) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=[weather, time, rolled, alerts, ask_specialist],
        model=model,
        name="weather",
        description="Knows the weather.",
        max_steps=3,
        verbosity_level=0,
        stream_outputs=stream,
    )


def run(mode: str) -> str:
    if mode == "sync":
        return str(agent(stream=False).run("What is the weather?"))
    steps = list(agent(stream=True).run("What is the weather?", stream=True))
    return next(str(step.output) for step in steps if isinstance(step, FinalAnswerStep))


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run(mode)}), flush=True)
