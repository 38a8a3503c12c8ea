"""What each tool skips, found by trying it: every probe records something, changes something, replays, and looks at what happened."""

import asyncio
import json
import platform
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import httpx2
import openai
import opentelemetry.trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.rivals_contenders import Contender, Obzerve, Replayed, contenders
from bench.rivals_toy import SYSTEM, World, agent, reply

_ASKED: Final[list[Any]] = [{"role": "user", "content": "Pick a number."}]
_CALLERS: Final = 4
_exported = InMemorySpanExporter()


def _toy(contender: Contender, **changes: Any) -> tuple[Replayed, str, World, int]:
    """Record the toy, replay it changed: what the replay did, the recorded value, the world, and what was done to it by then."""
    world = World()
    client, tools = world.client(), contender.tools(world)
    value, kept = contender.record(lambda: agent(client, tools))
    hits, world.hits = world.hits, 0
    assert hits == 3, hits
    world.outbox.clear()
    return contender.replay(kept, lambda: agent(client, tools, **changes)), value, world, hits


def unchanged(contender: Contender) -> str:
    """The unchanged toy: output; live model calls; e-mails sent."""
    done, value, world, _ = _toy(contender)
    equal = "equal" if done.value == value else f"different ({done.stopped})"
    return f"{equal}, {world.hits} live calls, {len(world.outbox)} e-mails"


def prompt_changed(contender: Contender) -> str:
    """System prompt changed before the replay."""
    return _toy(contender, system=SYSTEM + " Answer in French.")[0].verdict


def argument_changed(contender: Contender) -> str:
    """Argument of a tool changed."""
    return _toy(contender, signature=" Yours, the agent.")[0].verdict


def call_fewer(contender: Contender) -> str:
    """A recorded call is not made any more."""
    return _toy(contender, turns=2)[0].verdict


def call_more(contender: Contender) -> str:
    """A call that was never recorded is made."""
    done, _, world, _ = _toy(contender, more=True)
    return done.verdict if world.hits == 0 else f"live, {world.hits} calls"


def concurrent_calls(contender: Contender) -> str:
    """4 identical model calls at once, different answers."""
    return _concurrent(contender, waits=False)


def concurrent_calls_after_a_tool(contender: Contender) -> str:
    """The same, each after a tool that took its own time."""
    return _concurrent(contender, waits=True)


def _concurrent(contender: Contender, *, waits: bool) -> str:
    async def look_up(caller: int) -> str:
        await asyncio.sleep(0.01 * (_CALLERS - caller))
        return "found"

    tool = contender.tool(look_up, acts=False)
    live: list[int] = []

    async def ask_all() -> list[str]:
        arrived = asyncio.Event()

        async def model(_: httpx2.Request) -> httpx2.Response:
            place = len(live)
            live.append(place)
            if len(live) >= _CALLERS:
                arrived.set()
            await arrived.wait()
            for _turn in range(_CALLERS - place):
                await asyncio.sleep(0)
            return reply(place, text=f"number {place}")

        async def caller(number: int, client: openai.AsyncOpenAI) -> str:
            if waits:
                await tool(number)
            answer: Any = await client.chat.completions.create(model="gpt-4o-mini", messages=_ASKED)
            return str(answer.choices[0].message.content)

        transport = httpx2.AsyncClient(transport=httpx2.MockTransport(model))
        async with openai.AsyncOpenAI(api_key="bench", base_url="http://model.test/v1", http_client=transport) as client:
            return list(await asyncio.gather(*(caller(i, client) for i in range(_CALLERS))))

    value, kept = contender.record(lambda: asyncio.run(ask_all()))
    live.clear()
    done = contender.replay(kept, lambda: asyncio.run(ask_all()), concurrent=True)
    if done.value == value:
        return "each to its caller"
    if done.stopped is not None:
        return done.verdict
    wrong = sum(a != b for a, b in zip(done.value, value, strict=True))
    return f"{wrong} of {_CALLERS} to the wrong caller, {done.verdict}"


