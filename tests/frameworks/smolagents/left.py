"""An abandoned stream, an agent that is interrupted, and code that takes longer than it may."""

import json
import os
import sys
import time
from contextlib import suppress

from smolagents import AgentError, CodeAgent, OpenAIModel, ToolCallingAgent, ToolOutput, tool
from toolbox import get_weather, ran

model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "a-key"))


@tool
def weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    return get_weather(city)


@tool
def wait_a_while() -> str:
    """Wait a while."""
    ran("wait_a_while")
    time.sleep(4)
    return "at last"


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


def late():
    made = CodeAgent(tools=[wait_a_while], model=model, verbosity_level=0, max_steps=1, executor_kwargs={"timeout_seconds": 2})
    stream = made.run("Wait.", stream=True)
    said = next(str(event.error) for event in stream if getattr(event, "error", None))
    close(stream)
    return said


for mode in sys.argv[1:]:
    output = {"abandoned": abandoned, "spoken": spoken, "interrupted": interrupted, "late": late}[mode]()
    print()  # after what the framework has printed of a stream that was left
    print(json.dumps({"mode": mode, "output": output}), flush=True)
