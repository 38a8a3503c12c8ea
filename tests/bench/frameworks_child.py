"""Runs in the environment of a framework: one agent again and again, over a mock transport and answered from its record, in turn.

``frameworks_child.py FRAMEWORK ROUNDS``; prints the CPU seconds of each run as JSON. Three model calls and two tools, the model answers
in this process.
"""

import asyncio
import gc
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import openai

from spanreplay import recording
from spanreplay.cli.target import load
from spanreplay.recording import plugins
from spanreplay.replay.reexecution.engine import Replayer

QUESTION = "What is the weather in Lisbon? Tell ana@example.com."
INSTRUCTIONS = "You look up the weather and tell the customer by e-mail. Be brief, and never invent a temperature."
RUNS = 5
WARM = 3
"""Rounds that are not counted."""
numbers = itertools.count()


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"{next(numbers)} degrees in {city}"


def send_email(to: str, text: str) -> str:
    """Send an e-mail."""
    return f"sent {next(numbers)}"


def answer(request: httpx2.Request) -> httpx2.Response:
    """A chat completion, by how far the conversation is, with fresh ids."""
    number = next(numbers)
    asked = json.loads(request.content)["messages"]
    turn = sum(m["role"] == "assistant" for m in asked)
    calls: list[tuple[str, dict[str, str]]] = [
        ("get_weather", {"city": "Lisbon"}),
        ("send_email", {"to": "ana@example.com", "text": "Warm."}),
    ]
    message: dict[str, Any] = {"role": "assistant", "content": f"I wrote to Ana, message {number}." if turn == len(calls) else None}
    if turn < len(calls):
        name, arguments = calls[turn]
        made = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message["tool_calls"] = [made]
    body = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop" if turn == len(calls) else "tool_calls"}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140},
    }
    return httpx2.Response(200, json=body)


def client(kind: Any) -> Any:
    """The SDK over a mock transport."""
    library = httpx2.AsyncClient if kind is openai.AsyncOpenAI else httpx2.Client
    transport = httpx2.MockTransport(answer)
    return kind(api_key="bench", base_url="http://model.test/v1", max_retries=0, http_client=library(transport=transport))


def openai_agents() -> Callable[[], Any]:
    """The Agents SDK."""
    agents = import_module("agents")
    agents.set_tracing_disabled(True)
    model = agents.OpenAIChatCompletionsModel(model="gpt-4o-mini", openai_client=client(openai.AsyncOpenAI))
    tools = [agents.function_tool(get_weather), agents.function_tool(send_email)]
    agent = agents.Agent(name="toy", instructions=INSTRUCTIONS, model=model, tools=tools)

    async def ask() -> str:
        return str((await agents.Runner.run(agent, QUESTION)).final_output)

    return lambda: asyncio.run(ask())


def pydantic_ai() -> Callable[[], Any]:
    """Pydantic AI."""
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(openai_client=client(openai.AsyncOpenAI))
    model = import_module("pydantic_ai.models.openai").OpenAIChatModel("gpt-4o-mini", provider=provider)
    agent = import_module("pydantic_ai").Agent(model, name="toy", instructions=INSTRUCTIONS, tools=[get_weather, send_email])

    async def ask() -> str:
        return str((await agent.run(QUESTION)).output)

    return lambda: asyncio.run(ask())


def langgraph() -> Callable[[], Any]:
    """LangChain's agent on LangGraph."""
    library = client(openai.OpenAI)._client
    chat = import_module("langchain_openai").ChatOpenAI
    model = chat(model="gpt-4o-mini", api_key="bench", base_url="http://model.test/v1", http_client=library, max_retries=0)
    agent = import_module("langchain.agents").create_agent(model, [get_weather, send_email], system_prompt=INSTRUCTIONS, name="toy")
    return lambda: agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})["messages"][-1].content


def main() -> None:
    """Measure."""
    framework, rounds = sys.argv[1], int(sys.argv[2])
    own, body = globals()[framework](), globals()[framework]()  # an SDK keeps what it found at its first call
    with tempfile.TemporaryDirectory() as folder:
        recording.start(store=Path(folder))
        value = own()
        recording.stop()
        run = load("last", Path(folder)).one()

    def replay() -> None:
        result = Replayer(run).replay(body)
        assert result.equal, str(result)
        assert result.value == value, (result.value, value)

    found: dict[str, list[float]] = {"own": [], "replay": []}
    for number in range(rounds + WARM):
        for what in ("own", "replay") if number % 2 else ("replay", "own"):
            installed = plugins.install("auto", shortcuts=True) if what == "replay" else None
            work = own if installed is None else replay
            work()
            gc.collect()
            start = time.process_time()
            for _ in range(RUNS):
                work()
            spent = (time.process_time() - start) / RUNS
            if installed is not None:
                installed.uninstall()
            if number >= WARM:
                found[what].append(spent)
    print(json.dumps(found))


main()
