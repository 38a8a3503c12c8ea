"""Agno: its agents, teams and workflows, every execution of a tool, and what people confirmed (agno 3.0 and 3.1).

``FunctionCall.execute`` and ``aexecute`` run a tool with its hooks and its cache; recorded is what they call in the end, the tool's
``entrypoint``. Tools that are generators, as those that ask a member of a team, are not: what they call is recorded by itself.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.agno_runs import LAYER, Kind, ObservedRun
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

NAME: Final = "agno"
_STATE: Final = ToolState("session_state", without=("current_user_id", "current_session_id", "current_run_id"))
_ITEM: Final = "fc_"
"""Beginning of what Agno takes for the id of a call of OpenAI's Responses API: the id of the item that the call is in."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for name, make in (("execute", _observed_execute), ("aexecute", _observed_aexecute)):
        expect(module.FunctionCall, name, ["self"])
        patches.replace(module.FunctionCall, name, make)


def _patch_owner(name: Kind, module: ModuleType, patches: Patches) -> None:
    owner = getattr(module, name)
    for method in ("run", "arun"):
        expect(owner, method, ["self", "input"])
    for method in ("run", "arun", "continue_run", "acontinue_run"):
        if hasattr(owner, method):
            patches.replace(owner, method, functools.partial(_observed_run, name, method.startswith("a")))


_hooks: Final = Hooks(
    NAME,
    {
        "agno.tools.function": _patch_tools,
        "agno.agent.agent": functools.partial(_patch_owner, "Agent"),
        "agno.team.team": functools.partial(_patch_owner, "Team"),
        "agno.workflow.workflow": functools.partial(_patch_owner, "Workflow"),
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_execute(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def execute(self: Any) -> Any:
        before = _observe(self)
        try:
            return original(self)
        finally:
            if before is not None:
                self.function = before

    return execute


def _observed_aexecute(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def aexecute(self: Any) -> Any:
        before = _observe(self)
        try:
            return await original(self)
        finally:
            if before is not None:
                self.function = before

    return aexecute


def _observe(asked: Any) -> Any:
    """Give a call a function of its own whose entrypoint is observed; returns the one it had, or ``None`` where nothing was done."""
    scope, function = here(), asked.function
    if scope is None or function.entrypoint is None or _generates(function.entrypoint):
        return None
    observed = attempt(scope, f"a call of {function.name}", lambda: _copied(function, _entrypoint(asked)))
    if observed is None:
        return None
    asked.function = observed
    return function


def _copied(function: Any, entrypoint: Callable[..., Any]) -> Any:
    copied = copy.copy(function)
    copied.entrypoint = entrypoint
    return copied


def _generates(entrypoint: Any) -> bool:
    whole = inspect.unwrap(entrypoint)
    return inspect.isgeneratorfunction(whole) or inspect.isasyncgenfunction(whole)


def _entrypoint(asked: Any) -> Callable[..., Any]:
    entrypoint, name = asked.function.entrypoint, asked.function.name

    def made(scope: Scope | None) -> Call | None:
        return None if scope is None else attempt(scope, f"a call of {name}", lambda: _call(scope, asked, entrypoint))

    if inspect.iscoroutinefunction(inspect.unwrap(entrypoint)):

        @functools.wraps(entrypoint)
        async def asynchronous(*args: Any, **given: Any) -> Any:
            scope = here()
            one = made(scope)
            if scope is None or one is None:
                return await entrypoint(*args, **given)
            return await _STATE.acall(scope, one, lambda: entrypoint(*args, **given), _held(given))

        return asynchronous

    @functools.wraps(entrypoint)
    def synchronous(*args: Any, **given: Any) -> Any:
        scope = here()
        one = made(scope)
        if scope is None or one is None:
            return entrypoint(*args, **given)
        return _STATE.call(scope, one, lambda: entrypoint(*args, **given), _held(given))

    return synchronous


def _held(given: Mapping[str, Any]) -> Any:
    """The state of the session, where the tool is given it."""
    return getattr(given.get("run_context"), "session_state", None)


def _call(scope: Scope, asked: Any, entrypoint: Any) -> Call | None:
    function = asked.function
    written = inspect.unwrap(entrypoint)
    return framework.tool_call(
        scope,
        Offered(name=function.name, description=function.description, parameters=function.parameters, function=written),
        dict(asked.arguments or {}),
        layer=LAYER,
        call_id=None if str(asked.call_id).startswith(_ITEM) else asked.call_id,
        annotation=framework.returned(written),
    )


# ---- runs -------------------------------------------------------------------------------------------------------


def _observed_run(kind: Kind, asynchronous: bool, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, *args, **options)
        asked = args[0] if args else options.get("input", options.get("run_response"))
        make = functools.partial(ObservedRun, kind, self, asked, options)
        observed = attempt(scope, "a run of an agent", make)
        if observed is None:
            return original(self, *args, **options)
        if not asynchronous:
            return observed.now(lambda: original(self, *args, **options))
        running = original(self, *args, **options)
        return observed.astream(running) if hasattr(running, "__anext__") else observed.awaited(running)

    return run
