"""Haystack: its agents and pipelines, every invocation of a tool, and what people are asked and say (haystack-ai 3.0).

``Tool.invoke`` and ``invoke_async`` (public) are what all of them go through. Which call of a model's an invocation is, the functions that
make one ready for a thread or a task know.
"""

import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import ContextVar
from importlib import metadata
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework, haystack_confirmations
from spanreplay.instrumentation.agent_streams import observed_astream
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

NAME: Final = haystack_confirmations.FRAMEWORK
_LAYERS: Final = (haystack_confirmations.LAYER, "haystack.Tool.invoke_async")
_STATE_TYPE: Final = "State"
_STATE: Final = ToolState("state", without=("messages", "hook_context", "step_count", "token_usage", "tool_call_counts", "exit_reason"))
_asked: Final[ContextVar[Any]] = ContextVar("spanreplay.haystack.asked", default=None)
"""The ``ToolCall`` that is being made."""
_running: Final[ContextVar[Any]] = ContextVar("spanreplay.haystack.running", default=None)
"""The pipeline whose run is recorded here."""


def _patch_tool(module: ModuleType, patches: Patches) -> None:
    expect(module.Tool, "invoke", ["self", "kwargs"])
    expect(module.Tool, "invoke_async", ["self", "kwargs"])
    patches.replace(module.Tool, "invoke", _observed_invoke)
    patches.replace(module.Tool, "invoke_async", _observed_invoke_async)


def _patch_calling(module: ModuleType, patches: Patches) -> None:
    expect(module, "_make_context_bound_invoke", ["tool", "args", "tool_call"])
    expect(module, "_make_bounded_invoke_async", ["tool", "args", "semaphore", "tool_call"])
    patches.replace(module, "_make_context_bound_invoke", _named)
    patches.replace(module, "_make_bounded_invoke_async", _named_async)
    expect(module, "_resolve_tool_calls", ["messages_with_tool_calls", "tools_with_names"])
    patches.replace(module, "_resolve_tool_calls", _observed_resolve)


def _patch_agent(module: ModuleType, patches: Patches) -> None:
    for name, make in (("run", _observed_agent), ("run_async", _observed_async_agent)):
        expect(module.Agent, name, ["self", "messages"])
        patches.replace(module.Agent, name, make)


def _patch_pipeline(module: ModuleType, patches: Patches) -> None:
    for name in ("run", "run_async", "run_async_generator"):
        expect(module.Pipeline, name, ["self", "data"])
    patches.replace(module.Pipeline, "run", _observed_pipeline)
    patches.replace(module.Pipeline, "run_async", _observed_async_pipeline)
    patches.replace(module.Pipeline, "run_async_generator", _observed_generator)