def streamed(contender: Contender) -> str:
    """Streamed model call."""
    pieces = ["An", " answer", " in", " pieces"]

    def model(_: httpx2.Request) -> httpx2.Response:
        live.append(1)
        lines = []
        for piece in pieces:
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            lines.append({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini", "choices": [choice]})
        text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        return httpx2.Response(200, content=text.encode(), headers={"content-type": "text/event-stream"})

    live: list[int] = []
    client = World().client(model)

    def ask() -> list[str | None]:
        stream: Any = client.chat.completions.create(model="gpt-4o-mini", messages=_ASKED, stream=True)
        return [chunk.choices[0].delta.content for chunk in stream]

    return _same(contender, ask, live)


def large(contender: Contender) -> str:
    """Answer of 300 kB, settings as they come."""

    def model(_: httpx2.Request) -> httpx2.Response:
        live.append(1)
        return reply(1, text="word " * 60_000)

    live: list[int] = []
    client = World().client(model)

    def ask() -> str | None:
        answer: Any = client.chat.completions.create(model="gpt-4o-mini", messages=_ASKED)
        content: str | None = answer.choices[0].message.content
        return content

    return _same(contender, ask, live)


def _same(contender: Contender, ask: Callable[[], Any], live: list[int]) -> str:
    value, kept = contender.record(ask)
    live.clear()
    done = contender.replay(kept, ask)
    if live:
        return f"live, {len(live)} calls"
    return "equal" if done.value == value else f"not replayed, {done.verdict}"


def unpatched_socket(contender: Contender) -> str:
    """Connection by a socket of the agent's own, during a replay."""
    with _listener() as (port, accepted):

        def act() -> str:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"pay 100")
                return connection.recv(10).decode()

        _, kept = contender.record(act)
        before = len(accepted)
        done = contender.replay(kept, act)
        return "live: the server was reached" if len(accepted) > before else done.verdict


def undecorated_tool(contender: Contender) -> str:
    """File written by a tool that nobody decorated, during a replay."""
    with tempfile.TemporaryDirectory(prefix="bench-outside-") as folder:
        target = Path(folder) / "order.txt"

        def act() -> str:
            target.write_text("ordered", encoding="utf-8")
            return "ordered"

        _, kept = contender.record(act)
        target.unlink()
        done = contender.replay(kept, act)
        return "live: the file was written" if target.exists() else done.verdict


def spans_out(contender: Contender) -> str:
    """OpenTelemetry spans of model calls and tools, for an exporter of the user's."""
    exporter = contender.spans if isinstance(contender, Obzerve) else _exported
    _exported.clear()
    world = World()
    tools, client = contender.tools(world), world.client()
    _, kept = contender.record(lambda: agent(client, tools))
    spans = kept[1] if isinstance(contender, Obzerve) else exporter.get_finished_spans()
    models = sum("gen_ai.request.model" in (s.attributes or {}) for s in spans)
    return f"{len(spans)} spans, {models} with gen_ai attributes of a model call" if spans else "none"


def bytes_kept(contender: Contender) -> str:
    """The request and response bodies of a model call, byte for byte."""
    raw = '{ "id":"c-1", "x_vendor" : {"b":1.50,"a":2}, "object":"chat.completion","created":1,"model":"gpt-4o-mini",  "choices":'
    raw += '[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"caf\\u00e9"}}]}'
    sent: list[str] = []

    def model(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.content.decode())
        return httpx2.Response(200, content=raw.encode(), headers={"content-type": "application/json"})

    client = World().client(model)
    _, kept = contender.record(lambda: client.chat.completions.create(model="gpt-4o-mini", messages=_ASKED))
    texts = list(_texts(contender.evidence(kept)))
    request, response = (any(wanted in text for text in texts) for wanted in (sent[0], raw))
    return f"request {'kept' if request else 'not kept'}, response {'kept' if response else 'not kept'}"


def versions_kept(contender: Contender) -> str:
    """Versions found in what was kept: Python, SDK, the code's commit."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    wanted = {"Python": platform.python_version(), "SDK": version("openai")}
    if done.returncode == 0:
        wanted["commit"] = done.stdout.strip()
    world = World()
    tools, client = contender.tools(world), world.client()
    _, kept = contender.record(lambda: agent(client, tools))
    texts = list(_texts(contender.evidence(kept)))
    found = [name for name, value in wanted.items() if any(value in text for text in texts)]
    return ", ".join(found) or "none"


def from_step(contender: Contender) -> str:
    """First step from the record, the rest live."""
    world = World()
    client, tools = world.client(), contender.tools(world)
    _, kept = contender.record(lambda: agent(client, tools))
    world.hits = 0
    done = contender.from_step(kept, lambda: agent(client, tools))
    if done is None:
        return "no"
    return f"yes, {world.hits} of 3 model calls live" if done.stopped is None else done.verdict


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, also inside texts that are JSON themselves."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
        if value[:1] in '{["':
            try:
                inner = json.loads(value)
            except ValueError:
                return
            yield from _texts(inner)


@contextmanager
def _listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server on loopback that answers every connection; what it was sent."""
    received: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                received.append(connection.recv(100))
                connection.sendall(b"paid")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1], received
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)


PROBES: Final = (
    unchanged,
    prompt_changed,
    argument_changed,
    call_fewer,
    call_more,
    concurrent_calls,
    concurrent_calls_after_a_tool,
    streamed,
    large,
    unpatched_socket,
    undecorated_tool,
    spans_out,
    bytes_kept,
    versions_kept,
    from_step,
)


def probes() -> list[dict[str, object]]:
    """One row a probe: what it looks at, and what it found of each tool."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_exported))
    opentelemetry.trace.set_tracer_provider(provider)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        tried = contenders(Path(folder))
        for probe in PROBES:
            found: dict[str, str] = {}
            for contender in tried:
                try:
                    found[contender.name] = probe(contender)
                except Exception as error:
                    found[contender.name] = f"the probe failed: {type(error).__name__}: {error}"[:200]
            rows.append({"probe": probe.__name__, "what": (probe.__doc__ or "").strip().rstrip("."), "found": found})
    return rows
