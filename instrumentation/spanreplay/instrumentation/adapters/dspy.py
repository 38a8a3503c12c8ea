"""DSPy: its modules, every execution of a tool, the code that models write, and what its cache answers (dspy 3.0).

Models are seen by the transports. Recorded of a tool is its function, so that DSPy checks arguments, converts them and calls back in a
replay too. ``ToolCall.execute`` may be given bare functions instead of tools.
"""

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.asked import ask_as_heard
from spanreplay.boundary.boundary import acall, call, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.content.canonical import digest
from spanreplay.instrumentation import dspy_cache, dspy_errors, framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches

NAME: Final = "dspy"
_LAYER: Final = "dspy.Tool"
_OF_ONE_CALL: Final = frozenset({"dspy.predict.predict", "dspy.predict.chain_of_thought"})
"""Modules that only put a question to a model: inside a run they are no step beside that model call."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for name, make in (("__call__", _observed_tool), ("acall", _observed_async_tool)):
        expect(module.Tool, name, ["self"])
        patches.replace(module.Tool, name, make)
    execute = getattr(module.ToolCalls.ToolCall, "execute", None)
    if execute is not None:  # from 3.0.4 on
        expect(module.ToolCalls.ToolCall, "execute", ["self", "functions"])
        patches.replace(module.ToolCalls.ToolCall, "execute", functools.partial(_observed_execute, module.Tool))


def _patch_modules(module: ModuleType, patches: Patches) -> None:
    for name, make in (("__call__", _observed_module), ("acall", _observed_async_module)):
        expect(module.Module, name, ["self", "args", "kwargs"])
        patches.replace(module.Module, name, make)


def _patch_interpreter(name: str, module: ModuleType, patches: Patches) -> None:
    interpreter = getattr(module, name)
    expect(interpreter, "execute", ["self", "code", "variables"])
    patches.replace(interpreter, "execute", _observed_interpreter)


_hooks: Final = Hooks(
    NAME,
    {
        "dspy.adapters.types.tool": _patch_tools,
        "dspy.primitives.module": _patch_modules,
        "dspy.primitives.python_interpreter": functools.partial(_patch_interpreter, "PythonInterpreter"),
        "dspy.primitives.local_interpreter": functools.partial(_patch_interpreter, "LocalInterpreter"),
        "dspy.clients.cache": dspy_cache.patch,
        "dspy.utils.exceptions": dspy_errors.patch,
        "dspy.predict.react": dspy_errors.patch,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        return original(self if scope is None else _observe(scope, self, kwargs), *args, **kwargs)

    return through


def _observed_async_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        return await original(self if scope is None else _observe(scope, self, kwargs), *args, **kwargs)

    return through


def _observe(scope: Scope, tool: Any, arguments: Mapping[str, Any]) -> Any:
    """A stand-in of the tool whose function is observed."""

    def make() -> Any:
        made = copy.copy(tool)
        offered = Offered(
            name=tool.name,
            description=tool.desc or None,
            parameters=tool.args,
            function=tool.func,
            effect="read" if str(getattr(tool.func, "__module__", "")).startswith("dspy.") else "unknown",  # of its own, to say it is done
        )
        made.func = _function(offered, tool.func, arguments)
        return made

    return attempt(scope, f"a call of {tool.name}", make) or tool


def _function(offered: Offered, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Callable[..., Any]:
    def made(scope: Scope | None) -> Call | None:
        if scope is None:
            return None
        returned = framework.returned(function)
        return framework.tool_call(scope, offered, dict(arguments), layer=_LAYER, annotation=returned)

    def synchronous(*args: Any, **given: Any) -> Any:
        scope = here()
        one = made(scope)
        return function(*args, **given) if scope is None or one is None else call(scope, one, lambda: function(*args, **given))

    async def asynchronous(*args: Any, **given: Any) -> Any:
        scope = here()
        one = made(scope)
        return await (function(*args, **given) if scope is None or one is None else acall(scope, one, lambda: function(*args, **given)))

    written = inspect.unwrap(function)
    return asynchronous if inspect.iscoroutinefunction(written) or inspect.iscoroutinefunction(type(written).__call__) else synchronous


def _observed_execute(kind: type, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute(self: Any, functions: Any = None) -> Any:
        scope = here()
        if scope is None:
            return original(self, functions)
        around = sys._getframe(1)
        if functions is None:  # DSPy looks where it is called from
            found = around.f_locals.get(self.name) or around.f_globals.get(self.name)
        elif isinstance(functions, Mapping):
            found = functions.get(self.name)
        else:
            found = next((tool.func for tool in functions if tool.name == self.name), None)
        if found is None:
            return original(self, {})
        if not isinstance(found, kind):
            tool = next((t for t in functions if t.name == self.name), None) if isinstance(functions, list) else None
            offered = Offered(
                name=self.name,
                description=getattr(tool, "desc", None) or inspect.getdoc(found),
                parameters=getattr(tool, "args", None),
                function=found,
            )
            found = _function(offered, found, self.args or {})
        return original(self, {self.name: found})

    return execute


# ---- modules ----------------------------------------------------------------------------------------------------


def _observed_module(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, *args, **kwargs)
        run = attempt(scope, "a call of a module", lambda: _run(scope, self, args, kwargs))
        if run is None:
            return _heard(scope, original(self, *args, **kwargs))
        with run:
            value = original(self, *args, **kwargs)
            run.output = _plain(value)
        return value

    return through


def _observed_async_module(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(self, *args, **kwargs)
        run = attempt(scope, "a call of a module", lambda: _run(scope, self, args, kwargs))
        if run is None:
            return _heard(scope, await original(self, *args, **kwargs))
        async with run:
            value = await original(self, *args, **kwargs)
            run.output = _plain(value)
        return value

    return through


def _run(scope: Scope, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AgentRun | None:
    inside = scope.run is not None and not scope.run.fallback
    if inside and type(module).__module__ in _OF_ONE_CALL:
        return None
    asked: Any = dict(kwargs)
    if args:
        asked = args[0] if len(args) == 1 and not kwargs else {"arguments": list(args), **kwargs}
    return agent_run(type(module).__name__, input=asked, definition=_definition(module))


def _definition(module: Any) -> dict[str, object]:
    """The program, with what an optimizer has made of it."""
    predictors = {name: _predictor(one) for name, one in module.named_predictors()}
    tools = getattr(module, "tools", None)
    told: dict[str, object] = {"framework": _version(), "predictors": predictors}
    if isinstance(tools, Mapping):
        told["tools"] = list(tools)
    model = getattr(sys.modules["dspy"].settings.lm, "model", None)
    return told | ({"model": model} if isinstance(model, str) else {})


def _predictor(predictor: Any) -> dict[str, object]:
    signature, demos = predictor.signature, list(predictor.demos or ())
    told: dict[str, object] = {"signature": signature.signature, "instructions": signature.instructions}
    if demos:
        told |= {"demos": len(demos), "demos_digest": digest(codec.encode([_plain(demo) for demo in demos]).text)}
    model = getattr(predictor.lm, "model", None)
    return told | ({"model": model} if isinstance(model, str) else {})


@functools.cache
def _version() -> str:
    return f"dspy {metadata.version('dspy')}"


def _plain(value: Any) -> Any:
    """A prediction or an example as the dictionary that it is."""
    store = getattr(value, "_store", None)
    return dict(store) if isinstance(store, dict) else value


def _heard(scope: Scope, prediction: Any) -> Any:
    """ReAct has its model write a tool's name and arguments into a text: that call will have been asked for by that model call."""
    said = getattr(prediction, "_store", None)
    if isinstance(said, dict) and isinstance(arguments := said.get("next_tool_args"), dict):
        attempt(scope, "what a model asks for", lambda: ask_as_heard(scope, str(said.get("next_tool_name")), arguments))
    return prediction


# ---- code -------------------------------------------------------------------------------------------------------


def _observed_interpreter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute(self: Any, code: str, variables: dict[str, Any] | None = None) -> Any:
        scope = here()
        if scope is None:
            return original(self, code, variables)
        offered = Offered(name=type(self).__name__, attributes={})
        asked = {"code": code} | ({"variables": variables} if variables else {})
        made = attempt(scope, "code to run", lambda: framework.tool_call(scope, offered, asked, layer="dspy.CodeInterpreter"))
        if made is None:
            return original(self, code, variables)
        return _submitted(call(scope, made, lambda: _told(original(self, code, variables))))

    return execute


_SUBMITTED: Final = "FinalOutput"


def _told(result: Any) -> Any:
    return {_SUBMITTED: result.output} if type(result).__name__ == _SUBMITTED else result


def _submitted(told: Any) -> Any:
    if isinstance(told, dict) and list(told) == [_SUBMITTED]:
        return sys.modules["dspy.primitives.code_interpreter"].FinalOutput(told[_SUBMITTED])
    return told