_hooks: Final = Hooks(
    NAME,
    {
        "haystack.tools.tool": _patch_tool,
        "haystack.components.agents.tool_calling": _patch_calling,
        "haystack.components.agents.agent": _patch_agent,
        "haystack.core.pipeline.pipeline": _patch_pipeline,
        "haystack.hooks.human_in_the_loop.strategies": haystack_confirmations.patch,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_invoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def invoke(self: Any, **kwargs: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, f"a call of {self.name}", lambda: _call(scope, self, kwargs, _LAYERS[0]))
        if scope is None or made is None:
            return original(self, **kwargs)
        return _STATE.call(scope, made, lambda: original(self, **kwargs), _held(kwargs))

    return invoke


def _observed_invoke_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def invoke_async(self: Any, **kwargs: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, f"a call of {self.name}", lambda: _call(scope, self, kwargs, _LAYERS[1]))
        if scope is None or made is None:
            return await original(self, **kwargs)
        return await _STATE.acall(scope, made, lambda: original(self, **kwargs), _held(kwargs))

    return invoke_async


def _held(arguments: Mapping[str, Any]) -> Any:
    """The data of the agent's state, where the tool is given it."""
    return next((getattr(value, "data", None) for value in arguments.values() if type(value).__name__ == _STATE_TYPE), None)


def _call(scope: Scope, tool: Any, arguments: Mapping[str, Any], layer: str) -> Call | None:
    asked = _asked.get()
    if asked is not None and asked.tool_name != tool.name:
        asked = None
    function = getattr(tool, "async_function", None) or tool.function
    return framework.tool_call(
        scope,
        Offered(name=tool.name, description=tool.description, parameters=tool.parameters, function=function),
        _without_state(arguments) if asked is None else dict(asked.arguments),
        layer=layer,
        call_id=None if asked is None else _call_id(asked),
        annotation=framework.returned(function),
    )


def _call_id(asked: Any) -> str | None:
    """The model's; of OpenAI's Responses API, ``id`` is that of the item that the call is in."""
    extra = getattr(asked, "extra", None) or {}
    found = extra.get("call_id", asked.id)
    return found if isinstance(found, str) else None


def _without_state(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What Haystack adds of its own is no argument: the agent's state, and where to stream to."""
    return {name: value for name, value in arguments.items() if type(value).__name__ != _STATE_TYPE and not callable(value)}


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(tool: Any, args: Any, tool_call: Any, *more: Any, **options: Any) -> Any:
        token = _asked.set(tool_call)  # the context is copied inside
        try:
            return original(tool, args, tool_call, *more, **options)
        finally:
            _asked.reset(token)

    return make


def _named_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(tool: Any, args: Any, semaphore: Any, tool_call: Any, *more: Any, **options: Any) -> Any:
        invoke = original(tool, args, semaphore, tool_call, *more, **options)

        async def runner() -> Any:
            token = _asked.set(tool_call)
            try:
                return await invoke()
            finally:
                _asked.reset(token)

        return runner

    return make


def _observed_resolve(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resolve(messages_with_tool_calls: Any, tools_with_names: Any, **options: Any) -> Any:
        scope = here()
        if scope is not None:
            attempt(scope, "a call of no tool", lambda: _resolve(scope, messages_with_tool_calls, tools_with_names))
        return original(messages_with_tool_calls, tools_with_names, **options)

    return resolve


def _resolve(scope: Scope, messages: Sequence[Any], known: Mapping[str, Any]) -> None:
    for asked in (asked for message in messages for asked in message.tool_calls if asked.tool_name not in known):
        offered = Offered(name=asked.tool_name)
        framework.not_made(scope, offered, asked.arguments, "malformed", layer=_LAYERS[0], call_id=_call_id(asked))


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        observed = None if scope is None else attempt(scope, "a run of an agent", lambda: _agent(self, args, options))
        if observed is None:
            return original(self, *args, **options)
        with observed, _apart():
            result = original(self, *args, **options)
            observed.output = _answer(result)
        return result

    return run


def _observed_async_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_async(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        observed = None if scope is None else attempt(scope, "a run of an agent", lambda: _agent(self, args, options))
        if observed is None:
            return await original(self, *args, **options)
        async with observed:
            with _apart():
                result = await original(self, *args, **options)
            observed.output = _answer(result)
        return result

    return run_async


class _apart:  # noqa: N801 — a context manager
    """What an agent that is a tool calls is not the call that it answers."""

    def __enter__(self) -> None:
        self._token = _asked.set(None)

    def __exit__(self, *_: object) -> None:
        _asked.reset(self._token)


def _agent(agent: Any, args: Sequence[Any], options: Mapping[str, Any]) -> AgentRun:
    messages = args[0] if args else options.get("messages")
    given = {name: value for name, value in options.items() if name not in ("messages", "streaming_callback", "tools", "hook_context")}
    said = [{"role": message.role.value, "text": message.text} for message in messages or ()]
    generator = agent.chat_generator
    definition: dict[str, object] = {"framework": _version(), "model": getattr(generator, "model", None) or type(generator).__name__}
    named = {name: getattr(agent, name, None) for name in ("system_prompt", "user_prompt", "exit_conditions", "max_agent_steps")}
    definition |= {name: value for name, value in named.items() if value is not None}
    settings = getattr(generator, "generation_kwargs", None)
    if settings:
        definition["settings"] = settings
    return agent_run(_name(agent), input={"messages": said, **given}, definition=definition)


def _name(agent: Any) -> str:
    """As its pipeline knows it, or its class's."""
    pipeline = getattr(agent, "__haystack_added_to_pipeline__", None)
    return (pipeline.get_component_name(agent) if pipeline is not None else "") or type(agent).__name__


def _answer(result: Any) -> Any:
    last = result.get("last_message") if isinstance(result, dict) else None
    if last is None:
        return result
    return last.text if last.text is not None else last.to_dict()


@functools.cache
def _version() -> str:
    return f"haystack-ai {metadata.version('haystack-ai')}"


# ---- pipelines --------------------------------------------------------------------------------------------------


def _observed_pipeline(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        observed = None if scope is None else attempt(scope, "a run of a pipeline", lambda: _pipeline(self, args, options))
        if observed is None:
            return original(self, *args, **options)
        with observed:
            observed.output = result = original(self, *args, **options)
        return result

    return run


def _observed_async_pipeline(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_async(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        observed = None if scope is None else attempt(scope, "a run of a pipeline", lambda: _pipeline(self, args, options))
        if observed is None:
            return await original(self, *args, **options)
        token = _running.set(self)
        try:
            async with observed:
                observed.output = result = await original(self, *args, **options)
        finally:
            _running.reset(token)
        return result

    return run_async


def _observed_generator(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_async_generator(self: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        def seen(run: AgentRun, part: Any) -> None:
            run.output = part

        if _running.get() is self:
            return original(self, *args, **options)  # type: ignore[no-any-return]
        return observed_astream(lambda: _pipeline(self, args, options), lambda: original(self, *args, **options), seen)

    return run_async_generator


def _pipeline(pipeline: Any, args: Sequence[Any], options: Mapping[str, Any]) -> AgentRun:
    asked = args[0] if args else options.get("data")
    parts = {name: type(pipeline.get_component(name)).__name__ for name in pipeline.graph.nodes}
    edges = [
        f"{sender}.{edge['from_socket'].name} -> {receiver}.{edge['to_socket'].name}"
        for sender, receiver, edge in pipeline.graph.edges(data=True)
    ]
    name = (pipeline.metadata or {}).get("name")
    definition = {"framework": _version(), "components": parts, "connections": edges}
    return agent_run(name if isinstance(name, str) else type(pipeline).__name__, input=asked, definition=definition)
