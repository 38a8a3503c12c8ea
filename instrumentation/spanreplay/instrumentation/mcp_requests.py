"""Requests of the Model Context Protocol as the Boundary takes them, and what is learnt of a server from its answers.

Pure: JSON in, calls out; no SDK is needed. The protocol: <https://modelcontextprotocol.io/specification>; names of attributes: the MCP
part of the GenAI conventions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spanreplay.boundary.call import AttributeValue, Call, Effect, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.mcp_told import Message, Told
from spanreplay.semconv import attributes as names

LAYER: Final = "mcp"
FROM_SERVER: Final = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
"""Requests that a server sends: they belong to the request that it is answering."""

_TOOLS_CALL: Final = "tools/call"
_READS: Final = ("initialize", "server/discover", "ping", "completion/complete", "prompts/", "resources/", "tools/list")
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
"""Key in ``_meta`` under which a server names itself since revision 2026-07-28."""
_MOST_TOOLS: Final = 10_000
_MOST_EARLY: Final = 10_000
_TIMED_OUT: Final = frozenset({-32001, 408})
"""Codes of the Python SDK's own errors for an answer that did not come in time, versions 2 and 1."""


@dataclass(slots=True, kw_only=True, weakref_slot=True)
class Server:
    """What is known of the server at the other end of a session."""

    name: str | None = None
    version: str | None = None
    protocol: str | None = None
    tools: dict[str, Offered] = field(default_factory=dict)
    """As ``tools/list`` has shown them last."""
    answered: bool = False
    """A replay has answered one of its requests, so that nobody is there."""
    open: list[Step] = field(default_factory=list)
    """Requests that wait for their answer."""
    early: list[Message] = field(default_factory=list)
    """What it told while no request waited: kept with the next one."""

    def told(self, tell: Callable[[Message], object]) -> Told:
        """For a request that is made now: keeps what the server tells until it has answered, and what it told before."""
        early, self.early = self.early, []
        return Told(tell, early)

    def hear(self, message: Message) -> None:
        """Keep what the server tells with the request made last, else with the next one; inside a framework's step it belongs to that."""
        held = self.open[-1].call.held if self.open else None
        if isinstance(held, Told):
            held.messages.append(message)
        elif not self.open and len(self.early) < _MOST_EARLY:
            self.early.append(message)

    def attributes(self) -> dict[str, AttributeValue]:
        """The server's name, its version and that of the protocol, as far as they are known."""
        known = {names.MCP_SERVER_NAME: self.name, names.MCP_SERVER_VERSION: self.version, names.MCP_PROTOCOL_VERSION: self.protocol}
        return {name: value for name, value in known.items() if value is not None}

    def learn(self, method: str, result: object) -> None:
        """Take in what a result says of the server and its tools. Unknown shapes say nothing."""
        if not isinstance(result, Mapping):
            return
        meta = result.get("_meta")
        self._identify(meta.get(_SERVER_INFO) if isinstance(meta, Mapping) else None)
        if method == "initialize":
            self._identify(result.get("serverInfo"))
            self.protocol = _text(result.get("protocolVersion")) or self.protocol
        elif method == "tools/list" and isinstance(listed := result.get("tools"), Sequence):
            for tool in listed:
                if isinstance(tool, Mapping) and (name := _text(tool.get("name"))) and len(self.tools) < _MOST_TOOLS:
                    self.tools[name] = _offered(name, tool)

    def _identify(self, info: object) -> None:
        if isinstance(info, Mapping):
            self.name = _text(info.get("name")) or self.name
            self.version = _text(info.get("version")) or self.version

    def offered(self, name: str) -> Offered:
        """A tool with everything that is known of it; its version is that of the server, which has no other."""
        tool = self.tools.get(name)
        known = self.attributes()
        if self.version is not None:
            known[names.TOOL_VERSION] = self.version
        known[names.MCP_METHOD_NAME] = _TOOLS_CALL
        if tool is None:
            return Offered(name=name, attributes=known)
        return Offered(
            name=name, description=tool.description, parameters=tool.parameters, effect=tool.effect, attributes={**tool.attributes, **known}
        )


def _offered(name: str, tool: Mapping[Any, Any]) -> Offered:
    return Offered(
        name=name, description=_text(tool.get("description")), parameters=tool.get("inputSchema"), effect=effect_of(tool.get("annotations"))
    )


def effect_of(annotations: object) -> Effect:
    """What a tool's annotations say that a call does outside.

    The protocol: a tool that is not read-only may be destructive unless it says that it is not. A server that says nothing leaves it
    ``unknown``, which counts as a write.
    """
    hints = annotations if isinstance(annotations, Mapping) else {}
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "irreversible"
    if hints.get("destructiveHint") is False:
        return "write"
    if hints.get("readOnlyHint") is False:
        return "write" if hints.get("idempotentHint") is True else "irreversible"
    return "unknown"


def call_of(scope: Scope, server: Server, method: str, params: Mapping[str, Any] | None) -> Call | None:
    """The call that a request is, or ``None`` where it goes straight through: it is a step already, or cannot be described.

    Raises:
        Exception: in a replay, where it cannot be described.
    """
    try:
        given = {key: value for key, value in (params or {}).items() if key != "_meta"}
        name = _text(given.get("name"))
        if method == _TOOLS_CALL and name is not None:
            return _tool_call(scope, server.offered(name), given)
        attributes: dict[str, AttributeValue] = {names.MCP_METHOD_NAME: method, **server.attributes()}
        if (uri := _text(given.get("uri"))) is not None:
            attributes[names.MCP_RESOURCE_URI] = uri
        if method == "prompts/get" and name is not None:
            attributes[names.GEN_AI_PROMPT_NAME] = name
        return Call(
            kind="mcp",
            name=method,
            input=codec.encode(given),
            attributes=attributes,
            effect="read" if method.startswith(_READS) else "unknown",
            span_name=method if name is None else f"{method} {name}",
            client=True,
            ending=ending,
        )
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the MCP request {method}")
        return None


def _tool_call(scope: Scope, offered: Offered, given: Mapping[str, Any]) -> Call | None:
    call = framework.tool_call(scope, offered, given.get("arguments") or {}, layer=LAYER, ending=ending)
    if call is not None:
        call.client = True
        return call
    step = scope.step
    if step is not None and step.call.kind == "tool_call" and step.call.name.endswith(offered.name):  # a framework's step is this call
        known = {key: value for key, value in offered.attributes.items() if key not in step.call.attributes}
        if step.call.effect in (None, "unknown") and offered.effect != "unknown":
            known[names.STEP_EFFECT] = offered.effect
        step.learn(known)
    return None


def ending(given: object) -> OutcomeName | None:
    """How a request ended, from the result or the SDK's exception."""
    if isinstance(given, Mapping):
        return "tool_error" if given.get("isError") is True else None
    code = getattr(getattr(given, "error", None), "code", None)
    return "timeout" if code in _TIMED_OUT else None


def inbound(server: Server, method: str, params: object) -> Call:
    """The step of a request that the server sends: a question to the model or to the human, or which folders it may use."""
    return Call(
        kind="mcp",
        name=method,
        input=codec.encode(params),
        attributes={names.MCP_METHOD_NAME: method, **server.attributes()},
        span_name=method,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
