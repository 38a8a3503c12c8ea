"""Tools of the OpenAI Agents SDK: its function tools, and the local actions (shell, computer, patches, custom tools).

A function tool passes ``_invoke_function_tool_with_metadata`` (``invoke_function_tool`` before 0.22), time-outs and the texts made of
errors included. A local action is recorded where it leaves the SDK: at the executor, the editor or the computer that the user gave it.
"""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import acall, here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope, in_force
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState
from spanreplay.semconv import attributes as names

_LAYER: Final = "openai_agents"
_PARAMETERS: Final = ("function_tool", "context", "arguments")
_WITH_METADATA: Final = "_invoke_function_tool_with_metadata"
_FAILED: Final = "maybe_invoke_function_tool_failure_error_function"
"""Makes the text that a model is told of an exception."""
_CONTEXT: Final = ToolState("context")
"""What the program gave ``Runner.run`` for its tools."""
_NESTED: Final = 4
"""Closures in closures, down to the function that the user wrote."""

_failures: ContextVar[list[BaseException] | None] = ContextVar("spanreplay.openai_agents.failures", default=None)
"""What the tool that runs here has raised, and the SDK made a text of."""


# ---- function tools ---------------------------------------------------------------------------------------------


def patch_tools(module: ModuleType, patches: Patches) -> None:
    """Observe ``agents.tool``."""
    with_metadata = hasattr(module, _WITH_METADATA)
    name = _WITH_METADATA if with_metadata else "invoke_function_tool"
    expect(module, name, _PARAMETERS)
    patches.rebind(module, name, functools.partial(_observed_tool, module, with_metadata))
    if hasattr(module, _FAILED):
        patches.rebind(module, _FAILED, _observed_failure)


def _observed_tool(module: ModuleType, with_metadata: bool, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, arguments: str) -> Any:
        scope = here()
        if scope is None:
            return await original(function_tool=function_tool, context=context, arguments=arguments)
        failures: list[BaseException] = []
        made = functools.partial(_call, scope, module, function_tool, context, arguments, failures)
        call = framework.attempt(scope, f"a call of {function_tool.name}", made)
        if call is None:
            return await original(function_tool=function_tool, context=context, arguments=arguments)

        held = None if call.passed else getattr(context, "context", None)

        async def body() -> Any:
            token = _failures.set(failures)
            try:
                result = await original(function_tool=function_tool, context=context, arguments=arguments)
            finally:
                _failures.reset(token)
            return result.output if with_metadata and not result.is_sdk_generated_error else result

        async def failing(error: BaseException) -> Any:
            told = await module.maybe_invoke_function_tool_failure_error_function(function_tool=function_tool, context=context, error=error)
            if told is None:
                raise error
            return told

        if hasattr(module, _FAILED):
            call.failing = failing
        result = await _CONTEXT.acall(scope, call, body, held)
        if not with_metadata or isinstance(result, module._FunctionToolInvocationResult):
            return result
        return module._FunctionToolInvocationResult(result)

    return invoke


def _call(scope: Scope, module: ModuleType, tool: Any, context: Any, arguments: str, failures: list[BaseException]) -> Call | None:
    function = _known_function(tool.on_invoke_tool)
    offered = Offered(
        name=tool.name, description=tool.description, parameters=tool.params_json_schema, function=function, attributes=_agent_in_force()
    )
    call = framework.tool_call(
        scope,
        offered,
        arguments,
        layer=_LAYER,
        call_id=context.tool_call_id,
        annotation=framework.returned(function),
        ending=functools.partial(_ending, failures, _timed_out(module, tool)),
    )
    if call is not None:
        call.passed = getattr(tool, "_is_agent_tool", False)  # what it leaves behind for the run around it is not in its result
    return call


