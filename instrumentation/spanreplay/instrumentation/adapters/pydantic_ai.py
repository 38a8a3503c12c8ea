"""Pydantic AI: its agents, every execution of a tool, and models that are functions.

``Agent.iter`` is what every way of running an agent goes through. A tool is executed by ``toolset.call_tool(name, args, ctx, tool)``, which
is public, from inside ``ToolManager._raw_execute`` (2.x; ``_call_tool`` before), once arguments, hooks, approval and tracing were seen to.
It is recorded there and not one level up, so that a replay counts retries and usage as the agent does. Models that are functions:
:mod:`spanreplay.instrumentation.pydantic_ai_models`.
"""

import functools
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import wrapt

from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation import framework, pydantic_ai_deferred, pydantic_ai_models
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import agent_run
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.pydantic_ai_deferred import FRAMEWORK, LAYER, PUT_OFF, decide, wait_for
from spanreplay.instrumentation.tool_state import ToolState

if TYPE_CHECKING:
    _Behind: TypeAlias = wrapt.ObjectProxy[Any]
else:
    _Behind = wrapt.ObjectProxy

NAME: Final = FRAMEWORK
_ENDINGS: Final[Mapping[str, OutcomeName]] = {
    "ModelRetry": "tool_error",
    "ToolFailed": "tool_error",
    "CallDeferred": "deferred",
    "ApprovalRequired": "interrupted",
}
"""The framework's own exceptions, and what each says of the call that raised it."""

_REQUESTS: Final = frozenset({"DeferredToolRequests", "DeferredToolCalls"})
"""Outputs of a run that leaves calls open; the second is what it was called before 1.0."""
_OPEN: Final = "what became of the calls that an agent has put off"
_DEPS: Final = ToolState("ctx.deps")
_NESTED: Final = 20
"""Toolsets in toolsets."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    manager = module.ToolManager
    if hasattr(manager, "_raw_execute"):
        expect(manager, "_raw_execute", ["self", "validated"])
        patches.replace(manager, "_raw_execute", _observed_tools)
        if hasattr(manager, "execute_tool_call"):
            patches.replace(manager, "execute_tool_call", _observed_refusals)
    else:
        expect(manager, "_call_tool", ["self", "call"])
        patches.replace(manager, "_call_tool", _observed_tools)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.Agent, "iter", ["self", "user_prompt"])
    patches.replace(module.Agent, "iter", _observed_agent)


_hooks: Final = Hooks(
    NAME,
    {
        "pydantic_ai.tool_manager": _patch_tools,
        "pydantic_ai._tool_manager": _patch_tools,
        "pydantic_ai.agent": _patch_agents,
        "pydantic_ai.capabilities.deferred_tool_handler": pydantic_ai_deferred.patch,
        "pydantic_ai.capabilities.hooks": pydantic_ai_deferred.patch,
        "pydantic_ai.models.function": pydantic_ai_models.patch,
        "pydantic_ai.models.test": pydantic_ai_models.patch,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_tools(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def execute(self: Any, asked: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(self, asked, *args, **options)
        manager = _Manager(self, getattr(asked, "call", asked))
        try:
            return await original(manager, asked, *args, **options)
        except Exception as error:
            if not manager.reached:
                _keep_malformed(scope, self, manager.asked, error)
            raise

    return execute


def _observed_refusals(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def execute_tool_call(self: Any, validated: Any, *args: Any, **options: Any) -> Any:
        try:
            return await original(self, validated, *args, **options)
        except Exception as error:
            scope = here()
            if scope is not None and not getattr(validated, "args_valid", True):
                _keep_malformed(scope, self, validated.call, error)
            raise

    return execute_tool_call


def _keep_malformed(scope: Scope, manager: Any, asked: Any, error: Exception) -> None:
    """Keep a call whose tool does not exist, or whose arguments it does not take."""

    def keep() -> None:
        tool = (manager.tools or {}).get(asked.tool_name)
        if tool is None or tool.tool_def.kind != "output":
            offered = Offered(name=asked.tool_name) if tool is None else _offered(tool.tool_def, _function(tool))
            framework.not_made(scope, offered, asked.args or {}, "malformed", layer=LAYER, call_id=asked.tool_call_id, error=error)

    framework.attempt(scope, "a call with arguments that the tool does not take", keep)


class _Manager(_Behind):
    """A tool manager that executes one call, through a toolset that is observed."""

    def __init__(self, manager: Any, asked: Any) -> None:
        super().__init__(manager)
        self._self_asked = asked
        self._self_reached = False

    @property
    def asked(self) -> Any:
        """The call, as the model asked for it."""
        return self._self_asked

    @property
    def reached(self) -> bool:
        """The call has come as far as the tool."""
        return self._self_reached

    @property
    def toolset(self) -> "_Toolset":
        """What executes it."""
        self._self_reached = True
        return _Toolset(self.__wrapped__.toolset, self._self_asked)


class _Toolset(_Behind):
    """A toolset whose call is a step."""

    def __init__(self, toolset: Any, asked: Any) -> None:
        super().__init__(toolset)
        self._self_asked = asked

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any, *more: Any) -> Any:
        """Execute a tool, see ``AbstractToolset.call_tool``."""
        call_tool = self.__wrapped__.call_tool
        scope = here()
        if scope is None or tool.tool_def.kind == "output":
            return await call_tool(name, tool_args, ctx, tool, *more)
        function = _function(tool)
        call = framework.tool_call(
            scope,
            _offered(tool.tool_def, function),
            _arguments(self._self_asked, tool_args),
            layer=LAYER,
            call_id=ctx.tool_call_id,
            annotation=framework.returned(function),
            ending=_ending,
        )
        if call is None:
            return await call_tool(name, tool_args, ctx, tool, *more)

        try:
            return await _DEPS.acall(scope, call, lambda: call_tool(name, tool_args, ctx, tool, *more), getattr(ctx, "deps", None))
        except Exception as error:
            if scope.run is not None and _ending(error) in ("deferred", "interrupted"):
                scope.run.state.setdefault(PUT_OFF, set()).add(ctx.tool_call_id)
            raise


def _arguments(asked: Any, valid: dict[str, Any]) -> object:
    """The arguments as the model gave them, unless a hook or a person has changed what the tool gets."""
    try:
        given = asked.args_as_dict()
        return given if _became(given, json.loads(codec.plain(codec.encode(valid).text))) else valid
    except Exception:  # noqa: BLE001 — what is executed can always be kept
        return valid


def _became(given: Any, valid: Any) -> bool:
    """Whether validation alone can have made one of the other: it fills in defaults, and reads texts."""
    if isinstance(given, dict) and isinstance(valid, dict):
        return all(key in valid and _became(value, valid[key]) for key, value in given.items())
    if isinstance(given, list) and isinstance(valid, list):
        return len(given) == len(valid) and all(map(_became, given, valid))
    return given == valid or str(given) == str(valid)


def _function(tool: Any) -> Callable[..., Any] | None:
    """The function behind a tool, which may come from toolsets in toolsets; ``None`` for a server's tool."""
    for _ in range(_NESTED):
        inner = getattr(tool, "source_tool", None)
        if inner is None:
            break
        tool = inner
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    function = getattr(schema, "function", None)
    return function if callable(function) else None


