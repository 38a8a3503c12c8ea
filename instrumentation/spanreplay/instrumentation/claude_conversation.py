"""What a program and the Claude CLI that works for it say to each other, as one stream; and the steps that the CLI tells of.

The CLI is another process: what it does is known from its messages only. A record keeps both directions in order. A replay gives the
program the CLI's messages, each once the program has written as much as it had when the message came, and starts no CLI. Requests carry
random ids of the SDK's own; an answer to one is given the id that the request has now.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.streams import astream
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation.framework import attempt
from spanreplay.semconv import attributes as names

Message = dict[str, Any]

_USAGE: Final[Mapping[str, str]] = {
    "input_tokens": names.GEN_AI_USAGE_INPUT_TOKENS,
    "output_tokens": names.GEN_AI_USAGE_OUTPUT_TOKENS,
    "cache_read_input_tokens": names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "cache_creation_input_tokens": names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
}


class Conversation:
    """One connection to a CLI.

    Args:
        scope: of the run that it is for.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.replaying = scope.session.mode == "replay"
        self._written: list[Message] = []
        self._told = 0
        """Writes that are in the stream already."""
        self._more = asyncio.Event()
        self._steps = _Steps(scope)

    def wrote(self, data: str) -> None:
        """The program has written a line.

        Raises:
            ControlSignal: a replay finds that it is not what was recorded.
        """
        message = _parsed(data)
        self._written.append(message)
        self._more.set()
        self._steps.wrote(message)

    async def read(self, source: Callable[[], AsyncIterator[Message]]) -> AsyncGenerator[Message]:
        """The CLI's messages: from ``source``, or recorded ones."""
        call = Call(kind="io", name="claude", input=codec.encode({"conversation": "claude"}))
        pairs = astream(self.scope, call, lambda: self._both(source))
        renamed: dict[str, str] = {}
        seen = 0
        async for pair in pairs:
            if "to" in pair:
                seen += 1
                if self.replaying:
                    now = await self._wait(seen)
                    if pair["to"].get("request_id") and now.get("request_id"):
                        renamed[pair["to"]["request_id"]] = now["request_id"]
                continue
            message = pair["from"]
            self._steps.read(message)
            yield _answering(message, renamed) if renamed else message
        self._steps.flush()

    async def _both(self, source: Callable[[], AsyncIterator[Message]]) -> AsyncGenerator[dict[str, Message]]:
        async for message in source():
            for written in self._new():
                yield {"to": written}
            yield {"from": message}
        for written in self._new():
            yield {"to": written}

    def _new(self) -> list[Message]:
        new = self._written[self._told :]
        self._told += len(new)
        return new

    async def _wait(self, count: int) -> Message:
        while len(self._written) < count:
            self._more.clear()
            await self._more.wait()
        return self._written[count - 1]


def _parsed(data: str) -> Message:
    try:
        message = json.loads(data)
    except ValueError:
        message = None
    return message if isinstance(message, dict) else {"raw": data}


def _answering(message: Message, renamed: Mapping[str, str]) -> Message:
    response = message.get("response")
    if message.get("type") != "control_response" or not isinstance(response, dict) or response.get("request_id") not in renamed:
        return message
    return {**message, "response": {**response, "request_id": renamed[response["request_id"]]}}


