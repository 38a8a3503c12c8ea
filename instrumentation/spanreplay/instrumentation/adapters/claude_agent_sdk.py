"""Claude Agent SDK: its runs, what passes between the program and the CLI, and the tools of the program itself (0.1.50 to 0.2.189).

The CLI is a process of its own, and its transport the only place where it is seen, see
:mod:`spanreplay.instrumentation.claude_conversation`. Hooks and permission callbacks are the program's code and run in a replay too.
"""

import dataclasses
import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib import metadata
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary.boundary import acall, here
from spanreplay.boundary.call import OutcomeName
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.claude_conversation import Conversation
from spanreplay.instrumentation.claude_steps import OWN_TOOLS
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.untaped import unnamed

NAME: Final = "claude_agent_sdk"
_LAYER: Final = "claude_agent_sdk.tool"
_SETTINGS: Final = ("model", "system_prompt", "allowed_tools", "disallowed_tools", "permission_mode", "max_turns", "cwd")

_conversations: WeakKeyDictionary[Any, Conversation] = WeakKeyDictionary()
_runs: WeakKeyDictionary[Any, AgentRun] = WeakKeyDictionary()
"""Runs of clients that are connected."""


def _patch_transport(module: ModuleType, patches: Patches) -> None:
    owner = module.SubprocessCLITransport
    for name, parameters in (("connect", ["self"]), ("write", ["self", "data"]), ("read_messages", ["self"]), ("close", ["self"])):
        expect(owner, name, parameters)
    patches.replace(owner, "connect", _connect)
    patches.replace(owner, "write", _write)
    patches.replace(owner, "read_messages", _read_messages)
    patches.replace(owner, "end_input", _end_input)
    patches.replace(owner, "close", _close)


def _patch_query(module: ModuleType, patches: Patches) -> None:
    expect(module.InternalClient, "process_query", ["self", "prompt", "options"])
    patches.replace(module.InternalClient, "process_query", _observed_query)


def _patch_client(module: ModuleType, patches: Patches) -> None:
    expect(module.ClaudeSDKClient, "connect", ["self", "prompt"])
    patches.replace(module.ClaudeSDKClient, "connect", _observed_connect)
    patches.replace(module.ClaudeSDKClient, "receive_messages", _observed_messages)
    patches.replace(module.ClaudeSDKClient, "disconnect", _observed_disconnect)


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module, "create_sdk_mcp_server", ["name", "version", "tools"])
    patches.replace(module, "create_sdk_mcp_server", _observed_server)


