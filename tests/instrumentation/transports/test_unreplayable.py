"""WebSockets and gRPC: named while recording, refused in a replay, and telemetry is neither."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import aiohttp
import grpc
import openai
import pytest
import websockets
from google import genai
from google.genai import types
from websockets.sync.client import connect as connect_sync
from websockets.sync.server import Server, serve

from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.transports import aiohttp as aiohttp_transport
from spanreplay.instrumentation.transports import grpc as grpc_transport
from spanreplay.instrumentation.transports import websockets as websockets_transport
from support.taped import Tape, recorded, replayed

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    transports = (aiohttp_transport, grpc_transport, websockets_transport)
    for transport in transports:
        transport.install()
    yield
    for transport in transports:
        assert transport.status() == "active"
        transport.uninstall()


class Echo:
    """A WebSocket server that counts who comes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connections = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.server.socket.getsockname()[1]}"


@pytest.fixture
def echo() -> Iterator[Echo]:
    def handler(connection: Any) -> None:
        for message in connection:
            connection.send(message)

    def counted(_: Any, __: Any) -> None:
        """Before the handshake is answered: a client that has connected is counted."""
        found.connections += 1

    with serve(handler, "127.0.0.1", 0, process_request=counted) as server:
        found = Echo(server)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def sync(url: str) -> Any:
    with connect_sync(f"{url}/v1/realtime?model=m") as socket:
        socket.send("hi")
        return socket.recv()


async def asynchronous(url: str) -> Any:
    async with websockets.connect(f"{url}/v1/realtime?model=m") as socket:
        await socket.send("hi")
        return await socket.recv()


