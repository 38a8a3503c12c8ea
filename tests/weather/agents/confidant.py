"""An agent with secrets in its environment and on the wire, under other people's telemetry: ``confidant.py URL SETUP``."""

import os
import sys
from typing import Any

from openai import OpenAI
from opentelemetry import trace

from spanreplay.instrumentation import agent_run, tool
from weather.agents.providers import SETUPS


@tool(effect="write")
def log_in(password: str) -> str:
    """A span of the user's with secrets in it, and an exception with more."""
    with trace.get_tracer("theirs").start_as_current_span(
        f"log in with {password}", attributes={"authorization": f"Bearer {password}"}
    ) as span:
        span.add_event("sent", {"text": f"token {os.environ['SERVICE_TOKEN']}"})
        raise PermissionError(f"refused: {os.environ['DATABASE_PASSWORD']}")


if __name__ == "__main__":
    if "START" in os.environ:
        from spanreplay import recording

        recording.start(store=os.environ["START"])
    SETUPS[sys.argv[2]]()
    client = OpenAI(base_url=f"{sys.argv[1]}/v1", max_retries=0)
    with agent_run("confidant"):
        question: Any = [{"role": "user", "content": f"my key is {client.api_key}"}]
        client.chat.completions.create(model="gpt-4o-mini", messages=question)
        try:
            log_in(os.environ["SERVICE_TOKEN"])
        except PermissionError:
            print("refused")
