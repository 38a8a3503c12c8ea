"""OpenAI Agents SDK: its agents, hand-offs, tools, sessions, and what people and guardrails decided (openai-agents 0.9 to 0.24).

``AgentRunner.run`` is what ``Runner.run`` and ``Runner.run_sync`` go through; ``start_streaming`` is what ``Runner.run_streamed`` starts a
task for. Models go over HTTP and are seen there. For tools see :mod:`spanreplay.instrumentation.openai_agents_tools`, for sessions
:mod:`spanreplay.instrumentation.openai_agents_sessions`.
"""

import functools
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from types import MappingProxyType, ModuleType
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import acall, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import in_force
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation import openai_agents_sessions as sessions
from spanreplay.instrumentation import openai_agents_tools as tools
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, Decision, agent_run, record_decision
from spanreplay.instrumentation.patching import Patches
from spanreplay.semconv import attributes as names

NAME: Final = "openai_agents"
_NESTED: Final = "agents.agent"
"""Module that hands a decision on to the agent inside a tool, by the method with which an application decides."""
_SETTINGS: Final = 64
_known_settings: Final[dict[Any, Any]] = {}
_NAMES: Final = ("name", "agent_name", "__qualname__")
_ATOMS: Final = frozenset({type(None), bool, int, float, str})


def _patch_runner(module: ModuleType, patches: Patches) -> None:
    expect(module.AgentRunner, "run", ["self", "starting_agent", "input"])
    patches.replace(module.AgentRunner, "run", _observed_run)


def _patch_loop(module: ModuleType, patches: Patches) -> None:
    expect(module, "start_streaming", ["starting_input", "streamed_result", "starting_agent"])
    patches.rebind(module, "start_streaming", _observed_stream)
    for name in ("run_single_turn", "run_single_turn_streamed"):
        patches.rebind(module, name, _observed_turn)


def _patch_handoffs(module: ModuleType, patches: Patches) -> None:
    expect(module, "execute_handoffs", ["run_handoffs"])
    patches.rebind(module, "execute_handoffs", _observed_handoff)


def _patch_decisions(module: ModuleType, patches: Patches) -> None:
    for name in ("approve_tool", "reject_tool"):
        expect(module.RunContextWrapper, name, ["self", "approval_item"])
    patches.replace(module.RunContextWrapper, "approve_tool", functools.partial(_observed_decision, "allow"))
    patches.replace(module.RunContextWrapper, "reject_tool", functools.partial(_observed_decision, "deny"))


def _patch_guardrails(names_of: tuple[str, str], module: ModuleType, patches: Patches) -> None:
    for owner in map(vars(module).__getitem__, names_of):
        expect(owner, "run", ["self"])
        patches.replace(owner, "run", _observed_guardrail)


_hooks: Final = Hooks(
    NAME,
    {
        "agents.run": _patch_runner,
        "agents.run_internal.run_loop": _patch_loop,
        "agents.run_internal.turn_resolution": _patch_handoffs,
        "agents.run_internal.items": tools.patch_items,
        "agents.run_internal.tool_actions": tools.patch_actions,
        "agents.tool": tools.patch_tools,
        "agents.run_context": _patch_decisions,
        "agents.guardrail": functools.partial(_patch_guardrails, ("InputGuardrail", "OutputGuardrail")),
        "agents.tool_guardrails": functools.partial(_patch_guardrails, ("ToolInputGuardrail", "ToolOutputGuardrail")),
        "agents.memory.sqlite_session": sessions.patch_sqlite,
    },
)
install, status = _hooks.install, _hooks.status


def uninstall() -> None:
    """Leave the SDK as it was."""
    _hooks.uninstall()
    sessions.forget()


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:  # noqa: A002 — the SDK's name
        scope = here()
        made = None if scope is None else attempt(scope, "a run of an agent", lambda: _agent_run(starting_agent, input, options))
        if scope is None or made is None:
            return await original(self, starting_agent, input, **options)
        async with made as recorded:
            result = await original(self, starting_agent, input, **options)
            attempt(scope, "the end of a run", lambda: _end(recorded, result))
            return result

    return run