def _observed_failure(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def failed(**given: Any) -> Any:
        failures, error, scope = _failures.get(), given.get("error"), here()
        if failures is not None and isinstance(error, BaseException):
            failures.append(error)
            if scope is not None and scope.step is not None:
                scope.step.learn({names.ERROR_TYPE: type(error).__qualname__, names.EXCEPTION_MESSAGE: str(error)})
        return await original(**given)

    return failed


def _timed_out(module: ModuleType, tool: Any) -> str | None:
    """What the model is told when the tool has taken too long."""
    seconds = getattr(tool, "timeout_seconds", None)
    return None if seconds is None else module.default_tool_timeout_error_message(tool_name=tool.name, timeout_seconds=seconds)


def _ending(failures: list[BaseException], timed_out: str | None, given: object) -> OutcomeName | None:
    if isinstance(given, BaseException):
        return "timeout" if type(given).__name__ == "ToolTimeoutError" else None
    if failures:
        return "timeout" if isinstance(failures[-1], TimeoutError) else "tool_error"
    given = _CONTEXT.result_of(given)
    said = getattr(given, "output", given)
    return "timeout" if timed_out is not None and isinstance(said, str) and said == timed_out else None


def _agent_in_force() -> dict[str, Any]:
    agent = in_force.get().get(names.GEN_AI_AGENT_NAME)
    return {} if agent is None else {names.GEN_AI_AGENT_NAME: agent}


_functions: Final[WeakKeyDictionary[Any, Callable[..., Any]]] = WeakKeyDictionary()


def _known_function(invoker: Any) -> Callable[..., Any] | None:
    try:
        found = _functions.get(invoker)
        if found is None and (found := _function(invoker)) is not None:
            _functions[invoker] = found
    except TypeError:  # what no weak reference can be made to, or cannot be hashed
        return _function(invoker)
    return found


def _function(invoker: Any, depth: int = 0) -> Callable[..., Any] | None:
    """The function that ``@function_tool`` was put on: its code is the tool's version, its annotation the type of the result."""
    found = getattr(invoker, "_invoke_tool_impl", invoker)
    code = getattr(found, "__code__", None)
    if code is None or depth == _NESTED:
        return None
    cells = dict(zip(code.co_freevars, found.__closure__ or (), strict=False))
    if "the_func" in cells:
        function = _content(cells["the_func"])
        return function if inspect.isfunction(function) else None
    within = (_function(inner, depth + 1) for cell in cells.values() if inspect.isfunction(inner := _content(cell)))
    return next((function for function in within if function is not None), None)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return None


# ---- calls that a person has rejected ---------------------------------------------------------------------------


def patch_items(module: ModuleType, patches: Patches) -> None:
    """Observe ``agents.run_internal.items``: what a rejected call is answered with is made there."""
    for name in ("function_rejection_item", "shell_rejection_item", "apply_patch_rejection_item"):
        expect(module, name, ["agent"])
        patches.rebind(module, name, _observed_rejection)


def _observed_rejection(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rejected(agent: Any, asked: Any, **options: Any) -> Any:
        item = original(agent, asked, **options)
        scope = here()
        if scope is not None:
            made = functools.partial(_rejected, scope, options.get("tool_call", asked))
            call = framework.attempt(scope, "a rejected call", made)
            if call is not None:
                boundary.call(scope, call, lambda: item.output)
        return item

    return rejected


def _rejected(scope: Scope, asked: Any) -> Call | None:
    name, arguments, call_id = described(asked)
    return framework.tool_call(
        scope,
        Offered(name=name, attributes=_agent_in_force()),
        arguments,
        layer=_LAYER,
        call_id=call_id,
        ending=lambda _: "rejected",
    )


def described(asked: Any) -> tuple[str, Any, str | None]:
    """Name, arguments and id of a tool call as the model made it, which may be an object or a mapping."""
    given = asked if isinstance(asked, Mapping) else {key: getattr(asked, key, None) for key in _FIELDS}
    kind = str(given.get("type") or "tool")
    arguments: Any = next((value for key in ("arguments", "input", "action", "operation") if (value := given.get(key)) is not None), {})
    call_id = given.get("call_id") or given.get("id")
    return given.get("name") or kind.removesuffix("_call"), _plain(arguments), call_id if isinstance(call_id, str) else None


_FIELDS: Final = ("type", "name", "arguments", "input", "action", "operation", "call_id", "id")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, Mapping) else value


# ---- local actions ----------------------------------------------------------------------------------------------


def patch_actions(module: ModuleType, patches: Patches) -> None:
    """Observe ``agents.run_internal.tool_actions``: shell, patches, custom tools, and the computer."""
    for owner, tool, seam in (
        ("LocalShellAction", "local_shell_tool", _shell),
        ("ShellAction", "shell_tool", _shell),
        ("ApplyPatchAction", "apply_patch_tool", _patching),
        ("CustomToolAction", "custom_tool", _custom),
    ):
        action = getattr(module, owner, None)
        if action is not None:
            expect(action, "execute", ["agent", "call"])
            patches.replace(action, "execute", functools.partial(_observed_action, tool, seam))
    expect(module.ComputerAction, "_execute_action_and_capture", ["computer", "tool_call"])
    patches.replace(module.ComputerAction, "_execute_action_and_capture", _observed_computer)


def _observed_action(tool: str, seam: Callable[[Any, str | None], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def execute(*, call: Any, **options: Any) -> Any:
        scope = here()
        if scope is not None:
            given = getattr(call, tool, None), described(getattr(call, "tool_call", None))[2]
            observed = framework.attempt(scope, f"a call of {tool}", lambda: dataclasses.replace(call, **{tool: seam(*given)}))
            call = call if observed is None else observed
        return await original(call=call, **options)

    return execute


def _shell(tool: Any, call_id: str | None) -> Any:
    run = tool.executor

    async def executor(request: Any) -> Any:
        return await _recorded(Offered(name=tool.name), _plain(request.data.action), call_id, lambda: run(request))

    if run is None:
        return tool
    observed = copy.copy(tool)
    observed.executor = executor
    return observed


def _custom(tool: Any, call_id: str | None) -> Any:
    run = tool.on_invoke_tool

    async def on_invoke_tool(context: Any, given: str) -> Any:
        asked = Offered(name=tool.name, description=tool.description, parameters=tool.format)
        return await _recorded(asked, given, call_id, lambda: run(context, given))

    observed = copy.copy(tool)
    observed.on_invoke_tool = on_invoke_tool
    return observed


def _patching(tool: Any, call_id: str | None) -> Any:
    observed = copy.copy(tool)
    observed.editor = _Editor(tool, call_id)
    return observed


class _Editor:
    """An ``ApplyPatchEditor`` whose operations are steps."""

    def __init__(self, tool: Any, call_id: str | None) -> None:
        self._tool = tool
        self._call_id = call_id

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tool.editor, name)
        if name not in ("create_file", "update_file", "delete_file"):
            return found

        async def operate(operation: Any) -> Any:
            given = {key: getattr(operation, key, None) for key in ("type", "path", "diff", "move_to")}
            asked = {key: value for key, value in given.items() if value is not None}
            return await _recorded(Offered(name=self._tool.name), asked, self._call_id, lambda: found(operation))

        return operate


def _observed_computer(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def capture(computer: Any, tool_call: Any) -> Any:
        actions = getattr(tool_call, "actions", None) or [getattr(tool_call, "action", None)]
        asked = {"actions": [_plain(action) for action in actions]}
        return await _recorded(Offered(name="computer"), asked, getattr(tool_call, "call_id", None), lambda: original(computer, tool_call))

    return capture


async def _recorded(offered: Offered, arguments: Any, call_id: str | None, run: Callable[[], Any]) -> Any:
    async def body() -> Any:
        result = run()
        return await result if isinstance(result, Awaitable) else result

    scope = here()
    offered = dataclasses.replace(offered, attributes=_agent_in_force())
    call = None if scope is None else framework.tool_call(scope, offered, arguments, layer=_LAYER, call_id=call_id)
    return await body() if scope is None or call is None else await acall(scope, call, body)
