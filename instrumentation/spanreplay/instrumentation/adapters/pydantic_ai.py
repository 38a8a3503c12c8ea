"""Pydantic AI: its agents, and every execution of a tool.

``ToolManager._raw_execute(validated, …)`` runs a tool after its arguments were validated and any hook, approval or tracing was seen to
(pydantic-ai 2.68); ``Agent.iter`` is what every way of running an agent goes through.
"""

import functools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, here
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import agent_run
from spanreplay.instrumentation.shims.patching import Patches

NAME: Final = "pydantic_ai"
_LAYER: Final = "pydantic_ai.ToolManager"


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module.ToolManager, "_raw_execute", ["self", "validated"])
    patches.replace(module.ToolManager, "_raw_execute", _observed_tool)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.Agent, "iter", ["self", "user_prompt"])
    patches.replace(module.Agent, "iter", _observed_agent)


_hooks: Final = Hooks(NAME, {"pydantic_ai.tool_manager": _patch_tools, "pydantic_ai.agent": _patch_agents})
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _raw_execute(self: Any, validated: Any, **options: Any) -> Any:
        scope = here()
        if scope is None or validated.tool.tool_def.kind == "output":
            return await original(self, validated, **options)
        asked = validated.call
        call = framework.tool_call(scope, _offered(validated.tool), asked.args_as_dict(), layer=_LAYER, call_id=asked.tool_call_id)
        if call is None:
            return await original(self, validated, **options)
        return await acall(scope, call, lambda: original(self, validated, **options))

    return _raw_execute


def _offered(tool: Any) -> Offered:
    definition = tool.tool_def
    schema = getattr(tool, "function_schema", None)
    return Offered(
        name=definition.name,
        description=definition.description,
        parameters=definition.parameters_json_schema,
        function=getattr(schema, "function", None),
    )


def _observed_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    @asynccontextmanager
    async def iter(self: Any, user_prompt: Any = None, **options: Any) -> AsyncGenerator[Any]:
        if here() is None:
            async with original(self, user_prompt, **options) as run:
                yield run
            return
        async with agent_run(self.name or "agent", input=user_prompt) as recorded, original(self, user_prompt, **options) as run:
            yield run
            recorded.output = None if run.result is None else run.result.output

    return iter
