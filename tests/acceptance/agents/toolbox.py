"""What the agents of these tests have in common: tools, the recordings they are made for, and what they print.

The agents are plain scripts; ``tests`` is on ``PYTHONPATH`` when they run. Every tool leaves a file in the folder ``$MARKS`` when its body
runs, so that a test can tell that it did not.
"""

import argparse
import asyncio
import inspect
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from spanreplay.instrumentation import agent_run, tool

# ---- tools --------------------------------------------------------------------------------------------------------


def _mark(name: str) -> None:
    folder = os.environ.get("MARKS")
    if folder is not None:
        os.close(tempfile.mkstemp(prefix=f"{name}-", dir=folder)[0])


class ModelRetry(Exception):
    """The tool wants the model to try again."""


@tool(effect="read")
def lookup_population(country: str) -> int:
    """Returns the current population of the specified fictional country."""
    _mark("lookup_population")
    return 123124


@tool(effect="read")
def can_have_dragons(population: int) -> bool:
    """Returns True if the specified population can have dragons."""
    _mark("can_have_dragons")
    return population > 10000


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    _mark("multiply")
    return a * b


@tool(effect="read")
def retrieve_entity_info(name: str) -> str:
    """Get the knowledge about the given entity."""
    _mark("retrieve_entity_info")
    return {
        "Alice": "alice is bob's wife",
        "Bob": "bob is alice's husband",
        "Charlie": "charlie is alice's son",
        "Daisy": "daisy is bob's daughter and charlie's younger sister",
    }[name]


@tool(effect="read")
def get_current_temperature(city: str) -> str:
    """Get the current temperature in a city."""
    _mark("get_current_temperature")
    return f"The temperature in {city} is 72°F"


@tool(effect="read")
def get_location(loc_name: str) -> dict[str, int]:
    """Where a place is."""
    _mark("get_location")
    if loc_name != "London":
        raise ModelRetry('Wrong location, I only know about "London".')
    return {"lat": 51, "lng": 0}


@tool(effect="read")
def get_file() -> list[dict[str, str]]:
    """Get a file."""
    _mark("get_file")
    return [{"type": "input_file", "file_url": "https://files.example/three-seconds.mp3"}]


@tool(effect="read")
async def gauge_of(river: str) -> dict[str, Any]:
    """The gauge that measures a river."""
    _mark("gauge_of")
    await asyncio.sleep(0)
    return {"river": river, "gauge": 40 + len(river)}


@tool(effect="read")
async def level_at(gauge: int) -> str:
    """The water level at a gauge."""
    _mark("level_at")
    await asyncio.sleep(0.004 if gauge % 2 else 0)
    if gauge == 45:
        raise TimeoutError(f"gauge {gauge} does not answer")
    return f"{gauge * 7} cm – steady"


TOOLS: Final[Mapping[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        *(lookup_population, can_have_dragons, multiply, retrieve_entity_info, get_current_temperature, get_location, get_file),
        *(gauge_of, level_at),
    )
}
_JSON_TYPES: Final = {str: "string", int: "integer"}


def parameters(name: str) -> dict[str, Any]:
    """JSON schema of a tool's arguments."""
    found = inspect.signature(TOOLS[name]).parameters
    return {
        "type": "object",
        "properties": {p: {"type": _JSON_TYPES[known.annotation]} for p, known in found.items()},
        "required": list(found),
        "additionalProperties": False,
    }


def description(name: str) -> str:
    """What a model is told of a tool."""
    return inspect.getdoc(TOOLS[name]) or ""


# ---- what to ask --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one recording answers."""

    question: str
    tools: tuple[str, ...]
    system: str = "Use the tools."


_DRAGONS: Final = Task(question="Can the country of Crumpet have dragons?", tools=("lookup_population", "can_have_dragons"))
_RIVERS: Final = Task(question="How high are the Elbe, the Oder and the Weser?", tools=("gauge_of", "level_at"))

TASKS: Final[Mapping[str, Task]] = {
    "C40": _DRAGONS,
    "C44": Task(question="What is 1231 * 2331?", tools=("multiply",)),
    "C46": _DRAGONS,
    "C04": Task(question="Who is the youngest?", tools=("retrieve_entity_info",), system="Call tools in parallel."),
    "C52": Task(question="What is the temperature in San Francisco?", tools=("get_current_temperature",)),
    "C16": Task(question="What is the location of Londos and London?", tools=("get_location",)),
    "C19": Task(question="Retrieve a file, then describe it.", tools=("get_file",)),
    "rivers": _RIVERS,
}


# ---- talking ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Talk:
    """What an agent did: printed as one line of JSON."""

    final: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Ids of the calls that the model made."""
    reasoning: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Types and texts of the exceptions that the agent met, each with its direct cause."""

    def met(self, error: BaseException) -> None:
        """Note an exception, and what it was raised from."""
        for each in (error, error.__cause__):
            if each is not None:
                self.errors.append(f"{type(each).__module__}.{type(each).__qualname__}: {each}")

    async def use(self, name: str, arguments: Any, call_id: str) -> str:
        """Run a tool for the model; a failure becomes what the model is told."""
        self.calls.append(call_id)
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
        try:
            made = TOOLS[name](**given)
            value = await made if inspect.isawaitable(made) else made
        except (ModelRetry, TimeoutError) as error:
            self.met(error)
            return f"{error}\n\nFix the errors and try again."
        return value if isinstance(value, str) else json.dumps(value)

    def use_now(self, name: str, arguments: Any, call_id: str) -> str:
        """As :meth:`use`, for an agent that is not asynchronous."""
        return (
            asyncio.run(self.use(name, arguments, call_id))
            if inspect.iscoroutinefunction(TOOLS[name])
            else _drive(self, name, arguments, call_id)
        )


def _drive(talk: Talk, name: str, arguments: Any, call_id: str) -> str:
    step = talk.use(name, arguments, call_id)
    try:
        step.send(None)
    except StopIteration as done:
        return str(done.value)
    raise AssertionError("a tool that is no coroutine waited")


Loop = Callable[[str, Task, Talk], Any]


def run(loop: Loop, base_url: str, name: str) -> str:
    """Run one agent loop as one recorded run; returns the line that the agent prints."""
    task, talk = TASKS[name], Talk()
    with agent_run(name, input=task.question) as this:
        try:
            result = loop(base_url, task, talk)
            if inspect.isawaitable(result):
                asyncio.run(_awaited(result))
        except Exception as error:
            talk.met(error)
        this.output = talk.final
    return json.dumps(asdict(talk), ensure_ascii=False)


async def _awaited(result: Any) -> None:
    await result


def main(loops: Mapping[str, Loop]) -> None:
    """``agent.py BASE_URL TASK MODE``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("mode", choices=loops)
    given = parser.parse_args()
    print(run(loops[given.mode], given.base_url, given.task))