def _observed_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def start_streaming(starting_input: Any, streamed_result: Any, starting_agent: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        given = options.get("run_state") if options.get("is_resumed_state") else starting_input
        made = None if scope is None else attempt(scope, "a run of an agent", lambda: _agent_run(starting_agent, given, options))
        if scope is None or made is None:
            return await original(starting_input, streamed_result, starting_agent, *args, **options)
        async with made as recorded:
            result = await original(starting_input, streamed_result, starting_agent, *args, **options)
            attempt(scope, "the end of a run", lambda: _end(recorded, streamed_result))
            return result

    return start_streaming


def _agent_run(agent: Any, given: Any, options: Mapping[str, Any]) -> AgentRun:
    session = options.get("session")
    sessions.observe(session)
    group = getattr(options.get("run_config"), "group_id", None)
    conversation = options.get("conversation_id") or getattr(session, "session_id", None) or group
    if hasattr(given, "_original_input"):  # a RunState, to go on with
        given = {"resumed": given._original_input, "turn": getattr(given, "_current_turn", None)}
    return agent_run(
        agent.name, input=given, session=conversation if isinstance(conversation, str) else None, definition=_definition(agent)
    )


def _end(recorded: AgentRun, result: Any) -> None:
    waiting = getattr(result, "interruptions", None) or ()
    for item in waiting:
        _decided(item, "require_approval", by=NAME)
    if waiting:
        recorded.outcome = "interrupted"
    recorded.output = result.final_output


@functools.cache
def _version() -> str:
    return f"openai-agents {metadata.version('openai-agents')}"


def _definition(agent: Any) -> dict[str, object]:
    """What makes this agent what it is; what the SDK has no such field of in another version is left out."""
    model: Any = getattr(agent, "model", None)
    settings: Any = getattr(agent, "model_settings", None)
    lists = ("tools", "handoffs", "mcp_servers", "input_guardrails", "output_guardrails")
    made = {
        "framework": _version(),
        "instructions": _text(getattr(agent, "instructions", None)),
        "handoff_description": getattr(agent, "handoff_description", None),
        "model": str(getattr(model, "model", model)) if model is not None else None,
        "model_settings": _settings(settings) if hasattr(settings, "to_json_dict") else None,
        "output_type": _text(getattr(agent, "output_type", None)),
        **{name: [_text(each) for each in getattr(agent, name, None) or ()] for name in lists},
    }
    return {key: value for key, value in made.items() if value not in (None, [], {}, "")}


def _settings(settings: Any) -> Any:
    """As JSON, made once of settings that say the same: the SDK builds a writer for them each time, which costs more than two steps."""
    said = _said_by(settings)
    known = _known_settings.get(said)
    if known is None:
        if len(_known_settings) >= _SETTINGS:
            _known_settings.clear()
        known = _known_settings[said] = settings.to_json_dict()
    return known


def _said_by(settings: Any) -> Any:
    """Equal only for settings that say the same."""
    values = tuple(vars(settings).values()) if hasattr(settings, "__dict__") else (settings,)
    kinds = tuple(map(type, values))  # 1 is written in another way than 1.0, to which it is equal
    return (type(settings), values, kinds) if _ATOMS.issuperset(kinds) else repr(settings)


def _text(value: Any) -> str | None:
    """Instructions are a text or a function that makes one; other things have a name."""
    if value is None or isinstance(value, str):
        return value
    for key in _NAMES:
        named = getattr(value, key, None)
        if isinstance(named, str) and named:
            return named
    function = getattr(value, "guardrail_function", None)
    return getattr(function, "__name__", None) or type(value).__qualname__


def _observed_turn(original: Callable[..., Any]) -> Callable[..., Any]:
    """The model calls of a turn carry the name of the agent whose turn it is: after a hand-off it is not the run's."""

    @functools.wraps(original)
    async def turn(*args: Any, **options: Any) -> Any:
        scope = here()
        added = None if scope is None else attempt(scope, "the agent of a turn", lambda: _in_force(*args, *options.values()))
        if added is None:
            return await original(*args, **options)
        token = in_force.set(MappingProxyType({**in_force.get(), **added}))
        try:
            return await original(*args, **options)
        finally:
            in_force.reset(token)

    return turn


def _in_force(*given: Any) -> dict[str, Any] | None:
    """Of the agent among what a turn is given: bound in newer versions, as it is in older ones."""
    bound = (getattr(each, "public_agent", each) for each in given)
    agent = next((each for each in bound if hasattr(each, "handoff_description") and hasattr(each, "instructions")), None)
    if agent is None:
        return None
    prompt = getattr(agent, "prompt", None)
    hosted = prompt if isinstance(prompt, Mapping) else {}
    made = {
        names.GEN_AI_AGENT_NAME: agent.name,
        names.GEN_AI_PROMPT_NAME: hosted.get("id"),
        names.GEN_AI_PROMPT_VERSION: hosted.get("version"),
    }
    return {key: value for key, value in made.items() if isinstance(value, str)}


# ---- hand-offs --------------------------------------------------------------------------------------------------


def _observed_handoff(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def execute_handoffs(*, run_handoffs: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(run_handoffs=run_handoffs, **options)
        agent = options.get("public_agent") or options.get("agent")
        call = attempt(scope, "a hand-off", lambda: _handoff(agent, run_handoffs[0]))
        if call is None:
            return await original(run_handoffs=run_handoffs, **options)
        done: list[Any] = []

        async def body() -> Any:
            done.append(await original(run_handoffs=run_handoffs, **options))
            return getattr(getattr(done[0].next_step, "new_agent", None), "name", None)

        await acall(scope, call, body)
        return done[0]

    return execute_handoffs


def _handoff(agent: Any, asked: Any) -> Call:
    _, arguments, call_id = tools.described(asked.tool_call)
    given = {"from": agent.name} | ({"arguments": arguments} if arguments else {})
    return Call(kind="handoff", name=asked.handoff.agent_name, input=codec.encode(given), call_id=call_id)


# ---- decisions --------------------------------------------------------------------------------------------------


def _observed_decision(outcome: Decision, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def decide(self: Any, approval_item: Any, *args: Any, **options: Any) -> Any:
        result = original(self, approval_item, *args, **options)
        scope = here()
        if scope is not None and sys._getframe(1).f_globals.get("__name__") != _NESTED:
            reason = options.get("rejection_message")
            attempt(scope, "a decision", lambda: _decided(approval_item, outcome, by="caller", reason=reason))
        return result

    return decide


def _decided(item: Any, outcome: Decision, *, by: str, reason: str | None = None) -> None:
    name, arguments, call_id = tools.described(item.raw_item)
    if isinstance(arguments, str):
        with suppress(ValueError):  # a custom tool is given any text
            arguments = json.loads(arguments)
    given = arguments if isinstance(arguments, Mapping) else {"input": arguments}
    record_decision(name, outcome, by=by, reason=reason, arguments=given, call_id=call_id)


def _observed_guardrail(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run(self: Any, *args: Any, **options: Any) -> Any:
        result = await original(self, *args, **options)
        scope = here()
        call = None if scope is None else attempt(scope, "what a guardrail said", lambda: _said(self, result))
        if scope is not None and call is not None:
            boundary.call(scope, call, lambda: None)
        return result

    return run


def _said(guardrail: Any, result: Any) -> Call:
    name = guardrail.get_name()
    behavior = getattr(result, "behavior", None)  # of a guardrail of a tool, else of an agent
    denied = result.output.tripwire_triggered if behavior is None else behavior["type"] != "allow"
    outcome = "deny" if denied else "allow"
    decision = canonical_json({"outcome": outcome, "by": name})
    return Call(kind="decision", name=name, input=codec.encode({"outcome": outcome}), attributes={names.DECISION: decision})