class _Steps:
    """The steps that messages tell of: prompts, what the model said, tools that the CLI has run, what the program allowed."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._said: list[Message] = []
        """Messages of one answer of the model: the CLI sends each block by itself."""
        self._asked: dict[str, Message] = {}
        """Tool calls that are not answered yet, by id."""
        self._permissions: dict[str, Message] = {}
        """What the CLI wants to be allowed, by the id of its request."""

    def wrote(self, message: Message) -> None:
        """The program has written this."""
        kind = message.get("type")
        if kind == "user":
            content = _mapping(message.get("message")).get("content")
            self._make(lambda: Call(kind="io", name="prompt", input=codec.encode({"prompt": content})))
        elif kind == "control_response":
            response = _mapping(message.get("response"))
            asked = self._permissions.pop(str(response.get("request_id")), None)
            if asked is not None:
                self._make(lambda: _decision(asked, _mapping(response.get("response"))))

    def read(self, message: Message) -> None:
        """The CLI has written this."""
        kind, inner = message.get("type"), _mapping(message.get("message"))
        if kind == "assistant" and self._said and inner.get("id") == _mapping(self._said[-1].get("message")).get("id"):
            self._said.append(message)
            return
        if kind == "stream_event":
            return
        self.flush()
        if kind == "assistant":
            self._said.append(message)
        elif kind == "control_request":
            request = _mapping(message.get("request"))
            if request.get("subtype") == "can_use_tool":
                self._permissions[str(message.get("request_id"))] = request
        elif kind == "user":
            for block in _blocks(inner):
                asked = self._asked.pop(str(block.get("tool_use_id")), None) if block.get("type") == "tool_result" else None
                if asked is not None and not str(asked.get("name")).startswith(_own_tools(self._scope)):
                    self._make(lambda block=block, asked=asked: _tool_call(asked, block), block.get("content"))  # type: ignore[misc]

    def flush(self) -> None:
        """An answer of the model is complete."""
        said, self._said = self._said, []
        if not said:
            return
        blocks = [block for message in said for block in _blocks(_mapping(message.get("message")))]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        self._asked.update({str(block.get("id")): block for block in calls})
        call = attempt(self._scope, "an answer of the model", lambda: _model_call(_mapping(said[-1].get("message")), blocks))
        if call is None:
            return
        asked = [(str(block.get("id")), str(block.get("name")), block.get("input")) for block in calls]

        def told() -> None:
            scope = here()
            if scope is not None and scope.step is not None:
                ask_for(scope.step, asked)

        boundary.call(self._scope, call, told)

    def _make(self, make: Callable[[], Call], result: object = None) -> None:
        call = attempt(self._scope, "a step of the Claude CLI", make)
        if call is not None:
            boundary.call(self._scope, call, lambda: result)


OWN_TOOLS: Final = "claude_tools"
"""Beginnings of the names of the tools that run in this process, in the run's state."""


def _own_tools(scope: Scope) -> tuple[str, ...]:
    found = {} if scope.run is None else scope.run.state.get(OWN_TOOLS, {})
    return tuple(found) or ("\0",)


def _model_call(message: Message, blocks: list[Message]) -> Call:
    parts = [_part(block) for block in blocks]
    usage = _mapping(message.get("usage"))
    attributes: dict[str, Any] = {
        names.STEP_ATTESTED: True,
        names.GEN_AI_PROVIDER_NAME: "anthropic",
        names.GEN_AI_OUTPUT_MESSAGES: canonical_json([{"role": "assistant", "parts": parts}]),
        **{attribute: usage[key] for key, attribute in _USAGE.items() if isinstance(usage.get(key), int)},
    }
    for key, attribute in (("id", names.GEN_AI_RESPONSE_ID), ("model", names.GEN_AI_RESPONSE_MODEL)):
        if isinstance(message.get(key), str):
            attributes[attribute] = message[key]
    return Call(kind="model_call", name=str(message.get("model") or "claude"), attributes=attributes)


def _part(block: Message) -> Message:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "content": block.get("text")}
    if kind == "tool_use":
        return {"type": "tool_call", "id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
    if kind == "thinking":
        return {"type": "reasoning", "content": block.get("thinking")}
    return block


def _tool_call(asked: Message, block: Message) -> Call:
    failed = block.get("is_error") is True
    return Call(
        kind="tool_call",
        name=str(asked.get("name")),
        input=codec.encode(asked.get("input") or {}),
        input_attribute=names.GEN_AI_TOOL_CALL_ARGUMENTS,
        result_attribute=names.GEN_AI_TOOL_CALL_RESULT,
        attributes={names.STEP_ATTESTED: True, names.GEN_AI_TOOL_TYPE: "extension"},
        call_id=str(asked.get("id")),
        effect="unknown",
        ending=lambda _: "tool_error" if failed else None,
    )


def _decision(asked: Message, answer: Message) -> Call:
    outcome = "allow" if answer.get("behavior") == "allow" else "deny"
    decision = {"tool": asked.get("tool_name"), "outcome": outcome, "by": "can_use_tool", "reason": answer.get("message")}
    name = str(asked.get("tool_name"))
    return Call(
        kind="decision",
        name=name,
        input=codec.encode({**decision, "arguments": asked.get("input"), "updated": answer.get("updatedInput")}),
        attributes={
            names.GEN_AI_TOOL_CALL_DECISION_OUTCOME: outcome,
            names.GEN_AI_TOOL_NAME: name,
            names.DECISION: canonical_json(decision),
        },
        call_id=asked.get("tool_use_id"),
    )


def _blocks(message: Message) -> list[Message]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _mapping(value: object) -> Message:
    return value if isinstance(value, dict) else {}