_hooks: Final = Hooks(
    NAME,
    {
        "claude_agent_sdk._internal.transport.subprocess_cli": _patch_transport,
        "claude_agent_sdk._internal.client": _patch_query,
        "claude_agent_sdk.client": _patch_client,
        "claude_agent_sdk": _patch_tools,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- the CLI ----------------------------------------------------------------------------------------------------


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def connect(self: Any) -> None:
        scope = here()
        if scope is None:
            await original(self)
            return
        talk = _conversations.setdefault(self, Conversation(scope))
        if talk.replaying:
            self._ready = True
            return
        with unnamed():
            await original(self)

    return connect


def _write(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def write(self: Any, data: str) -> None:
        talk = _conversations.get(self)
        if talk is not None:
            talk.wrote(data)
        if talk is None or not talk.replaying:
            await original(self, data)

    return write


def _read_messages(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def read_messages(self: Any) -> Any:
        talk = _conversations.get(self)
        return original(self) if talk is None else talk.read(lambda: original(self))

    return read_messages


def _end_input(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def end_input(self: Any) -> None:
        talk = _conversations.get(self)
        if talk is None or not talk.replaying:
            await original(self)

    return end_input


def _close(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def close(self: Any) -> None:
        talk = _conversations.get(self)
        try:
            if talk is None or not talk.replaying:
                await original(self)
        finally:
            if talk is not None:
                await talk.close()

    return close


# ---- runs -------------------------------------------------------------------------------------------------------


@functools.cache
def _version() -> str:
    return f"claude-agent-sdk {metadata.version('claude-agent-sdk')}"


def _run(prompt: Any, options: Any) -> AgentRun:
    settings = {name: value for name in _SETTINGS if (value := getattr(options, name, None)) not in (None, [], "")}
    told = {name: value if isinstance(value, str | int | list | Mapping) else str(value) for name, value in settings.items()}
    agents = sorted(getattr(options, "agents", None) or ())
    servers = getattr(options, "mcp_servers", None)
    named = sorted(servers) if isinstance(servers, Mapping) else []
    definition = {"framework": _version(), **told} | ({"agents": agents} if agents else {}) | ({"mcp_servers": named} if named else {})
    run = agent_run("claude", input=prompt if isinstance(prompt, str) else None, definition=definition)
    run.begin()
    return run


def _keep_result(run: AgentRun, message: Any) -> None:
    """The last result that the CLI gave is what the run has come to."""
    if type(message).__name__ == "ResultMessage":
        run.output = getattr(message, "result", None)
        run.outcome = "error" if getattr(message, "is_error", False) else None


def _observed_query(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def process_query(self: Any, prompt: Any, options: Any, *args: Any, **more: Any) -> AsyncGenerator[Any]:
        messages = original(self, prompt, options, *args, **more)
        scope = here()
        run = None if scope is None else attempt(scope, "a run of Claude", lambda: _run(prompt, options))
        if run is None:
            async for message in messages:
                yield message
            return
        error: BaseException | None = None
        try:
            while True:
                with run.body():
                    message = await anext(messages, None)
                if message is None:
                    break
                _keep_result(run, message)
                yield message
        except BaseException as raised:
            error = raised
            raise
        finally:
            try:
                with run.body():
                    await messages.aclose()
            finally:
                run.end(error)

    return process_query


def _observed_connect(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def connect(self: Any, prompt: Any = None) -> None:
        scope = here()
        run = None if scope is None else attempt(scope, "a run of Claude", lambda: _run(prompt, self.options))
        if run is None:
            await original(self, prompt)
            return
        _runs[self] = run
        try:
            with run.body():
                await original(self, prompt)
        except BaseException as error:
            _runs.pop(self, None)
            run.end(error)
            raise

    return connect


def _observed_messages(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def receive_messages(self: Any) -> AsyncGenerator[Any]:
        async for message in original(self):
            run = _runs.get(self)
            if run is not None:
                _keep_result(run, message)
            yield message

    return receive_messages


def _observed_disconnect(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def disconnect(self: Any) -> None:
        run = _runs.pop(self, None)
        try:
            await original(self)
        finally:
            if run is not None:
                run.end()

    return disconnect


# ---- tools in the program ---------------------------------------------------------------------------------------


def _observed_server(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_sdk_mcp_server(name: str, version: str = "1.0.0", tools: Any = None) -> Any:
        if tools:
            tools = [dataclasses.replace(each, handler=_observed_tool(f"mcp__{name}__", version, each)) for each in tools]
        return original(name, version, tools)

    return create_sdk_mcp_server


def _observed_tool(prefix: str, version: str, tool: Any) -> Callable[..., Any]:
    handler = tool.handler

    @functools.wraps(handler)
    async def observed(arguments: Any) -> Any:
        scope = here()
        if scope is None:
            return await handler(arguments)
        if scope.run is not None:
            scope.run.state.setdefault(OWN_TOOLS, {})[prefix] = version
        schema = tool.input_schema if isinstance(tool.input_schema, Mapping) else {}
        plain = {key: getattr(value, "__name__", value) for key, value in schema.items()}
        offered = Offered(name=prefix + tool.name, description=tool.description, parameters=plain, function=handler)
        call = framework.tool_call(scope, offered, arguments, layer=_LAYER, ending=_ending)
        return await handler(arguments) if call is None else await acall(scope, call, lambda: handler(arguments))

    return observed


def _ending(given: object) -> OutcomeName | None:
    return "tool_error" if isinstance(given, Mapping) and given.get("is_error") is True else None
