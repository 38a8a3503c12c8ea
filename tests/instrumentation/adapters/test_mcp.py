"""The adapter of MCP clients, with modules of the SDK's shape and without the SDK."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import anyio
import pytest

from spanreplay.instrumentation.adapters import mcp
from spanreplay.instrumentation.mcp_requests import Server, effect_of
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

SERVER = {"serverInfo": {"name": "station", "version": "1.2"}, "protocolVersion": "2025-11-25"}
LISTED = {"tools": [{"name": "look", "description": "Look.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
ANSWERS: dict[str, Any] = {"initialize": SERVER, "tools/list": LISTED, "resources/read": {"contents": []}}


@dataclass
class ErrorData:
    code: int
    message: str


class MCPError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.error = ErrorData(code, message)


class JSONRPCDispatcher:
    def __init__(self, write_stream: Any = None) -> None:
        self._write_stream = write_stream
        self.sent: list[str] = []
        self.session: Any = None

    async def send_raw_request(self, method: str, params: Any, opts: Any = None, *, _related_request_id: Any = None) -> dict[str, Any]:
        self.sent.append(method)
        if method == "tools/call":
            if params["name"] == "ask":
                await self.session._on_request(None, "sampling/createMessage", {"messages": []})
            if params["name"] == "tell":
                await self.session._on_notify(None, "notifications/message", {"level": "info", "data": "begun"})
                await (opts or {})["on_progress"](1.0, 2.0, "half")
                await self.session._on_notify(None, "notifications/tools/list_changed", None)
                if params["arguments"]:
                    late = self.session._on_notify(None, "notifications/message", {"level": "info", "data": "between two calls"})
                    asyncio.get_running_loop().create_task(late)
            if params["name"] == "slow":
                raise MCPError(-32001, "timed out")
            return {"content": [{"type": "text", "text": params["name"]}], "isError": params["name"] == "fail"}
        return dict(ANSWERS[method])

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        self.sent.append(method)


class ClientSession:
    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        dispatcher.session = self
        self.told: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    async def _on_notify(self, dctx: Any, method: str, params: Any) -> None:
        self.told.append((method, params))

    async def _on_request(self, dctx: Any, method: str, params: Any) -> dict[str, Any]:
        return {"role": "assistant"}


started: list[str] = []


@contextlib.asynccontextmanager
async def stdio_client(server: Any) -> AsyncIterator[Any]:
    started.append(server.command)
    yield "reading", object()


SHAPES: dict[str, dict[str, Any]] = {
    "mcp.shared.jsonrpc_dispatcher": {"JSONRPCDispatcher": JSONRPCDispatcher},
    "mcp.client.session": {"ClientSession": ClientSession},
    "mcp.client.stdio": {"stdio_client": stdio_client, "anyio": anyio},
}


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    made = {}
    for name, members in SHAPES.items():
        made[name] = ModuleType(name)
        vars(made[name]).update(members)
        monkeypatch.setitem(sys.modules, name, made[name])
    started.clear()
    mcp.uninstall()  # a replay in this process has installed every adapter
    yield made
    mcp.uninstall()


@pytest.fixture
def sdk(modules: dict[str, ModuleType]) -> dict[str, ModuleType]:
    mcp.install()
    assert mcp.status() == "active"
    return modules


def client(sdk: dict[str, ModuleType], calls: Any) -> Any:
    """An agent that starts a server, shakes hands, lists its tools and does ``calls``."""

    async def agent() -> Any:
        server = SimpleNamespace(command="/usr/bin/node", args=["station.js", "--api-key", "s3cret-s3cret"], env={"A": "1"}, cwd=None)
        async with sdk["mcp.client.stdio"].stdio_client(server) as (_, writing):
            dispatcher = JSONRPCDispatcher(writing)
            await ClientSession(dispatcher).__aenter__()
            await dispatcher.send_raw_request("initialize", {"protocolVersion": "2025-11-25", "_meta": {"progressToken": 7}})
            await dispatcher.notify("notifications/initialized", None)
            await dispatcher.send_raw_request("tools/list", None)
            return await calls(dispatcher)

    return agent


def called(dispatcher: Any, name: str, **arguments: Any) -> Any:
    return dispatcher.send_raw_request("tools/call", {"name": name, "arguments": arguments})


def test_while_off_everything_goes_straight_through(sdk: dict[str, ModuleType]) -> None:
    async def calls(dispatcher: Any) -> Any:
        return await called(dispatcher, "look", at="sky")

    assert asyncio.run(client(sdk, calls)())["content"][0]["text"] == "look"
    assert started == ["/usr/bin/node"]


def test_requests_are_steps_and_a_replay_sends_none(sdk: dict[str, ModuleType]) -> None:
    async def calls(dispatcher: Any) -> Any:
        found = await asyncio.gather(called(dispatcher, "look", at="sky"), called(dispatcher, "fail"), called(dispatcher, "look", at="sea"))
        with pytest.raises(MCPError) as raised:
            await called(dispatcher, "slow")
        await dispatcher.send_raw_request("resources/read", {"uri": "station://manual"})
        return found, raised.value.error.message, dispatcher.sent

    tape = recorded(client(sdk, calls))
    steps = tape.steps
    assert [(s[names.STEP_KIND], s[names.STEP_NAME], s[names.STEP_OUTCOME]) for s in steps] == [
        ("mcp", "connect", "ok"),
        ("mcp", "initialize", "ok"),
        ("mcp", "tools/list", "ok"),
        ("tool_call", "look", "ok"),
        ("tool_call", "fail", "tool_error"),
        ("tool_call", "look", "ok"),
        ("tool_call", "slow", "timeout"),
        ("mcp", "resources/read", "ok"),
    ]
    connect, initialize, _, look, fail, *_ = steps
    assert json.loads(initialize[names.STEP_INPUT]) == {"protocolVersion": "2025-11-25"}
    assert json.loads(connect[names.STEP_INPUT])["command"] == "node"
    assert "s3cret" not in json.dumps(steps)
    assert look[names.STEP_EFFECT] == "read"
    assert fail[names.STEP_EFFECT] == "unknown"
    assert (look[names.MCP_SERVER_NAME], look[names.TOOL_VERSION]) == ("station", "1.2")
    assert look[names.TOOL_SCHEMA_DIGEST] != fail[names.TOOL_SCHEMA_DIGEST]
    assert steps[-1][names.MCP_RESOURCE_URI] == "station://manual"

    result = replayed(tape, client(sdk, calls))
    assert result.equal, result.differences
    found, message, sent = result.value
    assert [f["content"][0]["text"] for f in found] == ["look", "fail", "look"]
    assert (message, sent) == ("timed out", ["notifications/initialized"])
    assert started == ["/usr/bin/node"], "the replay has started a server"


def test_what_a_server_asks_belongs_to_the_call_it_is_answering(sdk: dict[str, ModuleType]) -> None:
    async def calls(dispatcher: Any) -> Any:
        return await called(dispatcher, "ask")

    tape = recorded(client(sdk, calls))
    asking, asked = tape.steps[-2:]
    assert (asked[names.STEP_KIND], asked[names.STEP_NAME]) == ("mcp", "sampling/createMessage")
    assert asked[names.STEP_PATH].startswith(asking[names.STEP_PATH] + "/")
    assert replayed(tape, client(sdk, calls)).equal


def test_a_tool_of_a_framework_that_is_an_mcp_tool_is_one_step(sdk: dict[str, ModuleType]) -> None:
    from spanreplay.instrumentation import tool

    async def calls(dispatcher: Any) -> Any:
        @tool
        async def station__look(at: str) -> Any:
            return await called(dispatcher, "look", at=at)

        return await station__look("sky")

    tape = recorded(client(sdk, calls))
    step = tape.steps[-1]
    assert (step[names.STEP_NAME], step[names.STEP_EFFECT]) == ("station__look", "read")
    assert (step[names.MCP_SERVER_NAME], step[names.TOOL_VERSION]) == ("station", "1.2")


def test_a_connection_that_failed_fails_again(sdk: dict[str, ModuleType]) -> None:
    @contextlib.asynccontextmanager
    async def nothing(server: Any) -> AsyncIterator[Any]:
        raise FileNotFoundError(2, "no such program", "node")
        yield

    mcp.uninstall()
    sdk["mcp.client.stdio"].stdio_client = nothing  # type: ignore[attr-defined]
    mcp.install()

    async def agent() -> str:
        try:
            async with sdk["mcp.client.stdio"].stdio_client(SimpleNamespace(command="node", args=[], env=None, cwd=None)):
                return "connected"
        except FileNotFoundError as error:
            return f"{error.strerror} {error.filename}"

    tape = recorded(agent)
    assert tape.outcomes == ["error"]
    result = replayed(tape, agent)
    assert (result.value, result.equal) == ("no such program node", True)


def test_another_signature_is_said_and_nothing_breaks(modules: dict[str, ModuleType]) -> None:
    class Changed:
        async def send_raw_request(self, message: Any) -> str:
            return "as before"

    modules["mcp.shared.jsonrpc_dispatcher"].JSONRPCDispatcher = Changed  # type: ignore[attr-defined]
    mcp.install()
    assert mcp.status().startswith("unsupported: wanted Changed.send_raw_request(self, method, params, opts)")
    assert asyncio.run(Changed().send_raw_request("m")) == "as before"


def test_uninstalled_it_is_as_before(sdk: dict[str, ModuleType]) -> None:
    original = SHAPES["mcp.client.stdio"]["stdio_client"]
    assert stdio_client is sdk["mcp.client.stdio"].stdio_client is not original, "also where it was imported by name"
    mcp.uninstall()
    assert stdio_client is sdk["mcp.client.stdio"].stdio_client is original
    assert not hasattr(JSONRPCDispatcher.send_raw_request, "__wrapped__")


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({"readOnlyHint": True, "destructiveHint": True}, "read"),
        ({"destructiveHint": True}, "irreversible"),
        ({"destructiveHint": False}, "write"),
        ({"readOnlyHint": False}, "irreversible"),
        ({"readOnlyHint": False, "idempotentHint": True}, "write"),
        ({"idempotentHint": True}, "unknown"),
        ({"readOnlyHint": "yes"}, "unknown"),
        (None, "unknown"),
    ],
)
def test_annotations_are_effects(hints: Any, effect: str) -> None:
    assert effect_of(hints) == effect


@pytest.mark.parametrize("odd", [None, 7, [], {"tools": 7}, {"tools": [7, {}, {"name": 7}]}, {"serverInfo": [], "_meta": 3}])
def test_odd_results_say_nothing(odd: Any) -> None:
    server = Server()
    for method in ("initialize", "tools/list", "ping"):
        server.learn(method, odd)
    assert (server.tools, server.attributes()) == ({}, {})


def test_what_a_server_tells_while_it_works_is_told_again(sdk: dict[str, ModuleType]) -> None:
    async def calls(dispatcher: Any) -> Any:
        async def failing(*told: Any) -> None:
            dispatcher.session.told.append(told)
            raise ValueError("an agent's callback may fail")

        async def quiet(*told: Any) -> None:
            dispatcher.session.told.append(told)

        for arguments in ({"late": True}, {}):
            await dispatcher.send_raw_request("tools/call", {"name": "tell", "arguments": arguments}, {"on_progress": quiet})
            await asyncio.sleep(0)
        with contextlib.suppress(ValueError):  # this dispatcher lets it through, that of the SDK does not
            await dispatcher.send_raw_request("tools/call", {"name": "tell", "arguments": {}}, {"on_progress": failing})
        return dispatcher.session.told

    live: list[Any] = []

    async def agent() -> None:
        live.append(await client(sdk, calls)())

    tape = recorded(agent)
    once = [("notifications/message", {"level": "info", "data": "begun"}), (1.0, 2.0, "half"), ("notifications/tools/list_changed", None)]
    late = ("notifications/message", {"level": "info", "data": "between two calls"})
    assert live == [[*once, late, *once, *once[:2]]]
    again = replayed(tape, client(sdk, calls))
    assert again.value == live[0]
    assert again.verdict.equal
