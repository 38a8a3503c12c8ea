"""An abandoned stream, and an agent that is interrupted."""

import json
import os
import sys
from contextlib import suppress

from smolagents import AgentError, OpenAIModel, ToolCallingAgent, ToolOutput, tool
from toolbox import get_weather

model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "a-key"))


@tool
def weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    return get_weather(city)


weather.name = "get_weather"


def agent(**options):
    return ToolCallingAgent(tools=[weather], model=model, name="weather", description="Knows.", verbosity_level=0, **options)


def close(stream):
    with suppress(RuntimeError):  # as a run yields in what it does last
        stream.close()


def abandoned():
    """After the first result of a tool."""
    stream = agent(stream_outputs=True).run("What is the weather?", stream=True)
    for event in stream:
        if isinstance(event, ToolOutput):
            close(stream)
            return event.output
    return "no tool was called"


def spoken():
    """After the first word."""
    stream = agent(stream_outputs=True).run("What is the weather?", stream=True)
    for event in stream:
        if getattr(event, "content", None):
            close(stream)
            return event.content
    return "nothing was said"


def interrupted():
    made = agent(step_callbacks=[lambda step, agent: agent.interrupt()])
    try:
        return str(made.run("What is the weather?"))
    except AgentError as error:
        return str(error)


for mode in sys.argv[1:]:
    output = {"abandoned": abandoned, "spoken": spoken, "interrupted": interrupted}[mode]()
    print()  # after what the framework has printed of a stream that was left
    print(json.dumps({"mode": mode, "output": output}), flush=True)
