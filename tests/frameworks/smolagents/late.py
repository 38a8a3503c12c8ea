"""Code that takes longer than it may."""

import json
import os
import sys
import time
from contextlib import suppress

from smolagents import CodeAgent, OpenAIModel, tool
from toolbox import ran

model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ.get("OPENAI_API_KEY", "a-key"))


@tool
def wait_a_while() -> str:
    """Wait a while."""
    ran("wait_a_while")
    time.sleep(4)
    return "at last"


def late():
    made = CodeAgent(tools=[wait_a_while], model=model, verbosity_level=0, max_steps=1, executor_kwargs={"timeout_seconds": 2})
    stream = made.run("Wait.", stream=True)
    said = next(str(event.error) for event in stream if getattr(event, "error", None))
    with suppress(RuntimeError):  # as a run yields in what it does last
        stream.close()
    return said


for mode in sys.argv[1:]:
    output = late()
    print()  # after what the framework has printed of a stream that was left
    print(json.dumps({"mode": mode, "output": output}), flush=True)
