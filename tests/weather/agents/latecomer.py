"""A provider that is set when a run has begun already, here or in a child process: ``latecomer.py inside|child|both``."""

import os
import subprocess
import sys

from opentelemetry import trace

from spanreplay.instrumentation import agent_run, tool
from weather.agents.providers import SETUPS


@tool(effect="read")
def work() -> None:
    """A span of the user's, inside a tool."""
    with trace.get_tracer("theirs").start_as_current_span("theirs"):
        pass


def late() -> None:
    """The provider comes, then spans, with and without a step around them."""
    SETUPS["plain"]()
    with trace.get_tracer("theirs").start_as_current_span("theirs"):
        pass
    work()


if __name__ == "__main__":
    if "START" in os.environ:
        from spanreplay import recording

        recording.start(store=os.environ["START"])
    if sys.argv[1] == "late":
        late()
    else:
        with agent_run("latecomer"):
            if sys.argv[1] == "inside":
                late()
            else:
                subprocess.run([sys.executable, __file__, "late"], check=True)
