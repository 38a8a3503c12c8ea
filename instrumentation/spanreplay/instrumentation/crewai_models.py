"""CrewAI: functions that ``LLM.call(tools=…, available_functions=…)`` runs by itself, outside any agent.

``BaseLLM._handle_tool_execution`` (private, crewai 1.15) is where every model of the framework runs one. It is not told the id of the call,
nor what was offered; the call is found by its arguments.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import call, here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches

_LAYER: Final = "crewai.BaseLLM"


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe the functions that models run; a seam for :class:`~spanreplay.instrumentation.hooks.Hooks`."""
    expect(module.BaseLLM, "_handle_tool_execution", ["self", "function_name", "function_args", "available_functions"])
    patches.replace(module.BaseLLM, "_handle_tool_execution", _observed_execution)


def _observed_execution(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute(self: Any, function_name: str, function_args: Any, available_functions: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        function = None if scope is None else available_functions.get(function_name)
        if scope is not None and function is not None and not _is_its_own(function):
            available_functions = {**available_functions, function_name: _observed_function(scope, function_name, function)}
        return original(self, function_name, function_args, available_functions, *args, **options)

    return execute


def _is_its_own(function: Any) -> bool:
    """Whether it is a part of the framework: a tool's ``run``, which is a step itself, or what takes a plan apart."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "crewai"


def _observed_function(scope: Scope, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    offered = Offered(name=name, description=getattr(function, "__doc__", None), function=function)

    def run(**arguments: Any) -> Any:
        made = framework.tool_call(scope, offered, arguments, layer=_LAYER, annotation=framework.returned(function))
        return function(**arguments) if made is None else call(scope, made, lambda: function(**arguments))

    return run
