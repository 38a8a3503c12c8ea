"""Strands: agents, swarms and graphs, every execution of a tool, hand-offs, interrupts and calls that a hook cancels.

``_make_execute_tool_terminal`` makes the innermost function of the chain of middleware around a tool (strands-agents 1.50 to 1.62). It is
given the tool with ``AgentTool.stream``, which is public, observed: hooks, middleware, spans and metrics of the framework's own stay as
they are. ``Agent.stream_async`` is what every way of running an agent goes through.
"""

import copy
import functools
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import wrapt

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.agent_streams import agent_astream
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

if TYPE_CHECKING:
    _Behind: TypeAlias = wrapt.ObjectProxy[Any]
else:
    _Behind = wrapt.ObjectProxy

NAME: Final = "strands"
_LAYER: Final = "strands.AgentTool"
_PASSED: Final = frozenset({"_AgentAsTool", "StructuredOutputTool"})
"""Tools whose body a replay runs: an agent, and the framework's own way to a typed output."""
_KEPT: Final = frozenset({"toolUseId", "result", "values", "interrupts"})
_EVENTS: Final = "strands.types._events"
_BEGUN: Final = "strands.begun"
"""In the run's state: ids of the calls that have come as far as the tool."""
_OWN: Final = frozenset(
    {"agent", "model", "messages", "system_prompt", "tool_config", "request_state"}
    | {f"event_loop_{name}" for name in ("cycle_id", "cycle_trace", "cycle_span", "parent_cycle_id")}
)
_USERS: Final = ToolState("invocation_state", without=_OWN)
"""What the program gave the run for its tools."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module, "_make_execute_tool_terminal", ["extra_kwargs"])
    patches.rebind(module, "_make_execute_tool_terminal", _observed_terminal)
    expect(module.ToolExecutor, "_stream", ["agent", "tool_use"])
    patches.replace(module.ToolExecutor, "_stream", _observed_refusals)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.Agent, "stream_async", ["self", "prompt"])
    patches.replace(module.Agent, "stream_async", lambda original: _observed_stream(original, _run_of_agent))


def _patch_teams(module: ModuleType, patches: Patches) -> None:
    team = module.Swarm if hasattr(module, "Swarm") else module.Graph
    expect(team, "stream_async", ["self", "task"])
    patches.replace(team, "stream_async", lambda original: _observed_stream(original, _run_of_team))


_hooks: Final = Hooks(
    NAME,
    {
        "strands.tools.executors._executor": _patch_tools,
        "strands.agent.agent": _patch_agents,
        "strands.multiagent.swarm": _patch_teams,
        "strands.multiagent.graph": _patch_teams,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_terminal(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **options: Any) -> Callable[[Any], Any]:
        run: Callable[[Any], Any] = original(*args, **options)

        def terminal(context: Any) -> Any:
            scope = here()
            return run(context if scope is None or context.tool is None else _with_observed_tool(scope, context))

        return terminal

    return make


def _with_observed_tool(scope: Scope, context: Any) -> Any:
    _begun(scope).add(context.tool_use.get("toolUseId"))
    other = copy.copy(context)
    other.tool = _Tool(context.tool)
    return other


def _begun(scope: Scope) -> set[Any]:
    made: set[Any] = set() if scope.run is None else scope.run.state.setdefault(_BEGUN, set())
    return made


class _Tool(_Behind):
    """A tool whose calls are steps."""

    async def stream(self, tool_use: Any, invocation_state: Any, **options: Any) -> AsyncGenerator[Any]:
        """Execute it, see ``AgentTool.stream``; what is passed on last is the result."""
        tool = self.__wrapped__
        scope = here()
        call = None if scope is None else framework.attempt(scope, "a call of a tool", lambda: _call(scope, tool, tool_use))
        events = tool.stream(tool_use, invocation_state, **options)
        if scope is not None and call is not None:
            events = _observed(scope, call, events, tool_use, invocation_state, decorated=hasattr(tool, "_tool_func"))
        async for event in events:
            yield event


def _call(scope: Scope, tool: Any, tool_use: Any) -> Call | None:
    call = framework.tool_call(
        scope, _offered(tool), dict(tool_use.get("input") or {}), layer=_LAYER, call_id=tool_use.get("toolUseId"), ending=_ending
    )
    if call is not None and type(tool).__name__ in _PASSED:
        call.passed = True
    if call is not None and getattr(getattr(tool, "_tool_func", None), "__module__", "") == "strands.multiagent.swarm":
        call.kind, call.passed = "handoff", True
    return call


def _offered(tool: Any) -> Offered:
    spec = tool.tool_spec
    schema = spec.get("inputSchema")
    return Offered(
        name=tool.tool_name,
        description=spec.get("description"),
        parameters=schema.get("json", schema) if isinstance(schema, dict) else schema,
        function=getattr(tool, "_tool_func", None),
    )


def _ending(given: object) -> OutcomeName | None:
    if type(given).__name__ == "InterruptException":
        return "interrupted"
    if not isinstance(given, dict):
        return None
    if "interrupts" in given:
        return "interrupted"
    result = given.get("result", given)
    return "tool_error" if isinstance(result, dict) and result.get("status") == "error" else None


async def _observed(scope: Scope, call: Call, events: Any, tool_use: Any, invocation_state: Any, *, decorated: bool) -> AsyncGenerator[Any]:
    """The events of a tool, as a step that ends before its result is handed on: nobody reads on after that."""
    step = boundary.begin(scope, call)
    answer = None if step is None else step.ask()
    if step is not None and answer is not None:
        try:
            with _USERS.raised(scope, None, functools.partial(_restore, invocation_state)):
                value: Any = await boundary.agive(step, answer)
        except Exception as error:
            if not decorated or _ending(error) is not None:
                raise
            value = {"result": _failure(tool_use, error), "exception": error}  # others record what the function raised
        _restore(invocation_state, value.get("state") if isinstance(value, dict) else None)
        for event in _events_of(value, tool_use):
            yield event
        return
    changed = _Changed(invocation_state)
    streamed: list[Any] = []
    try:
        while True:
            try:
                if step is None:
                    event = await anext(events)
                else:
                    with _USERS.left(None, None, changed.now), step.body():
                        event = await anext(events)
            except StopAsyncIteration:
                break
            last = type(event).__name__
            if step is not None and last in ("ToolResultEvent", "ToolInterruptEvent"):
                value = {"interrupts": list(event.interrupts)} if last == "ToolInterruptEvent" else event.tool_result
                failure = getattr(event, "exception", None)
                step.succeed(_value(value, [] if call.passed else streamed, failure, changed.now()))
                step = None
            elif not call.passed:
                streamed.append(event.get("tool_stream_event", {}).get("data") if last == "ToolStreamEvent" else _Raw(event))
            yield event
    except BaseException as error:
        if step is not None:
            step.fail(error)
        await events.aclose()
        raise
    if step is not None:
        step.succeed({"values": [each.value if isinstance(each, _Raw) else each for each in streamed]})


class _Raw:
    """What a tool that is not made by the framework has given: its last one is its result."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _value(result: Any, streamed: list[Any], error: BaseException | None, state: Any) -> Any:
    """What is kept of an execution: the result, and beside it whatever else it left behind."""
    more = {"stream": [s.value if isinstance(s, _Raw) else s for s in streamed], "exception": error, "state": state}
    more = {name: value for name, value in more.items() if value}
    return {"result": result, **more} if more else result


