"""The steps that the messages between a program and the Claude CLI tell of.

The CLI asks the model and runs most tools, so these are told of and not seen: graded ``structure``. A tool call that is a sub-agent has
an agent inside it, with what that one said and did: its messages name the call (``parent_tool_use_id``). What the program answers —
permission callbacks, hooks — is its own, and compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation.framework import attempt
from spanreplay.semconv import attributes as names

Message = dict[str, Any]

OWN_TOOLS: Final = "claude_tools"
"""Beginnings of the names of the tools that run in this process, in the run's state."""
_USAGE: Final[Mapping[str, str]] = {
    "input_tokens": names.GEN_AI_USAGE_INPUT_TOKENS,
    "output_tokens": names.GEN_AI_USAGE_OUTPUT_TOKENS,
    "cache_read_input_tokens": names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "cache_creation_input_tokens": names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
}
_OUTCOMES: Final = {"allow": "allow", "approve": "allow", "deny": "deny", "block": "deny", "ask": "require_approval"}
"""What a hook says of a call, as a decision."""


@dataclass(frozen=True, slots=True)
class _SubAgent:
    """A tool call that is an agent, under way."""

    call: Step
    agent: Step
    scope: Scope
    """Of what it does."""


class Steps:
    """Prompts, what the model said, tools that the CLI has run, sub-agents, what the program allowed and what its hooks said.

    Args:
        scope: of the run.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._said: dict[str | None, list[Message]] = {}
        """Messages of one answer of the model, by the call whose sub-agent it is for: the CLI sends each block by itself."""
        self._asked: dict[str, Message] = {}
        """Tool calls that are not answered yet, by id."""
        self._agents: dict[str, _SubAgent] = {}
        self._requests: dict[str, Message] = {}
        """What the CLI wants of the program, by the id of its request."""

    def wrote(self, message: Message) -> None:
        """The program has written this."""
        kind = message.get("type")
        if kind == "user":
            content = _mapping(message.get("message")).get("content")
            self._make(lambda: Call(kind="io", name="prompt", input=codec.encode({"prompt": content})))
        elif kind == "control_response":
            response = _mapping(message.get("response"))
            asked = self._requests.pop(str(response.get("request_id")), None)
            if asked is not None:
                self._make(lambda: _answered(asked, response))

    def read(self, message: Message) -> None:
        """The CLI has written this."""
        kind, inner = message.get("type"), _mapping(message.get("message"))
        parent = message.get("parent_tool_use_id")
        parent = parent if isinstance(parent, str) else None
        if kind == "stream_event":
            return
        if kind in ("assistant", "user"):
            said = self._said.get(parent)
            if kind == "assistant" and said and inner.get("id") == _mapping(said[-1].get("message")).get("id"):
                said.append(message)
                return
            self._flush(parent)
        else:
            self._flush_all()
        if kind == "assistant":
            self._said[parent] = [message]
        elif kind == "control_request":
            request = _mapping(message.get("request"))
            if request.get("subtype") in ("can_use_tool", "hook_callback"):
                self._requests[str(message.get("request_id"))] = request
        elif kind == "user":
            for block in _blocks(inner):
                if block.get("type") == "tool_result":
                    self._result(block, self._within(parent))

    def close(self) -> None:
        """The conversation is over: what is still under way was left."""
        self._flush_all()
        for agent in reversed(self._agents.values()):
            agent.agent.end("cancelled")
            agent.call.end("cancelled")
        self._agents.clear()

    def _result(self, block: Message, scope: Scope) -> None:
        call_id, content = str(block.get("tool_use_id")), block.get("content")
        self._flush(call_id)
        asked, agent = self._asked.pop(call_id, None), self._agents.pop(call_id, None)
        if agent is not None:
            agent.agent.succeed(content)
            agent.call.succeed(content, outcome="tool_error" if block.get("is_error") is True else None)
        elif asked is not None and not str(asked.get("name")).startswith(_own_tools(self._scope)):
            self._make(lambda: _tool_call(asked, block), content, scope)

    def _within(self, parent: str | None) -> Scope:
        """Where a message belongs: to a sub-agent, which may begin with it."""
        found = None if parent is None else self._agents.get(parent)
        if found is not None:
            return found.scope
        asked = None if parent is None else self._asked.get(parent)
        if parent is None or asked is None:
            return self._scope
        made = attempt(self._scope, "a sub-agent of Claude", lambda: self._sub_agent(asked))
        if made is None:
            return self._scope
        self._agents[parent] = made
        return made.scope

    def _sub_agent(self, asked: Message) -> _SubAgent | None:
        given = _mapping(asked.get("input"))
        tool = _tool_call(asked, {})
        tool.passed = True  # nothing runs: the CLI's messages are recorded ones
        name, prompt = str(given.get("subagent_type") or asked.get("name")), given.get("prompt")
        agent = Call(kind="agent", name=name, input=codec.encode(prompt), attributes={names.STEP_ATTESTED: True})
        call = boundary.begin(self._scope, tool)
        if call is None:
            return None
        call.ask()
        with call.body():
            inside = boundary.begin(here() or self._scope, agent)
            if inside is None:
                call.end("unknown")
                return None
            inside.ask()
            with inside.body():
                return _SubAgent(call, inside, here() or self._scope)

    def _flush_all(self) -> None:
        for parent in tuple(self._said):
            self._flush(parent)

    def _flush(self, parent: str | None) -> None:
        """An answer of the model is complete."""
        said = self._said.pop(parent, None)
        if not said:
            return
        scope = self._within(parent)
        blocks = [block for message in said for block in _blocks(_mapping(message.get("message")))]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        self._asked.update({str(block.get("id")): block for block in calls})
        asked = [(str(block.get("id")), str(block.get("name")), block.get("input")) for block in calls]

        def told() -> None:
            inside = here()
            if inside is not None and inside.step is not None:
                ask_for(inside.step, asked)

        call = attempt(self._scope, "an answer of the model", lambda: _model_call(_mapping(said[-1].get("message")), blocks))
        if call is not None:
            boundary.call(scope, call, told)

    def _make(self, make: Callable[[], Call], result: object = None, scope: Scope | None = None) -> None:
        call = attempt(self._scope, "a step of the Claude CLI", make)
        if call is not None:
            boundary.call(scope or self._scope, call, lambda: result)


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


def _answered(asked: Message, response: Message) -> Call:
    """What the program has answered to a request of the CLI."""
    answer = _mapping(response.get("response"))
    failure = response.get("error")
    if asked.get("subtype") == "can_use_tool":
        outcome = "allow" if answer.get("behavior") == "allow" else "deny"
        more = {"arguments": asked.get("input"), "updated": answer.get("updatedInput")}
        reason = answer.get("message") or failure
        return _decision(asked.get("tool_name"), outcome, "can_use_tool", reason, asked.get("tool_use_id"), more)
    given = _mapping(asked.get("input"))
    event, tool = str(given.get("hook_event_name")), given.get("tool_name")
    about = _mapping(answer.get("hookSpecificOutput"))
    verdict = _OUTCOMES.get(str(about.get("permissionDecision") or answer.get("decision")))
    if event == "PreToolUse" and verdict is not None:
        reason = about.get("permissionDecisionReason") or answer.get("reason")
        more = {"arguments": given.get("tool_input"), "answer": answer}
        return _decision(tool, verdict, f"hook {event}", reason, asked.get("tool_use_id"), more)
    heard = {"event": event, "tool": tool, "tool_use_id": asked.get("tool_use_id"), "answer": answer, "error": failure}
    return Call(kind="io", name=f"hook {event}", input=codec.encode(heard))


def _decision(tool: object, outcome: str, by: str, reason: object, call_id: object, more: Message) -> Call:
    name = str(tool)
    decision = {"tool": name, "outcome": outcome, "by": by, "reason": reason}
    return Call(
        kind="decision",
        name=name,
        input=codec.encode({**decision, **more}),
        attributes={
            names.GEN_AI_TOOL_CALL_DECISION_OUTCOME: outcome,
            names.GEN_AI_TOOL_NAME: name,
            names.DECISION: canonical_json(decision),
        },
        call_id=call_id if isinstance(call_id, str) else None,
    )


def _blocks(message: Message) -> list[Message]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _mapping(value: object) -> Message:
    return value if isinstance(value, dict) else {}
