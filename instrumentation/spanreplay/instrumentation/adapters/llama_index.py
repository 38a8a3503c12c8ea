"""LlamaIndex: its workflows and agents, and every execution of a tool.

``BaseWorkflowAgent._call_tool`` and ``AgentWorkflow._call_tool`` run a tool for an agent (private, llama-index-core 0.14); the id of the
call is known one step earlier. ``FunctionTool.call`` and ``acall`` run a tool for everybody else. A workflow, and an agent is one, runs in
tasks of its own, from ``Workflow.run`` on.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import call, here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.llama_index_waits import acall_or_wait, is_wait
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.one_by_one import in_turn
from spanreplay.instrumentation.patching import Patches

NAME: Final = "llama_index"
_AGENT: Final = "llama_index.agent"
_BARE: Final = "llama_index.FunctionTool"
_HANDOFF: Final = "llama_index.core.agent.workflow.multi_agent_workflow"
_METADATA: Final = "llama_index.core.tools.types"
_MODEL_SETTINGS: Final = ("model", "temperature", "max_tokens", "reasoning_effort")

_call_id: ContextVar[str | None] = ContextVar("spanreplay.llama_index", default=None)
"""Of the call that an agent handles here."""


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    _patch_calls(module.BaseWorkflowAgent, patches)


def _patch_teams(module: ModuleType, patches: Patches) -> None:
    _patch_calls(module.AgentWorkflow, patches)


def _patch_calls(owner: Any, patches: Patches) -> None:
    expect(owner, "_call_tool", ["self", "ctx", "tool", "tool_input"])
    expect(owner, "call_tool", ["self", "ctx", "ev"])
    patches.replace(owner, "_call_tool", _observed_tool)
    patches.replace(owner, "call_tool", _observed_handling)


def _patch_bare(module: ModuleType, patches: Patches) -> None:
    expect(module.FunctionTool, "call", ["self", "args", "kwargs"])
    expect(module.FunctionTool, "acall", ["self", "args", "kwargs"])
    patches.replace(module.FunctionTool, "call", _observed_call)
    patches.replace(module.FunctionTool, "acall", _observed_acall)


def _patch_workflows(module: ModuleType, patches: Patches) -> None:
    expect(module.Workflow, "run", ["self", "ctx", "start_event", "kwargs"])
    patches.replace(module.Workflow, "run", _observed_run)


_hooks: Final = Hooks(
    NAME,
    {
        "llama_index.core.agent.workflow.base_agent": _patch_agents,
        "llama_index.core.agent.workflow.multi_agent_workflow": _patch_teams,
        "llama_index.core.tools.function_tool": _patch_bare,
        "workflows.workflow": _patch_workflows,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a tool gave, and what it changed in the state of its workflow meanwhile."""

    result: Any
    state: dict[str, Any]


def _observed_handling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)  # with what makes it a step of a workflow
    async def call_tool(self: Any, ctx: Any, ev: Any) -> Any:
        token = _call_id.set(getattr(ev, "tool_id", None) or None)
        try:
            return await original(self, ctx, ev)
        finally:
            _call_id.reset(token)

    return call_tool


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _call_tool(self: Any, ctx: Any, tool: Any, tool_input: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, "a call of a tool", lambda: _call(scope, tool, tool_input, _AGENT, _call_id.get()))
        if scope is None or made is None:
            return await original(self, ctx, tool, tool_input)
        live = _Live(tool, tool_input)
        writes = made.kind == "tool_call" and bool(getattr(tool, "requires_context", False))

        async def body() -> Any:
            before = await _state(ctx) if writes else {}
            kept = live.gave(await original(self, ctx, tool, tool_input))
            changed = _changed(before, await _state(ctx)) if writes else {}
            await in_turn()  # its results are asked of a model in the order in which they come
            return Wrote(kept, changed) if changed else kept

        async def failing(error: BaseException) -> Any:
            return live.gave(await original(self, ctx, _Failing(tool, error), tool_input))

        made.failing = failing
        given = await acall_or_wait(scope, made, body)
        if isinstance(given, Wrote):
            if not live.given:
                for name, value in given.state.items():
                    await ctx.store.set(name, value)
            given = given.result
        return live.result(given)

    return _call_tool