def _offered(definition: Any, function: Callable[..., Any] | None = None) -> Offered:
    return Offered(
        name=definition.name, description=definition.description, parameters=definition.parameters_json_schema, function=function
    )


def _ending(given: object) -> OutcomeName | None:
    if isinstance(given, Exception):
        for kind in type(given).__mro__:
            if kind.__module__ == "pydantic_ai.exceptions" and kind.__name__ in _ENDINGS:
                return _ENDINGS[kind.__name__]
    return None


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def iterate(self: Any, user_prompt: Any = None, **options: Any) -> Any:
        run = original(self, user_prompt, **options)
        return run if here() is None else _recorded(self, user_prompt, options, run)

    return iterate


@asynccontextmanager
async def _recorded(agent: Any, prompt: Any, options: dict[str, Any], running: Any) -> AsyncGenerator[Any]:
    results = options.get("deferred_tool_results")
    asked = prompt if results is None else {"prompt": prompt, "deferred_tool_results": results}
    session = options.get("conversation_id")
    async with agent_run(
        agent.name or "agent",
        input=asked,
        session=session if isinstance(session, str) else None,
        definition=_definition(agent, options),
    ) as recorded:
        scope = here()
        if results is not None and scope is not None:
            framework.attempt(scope, _OPEN, lambda: decide(results, _asked(options.get("message_history")), by="caller"))
        async with running as run:
            yield run
        result = run.result
        recorded.output = None if result is None else result.output
        if type(recorded.output).__name__ in _REQUESTS:
            recorded.outcome = "interrupted" if getattr(recorded.output, "approvals", ()) else "deferred"
            if scope is not None:
                framework.attempt(scope, _OPEN, lambda: wait_for(scope, recorded.output))


def _asked(history: Any) -> list[Any]:
    """The calls that the model asked for in an earlier run."""
    parts = (part for message in (history or ()) for part in getattr(message, "parts", ()))
    return [part for part in parts if getattr(part, "part_kind", None) == "tool-call"]


def _definition(agent: Any, options: dict[str, Any]) -> dict[str, object]:
    """What makes this agent what it is. Everything in it is of the framework, and may be missing in another version."""
    model = options.get("model") or getattr(agent, "model", None)
    own = [*getattr(agent, "_system_prompts", ()), *getattr(agent, "_instructions", ())]
    settings = [each for each in (getattr(agent, "model_settings", None), options.get("model_settings")) if each is not None]
    made = {
        "instructions": [_text(each) for each in [*own, options.get("instructions")] if each is not None],
        "model": model if isinstance(model, str) else getattr(model, "model_name", None),
        "model_settings": {key: value for each in settings if isinstance(each, Mapping) for key, value in each.items()},
        "output_type": _text(options.get("output_type") or getattr(agent, "output_type", None)),
    }
    return {key: value for key, value in made.items() if value not in (None, [], {})}


def _text(value: object) -> str:
    """Instructions are texts, or functions that make them; a type of output is a class or several."""
    return value if isinstance(value, str) else getattr(value, "__qualname__", None) or type(value).__qualname__
