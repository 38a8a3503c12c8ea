"""The toy run that tools for recording and replaying agents are measured on: three model calls, a random tool, a tool that acts.

Run as ``python -m bench.rivals_toy speed`` or ``probes`` in the environment of :mod:`bench.rivals`; prints JSON.
"""

import functools
import gc
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import openai

from bench.measure import interval

SYSTEM: Final = "You look up the weather and tell the customer by e-mail. Be brief, and never invent a temperature."
QUESTION: Final = "What is the weather in Lisbon? Tell ana@example.com."
ROUNDS: Final = 40
RUNS: Final = 5
"""Toy runs in a round of one tool."""
_TOOLS: Final[Any] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {"type": "object", "properties": {p: {"type": "string"} for p in parameters}, "required": parameters},
        },
    }
    for name, about, parameters in (
        ("get_weather", "The weather of a city.", ["city"]),
        ("send_email", "Send an e-mail.", ["to", "text"]),
    )
]


@dataclass(slots=True)
class World:
    """What is outside of the agent: the model and the tools, which never answer twice the same, and what was done to them."""

    hits: int = 0
    """Requests that reached the model."""
    outbox: list[dict[str, str]] = field(default_factory=list)
    """E-mails that were sent."""
    requests: list[bytes] = field(default_factory=list)
    """Body of the last request."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def model(self, request: httpx2.Request) -> httpx2.Response:
        """Answers by how far the conversation is, with fresh ids."""
        self.hits += 1
        self.requests = [request.content]
        number = next(self.numbers)
        asked = json.loads(request.content)["messages"]
        turn = sum(m["role"] == "assistant" for m in asked)
        if turn == 0:
            return reply(number, call=("get_weather", {"city": "Lisbon"}))
        if turn == 1:
            return reply(number, call=("send_email", {"to": "ana@example.com", "text": f"In Lisbon: {asked[-1]['content']}"}))
        return reply(number, text=f"I wrote to Ana, message {number}.")

    def get_weather(self, city: str) -> dict[str, Any]:
        """The weather of a city."""
        return {"city": city, "celsius": random.randint(-20, 45), "station": next(self.numbers)}

    def send_email(self, to: str, text: str) -> dict[str, Any]:
        """Send an e-mail."""
        self.outbox.append({"to": to, "text": text})
        return {"sent": True, "id": next(self.numbers)}

    def client(self, handler: Callable[[httpx2.Request], httpx2.Response] | None = None) -> openai.OpenAI:
        """The SDK, with this model behind its transport."""
        return openai.OpenAI(
            api_key="bench",
            base_url="http://model.test/v1",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(handler or self.model)),
        )


def reply(number: int, *, text: str | None = None, call: tuple[str, dict[str, str]] | None = None) -> httpx2.Response:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call is not None:
        made = {"id": f"call_{number}", "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}
        message["tool_calls"] = [made]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if call is None else "tool_calls"}
    usage = {"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140}
    body = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [choice],
        "usage": usage,
    }
    return httpx2.Response(200, json=body)


def agent(
    client: openai.OpenAI,
    tools: dict[str, Callable[..., Any]],
    *,
    system: str = SYSTEM,
    signature: str = "",
    turns: int = 10,
    more: bool = False,
) -> str:
    """An ordinary loop: ask the model, call the tools it asks for, until it has no more to ask.

    Args:
        client: the SDK.
        tools: by name.
        system: the system prompt.
        signature: added to every e-mail.
        turns: stop after so many model calls.
        more: ask the model once more at the end.
    """
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
    said: str | None = None
    for _ in range(turns):
        answer: Any = client.chat.completions.create(model="gpt-4o-mini", messages=list(messages), tools=_TOOLS)
        message = answer.choices[0].message
        said = message.content
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for wanted in message.tool_calls:
            arguments = json.loads(wanted.function.arguments)
            if signature and "text" in arguments:
                arguments["text"] += signature
            result = tools[wanted.function.name](**arguments)
            messages.append({"role": "tool", "tool_call_id": wanted.id, "content": json.dumps(result)})
    if more:
        client.chat.completions.create(model="gpt-4o-mini", messages=list(messages))
    return json.dumps([said, messages[1:]])


# ---- speed -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One thing that is timed."""

    tool: str
    what: str
    prepare: Callable[[], AbstractContextManager[Callable[[], object]]]
    """Not timed: yields what does one toy run."""
    finish: Callable[[], object] = lambda: None
    """Timed, once a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU time of one toy run, all threads of the process, in milliseconds."""

    tool: str
    what: str
    median: float
    low: float
    high: float
    over_bare: float
    """Median of the differences to the bare toy of the same round."""
    over_bare_low: float
    over_bare_high: float


def rounds(ways: Sequence[Way], *, times: int, runs: int) -> list[Cost]:
    """Every way once a round, beginning with another one each time; the first way is the bare toy."""
    found: dict[int, list[float]] = {i: [] for i in range(len(ways))}
    for number in range(times + 3):
        for place in range(len(ways)):
            which = (place + number) % len(ways)
            way = ways[which]
            with way.prepare() as run:
                gc.collect()
                gc.disable()
                try:
                    start = time.process_time()
                    for _ in range(runs):
                        run()
                    way.finish()
                    spent = (time.process_time() - start) * 1e3 / runs
                finally:
                    gc.enable()
            if number >= 3:
                found[which].append(spent)
    return [_cost(way, found[i], found[0]) for i, way in enumerate(ways)]


def _cost(way: Way, spent: list[float], bare: list[float]) -> Cost:
    low, high = interval(spent)
    over = [b - a for a, b in zip(bare, spent, strict=True)]
    over_low, over_high = interval(over)
    return Cost(
        tool=way.tool,
        what=way.what,
        median=statistics.median(spent),
        low=low,
        high=high,
        over_bare=statistics.median(over),
        over_bare_low=over_low,
        over_bare_high=over_high,
    )


def speed() -> dict[str, object]:
    """The bare toy, and recording and replaying it with each tool; what each keeps in bytes."""
    from bench.rivals_contenders import contenders

    with tempfile.TemporaryDirectory() as folder:
        world = World()
        client = world.client()
        plain: dict[str, Callable[..., Any]] = {"get_weather": world.get_weather, "send_email": world.send_email}

        @contextmanager
        def bare() -> Iterator[Callable[[], object]]:
            yield lambda: agent(client, plain)

        ways = [Way(tool="bare toy", what="run", prepare=bare)]
        kept: dict[str, object] = {}
        once: dict[str, object] = {}
        for contender in contenders(Path(folder)):
            body = functools.partial(agent, client, contender.tools(world))
            ways += contender.ways(body)
            kept[contender.name] = contender.bytes_per_run(body)
            once[contender.name] = contender.once(body)
        costs = rounds(ways, times=ROUNDS, runs=RUNS)
    return {"rounds": ROUNDS, "runs_a_round": RUNS, "costs": [asdict(c) for c in costs], "bytes": kept, "once": once}


def main() -> None:
    """Print what the argument names as JSON."""
    if sys.argv[1:] == ["probes"]:
        from bench.rivals_probes import probes

        print(json.dumps(probes()))
    else:
        print(json.dumps(speed()))


if __name__ == "__main__":
    main()
