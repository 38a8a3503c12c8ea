"""What every agent here does: it asks a model, calls tools, makes spans of its own, and meets exceptions."""

import json
import traceback
from pathlib import Path
from typing import Any

from openai import APIStatusError, OpenAI
from opentelemetry import trace

from spanreplay.instrumentation import agent_run, tool

HERE = Path(__file__).parent
LONG = "rain and wind " * 40


class LostLuggageError(Exception):
    """An error of the agent's own."""


@tool(effect="read")
def forecast(city: str) -> dict[str, Any]:
    """A tool with a span of the user's inside it, and an answer longer than any limit."""
    with trace.get_tracer("theirs").start_as_current_span("look up", attributes={f"theirs.{n}": n for n in range(5)}) as span:
        span.set_attribute("city", city)
        span.add_event("asked", {"city": city})
    return {"city": city, "text": LONG}


@tool(effect="write")
def book(city: str) -> str:
    """A tool that fails."""
    raise LostLuggageError(f"no luggage in {city}")


def met(error: BaseException) -> dict[str, Any]:
    """What an agent can tell about an exception: the frames are those of its own files."""
    found = traceback.extract_tb(error.__traceback__)
    frames = [(Path(f.filename).name, f.name, f.lineno) for f in found if Path(f.filename).parent == HERE]
    return {"type": type(error).__name__, "message": str(error), "frames": frames, "cause": repr(error.__cause__)}


def travel(url: str, city: str = "Paris") -> dict[str, Any]:
    """One run; the return value has all that it saw."""
    client = OpenAI(base_url=f"{url}/v1", api_key="sk-test", max_retries=0)
    seen: list[Any] = []
    with trace.get_tracer("theirs").start_as_current_span("trip"), agent_run("traveller", input={"city": city}) as run:
        question: Any = [{"role": "user", "content": f"{city}? {LONG}"}]
        first = client.chat.completions.create(model="gpt-4o-mini", messages=question)
        for call in first.choices[0].message.tool_calls or ():
            try:
                seen.append({"forecast": forecast, "book": book}[call.function.name](**json.loads(call.function.arguments)))  # type: ignore[union-attr]
            except LostLuggageError as error:
                seen.append(met(error))
        try:
            client.chat.completions.create(model="gpt-4o-mini", messages=question)
        except APIStatusError as error:
            seen.append(met(error))
        last = client.chat.completions.create(model="gpt-4o-mini", messages=question)
        run.output = last.choices[0].message.content
    return {"seen": seen, "output": run.output}