class _Failing:
    """A tool that raises, and does nothing."""

    def __init__(self, tool: Any, error: BaseException) -> None:
        self.metadata = tool.metadata
        self._error = error

    async def acall(self, *_: Any, **__: Any) -> Any:
        raise self._error


def _observed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def bare(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        asked = None if scope is None else _bound(self, args, kwargs)
        made = None if scope is None else attempt(scope, "a call of a tool", lambda: _call(scope, self, asked, _BARE))
        if scope is None or made is None:
            return original(self, *args, **kwargs)
        live = _Live(self, asked)
        return live.result(call(scope, made, lambda: live.gave(original(self, *args, **kwargs))))

    return bare


def _observed_acall(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def bare(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        asked = None if scope is None else _bound(self, args, kwargs)
        made = None if scope is None else attempt(scope, "a call of a tool", lambda: _call(scope, self, asked, _BARE))
        if scope is None or made is None:
            return await original(self, *args, **kwargs)
        live = _Live(self, asked)

        async def body() -> Any:
            return live.gave(await original(self, *args, **kwargs))

        return live.result(await acall_or_wait(scope, made, body))

    return bare


class _Live:
    """One execution of a tool. Of an output that is a text and nothing else, the text is kept."""

    def __init__(self, tool: Any, arguments: Any) -> None:
        self._tool = tool
        self._input = {"args": (), "kwargs": arguments}
        self.given: list[Any] = []
        """What it gave, if it ran."""

    def gave(self, output: Any) -> Any:
        """The output, as it is kept."""
        self.given.append(output)
        text = getattr(output, "raw_output", None)
        plain = isinstance(text, str) and text and type(output).__name__ == "ToolOutput" and len(output.blocks) == 1 and not output.is_error
        return text if plain and output.content == text and output.raw_input == self._input else output

    def result(self, kept: Any) -> Any:
        """The very output, or what the record says of it."""
        if self.given:
            return self.given[0]
        types = sys.modules.get("llama_index.core.tools.types")
        if not isinstance(kept, str) or types is None:
            return kept
        return types.ToolOutput(content=kept, tool_name=self._tool.metadata.get_name(), raw_input=self._input, raw_output=kept)


def _bound(tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in kwargs.items() if name != getattr(tool, "ctx_param_name", None)}
    return {"args": list(args), **given} if args else given


def _call(scope: Scope, tool: Any, arguments: Any, layer: str, call_id: str | None = None) -> Call | None:
    if _is_handoff(tool):
        if layer == _BARE:
            return None
        return Call(kind="handoff", name=str(arguments.get("to_agent")), input=codec.encode(arguments), call_id=call_id)
    return framework.tool_call(scope, _offered(tool), arguments, layer=layer, call_id=call_id, ending=_ending)


def _offered(tool: Any) -> Offered:
    data = tool.metadata
    made_by = getattr(type(data), "get_parameters_dict", None)
    if getattr(made_by, "__module__", None) != _METADATA:  # one of the program's may make them of anything
        return _described(tool)
    made_from = (data.name, data.description, data.fn_schema, getattr(tool, "_real_fn", None))
    return framework.once(tool, made_from, lambda: _described(tool))


def _described(tool: Any) -> Offered:
    data = tool.metadata
    return Offered(
        name=str(data.get_name()),
        description=data.description,
        parameters=data.get_parameters_dict(),
        function=getattr(tool, "_real_fn", None),
    )


def _is_handoff(tool: Any) -> bool:
    """The tool by which an agent of several gives the word to another: it only writes that into the state."""
    function = getattr(tool, "_async_fn", None)
    return getattr(function, "__module__", None) == _HANDOFF and getattr(function, "__name__", None) == "handoff"


def _ending(given: object) -> OutcomeName | None:
    if isinstance(given, BaseException):
        return "interrupted" if is_wait(given) else None
    given = given.result if isinstance(given, Wrote) else given
    return "tool_error" if getattr(given, "is_error", False) is True else None


async def _state(ctx: Any) -> dict[str, Any]:
    try:
        state = await ctx.store.get_state()
        return dict(state.items()) if hasattr(state, "items") else dict(vars(state))
    except Exception:  # noqa: BLE001 — a state of any kind; what is written to it is not kept then
        return {}


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    changed = {}
    for name, value in after.items():
        try:
            same = name in before and bool(before[name] == value)
        except Exception:  # noqa: BLE001 — a value of any kind
            same = True
        if not same:
            changed[name] = value
    return changed


# ---- workflows --------------------------------------------------------------------------------------------------


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, ctx: Any = None, start_event: Any = None, **kwargs: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, "a workflow", lambda: _run(self, start_event, kwargs))
        if made is None:
            return original(self, ctx=ctx, start_event=start_event, **kwargs)
        made.begin()
        try:
            with made.body():  # its tasks are started in here
                handler = original(self, ctx=ctx, start_event=start_event, **kwargs)
            _when_done(handler, functools.partial(_ended, made))
        except BaseException as error:
            made.end(error)
            raise
        return handler

    return run


def _when_done(handler: Any, ended: "Callable[[asyncio.Task[Any]], None]") -> None:
    result = getattr(handler, "_result_task", handler)
    result.add_done_callback(ended)
    task = getattr(handler, "_run_task", None)  # where the handler is a future itself, nobody settles it when its task is cancelled
    if task is not None:
        task.add_done_callback(lambda done: None if result.done() else ended(done))


def _ended(run: AgentRun, task: "asyncio.Task[Any]") -> None:
    if task.cancelled():
        run.end(asyncio.CancelledError())
        return
    error = task.exception()
    if error is None:
        run.output = _output(task.result())
    run.end(error)


def _run(workflow: Any, start_event: Any, kwargs: Mapping[str, Any]) -> AgentRun:
    name = getattr(workflow, "name", None)
    return agent_run(
        name if isinstance(name, str) and name else type(workflow).__name__,
        input=_input(kwargs if start_event is None else start_event),
        definition=_definition(workflow) or {"workflow": type(workflow).__qualname__},
    )


def _input(start: Any) -> Any:
    asked = {name: value for name, value in start.items() if value is not None and name not in ("memory", "run_id")}
    message = asked.get("user_msg")
    if message is not None and not asked.get("chat_history"):
        return getattr(message, "content", message)
    return {name: value for name, value in asked.items() if value != []}


def _output(stop: Any) -> Any:
    given = stop.result if type(stop).__name__ == "StopEvent" else stop
    if getattr(given, "structured_response", None) is not None:
        return given.structured_response
    return getattr(getattr(given, "response", None), "content", given)


def _definition(workflow: Any) -> dict[str, object]:
    """Of an agent, or of each in a team."""
    team = getattr(workflow, "agents", None)
    if isinstance(team, dict):
        return {str(name): _definition(agent) for name, agent in team.items()}
    llm = getattr(workflow, "llm", None)
    if llm is None:
        return {}
    settings = {name: getattr(llm, name, None) for name in _MODEL_SETTINGS}
    told = {
        "instructions": getattr(workflow, "system_prompt", None),
        "description": getattr(workflow, "description", None),
        "model": {name: value for name, value in settings.items() if isinstance(value, str | int | float)},
        "tools": [str(tool.metadata.get_name()) for tool in getattr(workflow, "tools", None) or () if hasattr(tool, "metadata")],
        "can_handoff_to": getattr(workflow, "can_handoff_to", None),
    }
    return {name: value for name, value in told.items() if value}