def _events_of(value: Any, tool_use: Any) -> list[Any]:
    """What :func:`_value` was made of; what others recorded is the content of the result, or its text."""
    events = sys.modules[_EVENTS]
    if not isinstance(value, dict) or value.keys().isdisjoint(_KEPT):
        shown = value.get("content") if isinstance(value, dict) else value
        content = shown if isinstance(shown, list) else [{"text": value if isinstance(value, str) else json.dumps(value)}]
        status = value.get("status") if isinstance(value, dict) else None
        return [events.ToolResultEvent({"toolUseId": tool_use["toolUseId"], "status": status or "success", "content": content})]
    if "values" in value:
        return list(value["values"])
    if "interrupts" in value:
        return [events.ToolInterruptEvent(tool_use, value["interrupts"])]
    streamed = [events.ToolStreamEvent(tool_use, each) for each in value.get("stream", ())]
    return [*streamed, events.ToolResultEvent(value.get("result", value), exception=value.get("exception"))]


def _failure(tool_use: Any, error: Exception) -> dict[str, Any]:
    """The result that ``@tool`` makes of an exception of its function."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__} - {error}"
    return {"toolUseId": tool_use["toolUseId"], "status": "error", "content": [{"text": f"Error: {text}"}]}


# ---- state that a tool changes ----------------------------------------------------------------------------------


class _Changed:
    """What changes from now on in the state of the agent, of the request, and in what the program gave the run; an agent goes by them."""

    def __init__(self, invocation_state: Any) -> None:
        self._held = invocation_state
        self._before = self._texts()
        self._users = _USERS.of(invocation_state)

    def _texts(self) -> dict[str, str]:
        state = getattr(self._held.get("agent"), "state", None)
        found = {"agent": None if state is None else state.get(), "request": self._held.get("request_state")}
        return {name: codec.encode(value).text for name, value in found.items() if isinstance(value, dict)}

    def now(self) -> dict[str, Any] | None:
        """By name of the state."""
        told: dict[str, Any] = {name: json.loads(text) for name, text in self._texts().items() if self._before.get(name) != text}
        users = _USERS.changes(self._users, self._held)
        return (told if users is None else {**told, _USERS.name: users}) or None


def _restore(invocation_state: Any, told: Any) -> None:
    state = told if isinstance(told, dict) else {}
    for name, set_to in state.get("agent", {}).items():
        invocation_state["agent"].state.set(name, set_to)
    if "request" in state:
        invocation_state.setdefault("request_state", {}).update(state["request"])
    if _USERS.name in state:
        _USERS.change(state[_USERS.name], invocation_state)


# ---- calls that never reach the tool ----------------------------------------------------------------------------


def _observed_refusals(original: Callable[..., Any]) -> Callable[..., Any]:
    async def stream(agent: Any, tool_use: Any, *args: Any, **options: Any) -> AsyncGenerator[Any]:
        scope = here()
        async for event in original(agent, tool_use, *args, **options):
            if scope is not None:
                framework.attempt(scope, "a call that was not made", functools.partial(_keep_refused, scope, agent, tool_use, event))
            yield event

    return staticmethod(functools.wraps(original)(stream))


def _keep_refused(scope: Scope, agent: Any, tool_use: Any, event: Any) -> None:
    outcomes: dict[str, OutcomeName] = {"ToolCancelEvent": "rejected", "ToolInterruptEvent": "interrupted", "ToolResultEvent": "malformed"}
    outcome = outcomes.get(type(event).__name__)
    if outcome is None or tool_use.get("toolUseId") in _begun(scope):
        return
    _begun(scope).add(tool_use.get("toolUseId"))
    tool = agent.tool_registry.dynamic_tools.get(tool_use["name"]) or agent.tool_registry.registry.get(tool_use["name"])
    if outcome == "malformed" and tool is not None:  # answered by middleware
        return
    offered = Offered(name=tool_use["name"]) if tool is None else _offered(tool)
    arguments = dict(tool_use.get("input") or {})
    error = getattr(event, "exception", None)
    framework.not_made(scope, offered, arguments, outcome, layer=_LAYER, call_id=tool_use.get("toolUseId"), error=error)
    if outcome == "interrupted":
        _begun(scope).discard(tool_use.get("toolUseId"))


# ---- agents -----------------------------------------------------------------------------------------------------

_Make: TypeAlias = Callable[[Any, Any, dict[str, Any]], AgentRun]


def _observed_stream(original: Callable[..., Any], make: _Make) -> Callable[..., Any]:
    @functools.wraps(original)
    def stream_async(self: Any, prompt: Any = None, *args: Any, **options: Any) -> AsyncIterator[Any]:
        scope = here()
        run = None if scope is None else framework.attempt(scope, "the run of an agent", lambda: make(self, prompt, options))
        if run is None:
            stream: AsyncIterator[Any] = original(self, prompt, *args, **options)
            return stream

        def seen(event: Any) -> None:
            result = event.get("result") if isinstance(event, dict) else None
            if result is not None:
                run.output = _output(result)
                run.outcome = "interrupted" if getattr(result, "interrupts", None) else None

        return agent_astream(run, lambda: original(self, prompt, *args, **options), seen)

    return stream_async


def _run_of_agent(agent: Any, prompt: Any, _: dict[str, Any]) -> AgentRun:
    config = agent.model.get_config()
    definition = {
        "instructions": agent.system_prompt,
        "model": config.get("model_id"),
        "model_settings": {name: value for name, value in config.items() if name != "model_id"},
        "tools": sorted(agent.tool_names),
    }
    return agent_run(
        agent.name, input=prompt, definition={name: value for name, value in definition.items() if value not in (None, {}, [])}
    )


def _run_of_team(team: Any, task: Any, _: dict[str, Any]) -> AgentRun:
    return agent_run(team.id, input=task, definition={"nodes": sorted(team.nodes)})


def _output(result: Any) -> object:
    """What a run gave, without what differs each time: metrics, ids of messages."""
    if hasattr(result, "results"):
        return {node: str(each.result) for node, each in result.results.items()}
    return result.structured_output if getattr(result, "structured_output", None) is not None else str(result)