async def over_aiohttp(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/v1/realtime?model=m") as socket:
        await socket.send_str("hi")
        return (await socket.receive()).data


def run(agent: Callable[[str], Any], url: str) -> Callable[[], Any]:
    """The agent as a run of its own."""

    def alone() -> Any:
        with agent_run("talker"):
            return agent(url)

    async def alone_async() -> Any:
        with agent_run("talker"):
            return await agent(url)

    return alone_async if asyncio.iscoroutinefunction(agent) else alone


def named(tape: Tape, *, connections: bool = False) -> list[tuple[str, str]]:
    found = [(item["what"], item["target"]) for made in tape.runs() for item in made.untaped]
    return [item for item in found if connections or item[0] != "connection made"]


@pytest.mark.parametrize("agent", [sync, asynchronous, over_aiohttp])
def test_a_websocket_is_named_and_then_refused(echo: Echo, agent: Callable[[str], Any]) -> None:
    tape = recorded(run(agent, echo.url))
    assert echo.connections == 1
    url = f"{echo.url}/v1/realtime?model=m"
    assert named(tape, connections=agent is not asynchronous) == [("WebSocket opened", url)]
    (made,) = tape.runs()
    assert [step.kind for step in made.steps] == []
    assert any("WebSocket opened" in reason.detail for reason in made.grade_reasons)
    result = replayed(tape, run(agent, echo.url))
    assert echo.connections == 1, "the replay connected"
    (difference,) = result.differences
    assert (difference.kind, difference.name) == ("never_recorded", f"io WebSocket opened {url}")


def test_the_sdks_of_realtime_apis(echo: Echo) -> None:
    async def realtime(url: str) -> Any:
        async with openai.AsyncOpenAI(api_key="none", websocket_base_url=f"{url}/v1") as client:
            async with client.realtime.connect(model="m"):
                return None

    async def live(url: str) -> Any:
        client = genai.Client(api_key="secret-key-0123456789", http_options=types.HttpOptions(base_url=url))
        try:
            async with client.aio.live.connect(model="m"):
                return None
        finally:
            await client.aio.aclose()

    for agent, path in ((realtime, "/v1/realtime?model=m"), (live, "/ws/google.ai")):
        tape = recorded(run(agent, echo.url))
        (what, target), *_ = named(tape)
        assert what == "WebSocket opened"
        assert target.startswith(("ws://127.0.0.1:", "wss://127.0.0.1:"))  # Gemini's speaks TLS only: naming it comes before that fails
        assert path in target
        assert "secret-key-0123456789" not in target
        before = echo.connections
        assert [d.kind for d in replayed(tape, run(agent, echo.url)).differences] == ["never_recorded"]
        assert echo.connections == before


def test_inside_a_tool_it_belongs_to_the_tool(echo: Echo) -> None:
    @tool(effect="read")
    def ask(question: str) -> Any:
        return sync(echo.url)

    def agent(_: str) -> Any:
        return ask("hi")

    tape = recorded(run(agent, ""))
    assert named(tape, connections=True) == []
    assert replayed(tape, run(agent, "")).equal
    assert echo.connections == 1


# ---- gRPC ---------------------------------------------------------------------------------------------------------


class Rpc:
    """A gRPC server that takes any method and gives back what it got."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        outer = self

        class Anything(grpc.GenericRpcHandler):
            def service(self, handler_call_details: Any) -> Any:
                method = handler_call_details.method
                if method.endswith("Stream"):
                    return grpc.unary_stream_rpc_method_handler(lambda request, _: outer.answer(method, request))
                return grpc.unary_unary_rpc_method_handler(lambda request, _: next(outer.answer(method, request)))

        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((Anything(),))
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def answer(self, method: str, request: bytes) -> Iterator[bytes]:
        self.methods.append(method)
        yield request


@pytest.fixture
def rpc() -> Iterator[Rpc]:
    found = Rpc()
    yield found
    found.server.stop(None).wait()


def opened(channel: Any) -> Any:
    """The stubs type what is serialised only."""
    return channel


def unary(target: str) -> Any:
    with grpc.insecure_channel(target) as channel:
        return opened(channel).unary_unary("/acme.Model/Generate")(b"hi")


def streamed(target: str) -> Any:
    with grpc.insecure_channel(target) as channel:
        return list(opened(channel).unary_stream("/acme.Model/GenerateStream")(b"hi"))


async def awaited(target: str) -> Any:
    async with grpc.aio.insecure_channel(target) as channel:
        return await opened(channel).unary_unary("/acme.Model/Generate")(b"hi")


@pytest.mark.parametrize("agent", [unary, streamed, awaited])
def test_a_grpc_call_is_named_and_then_refused(rpc: Rpc, agent: Callable[[str], Any]) -> None:
    tape = recorded(run(agent, rpc.target))
    assert len(rpc.methods) == 1
    ((what, target),) = named(tape, connections=True)
    assert what == "gRPC call made"
    assert target.endswith(rpc.methods[0])
    assert target.startswith(rpc.target) or agent is awaited
    result = replayed(tape, run(agent, rpc.target))
    assert len(rpc.methods) == 1
    assert [d.kind for d in result.differences] == ["never_recorded"]


def test_an_otlp_export_is_telemetry(rpc: Rpc) -> None:
    def agent(target: str) -> Any:
        with grpc.insecure_channel(target) as channel:
            return opened(channel).unary_unary(TRACES, response_deserializer=lambda data: ("exported", data))(b"spans")

    tape = recorded(run(agent, rpc.target))
    assert rpc.methods == [TRACES]
    assert named(tape, connections=True) == []
    result = replayed(tape, run(agent, rpc.target))
    assert rpc.methods == [TRACES], "the replay exported"
    assert result.verdict.telemetry_dropped == 1

    async def another_way(target: str) -> Any:
        async with grpc.aio.insecure_channel(target) as channel:
            return await opened(channel).unary_unary(TRACES)(b"spans")

    refused = replayed(recorded(run(another_way, rpc.target)), run(another_way, rpc.target))
    assert isinstance(refused.error, ConnectionRefusedError)
    assert refused.verdict.telemetry_dropped == 1
    assert rpc.methods == [TRACES] * 2
