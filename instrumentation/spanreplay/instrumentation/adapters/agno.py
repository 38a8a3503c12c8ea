"""Agno: its agents and teams, every execution of a tool, and what people confirmed (agno 3.0 and 3.1).

``FunctionCall.execute`` and ``aexecute`` run a tool with its hooks and its cache; recorded is what they call in the end, the tool's
``entrypoint``. Tools that are generators, as those that ask a member of a team, are not: what they call is recorded by itself.
"""

import copy
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from importlib import metadata
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import call, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run, record_decision
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

NAME: Final = "agno"
_LAYER: Final = "agno.FunctionCall"
_STATE: Final = ToolState("session_state", without=("current_user_id", "current_session_id", "current_run_id"))
_ITEM: Final = "fc_"
"""Beginning of what Agno takes for the id of a call of OpenAI's Responses API: the id of the item that the call is in."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for name, make in (("execute", _observed_execute), ("aexecute", _observed_aexecute)):
        expect(module.FunctionCall, name, ["self"])
        patches.replace(module.FunctionCall, name, make)


def _patch_owner(name: str, module: ModuleType, patches: Patches) -> None:
    owner = getattr(module, name)
    for method in ("run", "arun"):
        expect(owner, method, ["self", "input"])
    for method in ("run", "arun", "continue_run", "acontinue_run"):
        if hasattr(owner, method):
            patches.replace(owner, method, functools.partial(_observed_run, method.startswith("a")))


_hooks: Final = Hooks(
    NAME,
    {
        "agno.tools.function": _patch_tools,
        "agno.agent.agent": functools.partial(_patch_owner, "Agent"),
        "agno.team.team": functools.partial(_patch_owner, "Team"),
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
        layer=_LAYER,
        call_id=None if str(asked.call_id).startswith(_ITEM) else asked.call_id,
        annotation=framework.returned(written),
    )


# ---- runs -------------------------------------------------------------------------------------------------------


def _observed_run(asynchronous: bool, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, *args, **options)
        asked = args[0] if args else options.get("input", options.get("run_response"))
        make = functools.partial(_Run, self, asked, options)
        observed = attempt(scope, "a run of an agent", make)
        if observed is None:
            return original(self, *args, **options)
        if not asynchronous:
            return observed.now(lambda: original(self, *args, **options))
        running = original(self, *args, **options)
        return observed.astream(running) if hasattr(running, "__anext__") else observed.awaited(running)

    return run


@functools.cache
def _version() -> str:
    return f"agno {metadata.version('agno')}"


class _Run:
    """A run of an agent or a team."""

    def __init__(self, agent: Any, asked: Any, options: Mapping[str, Any]) -> None:
        self._name: str = agent.name or type(agent).__name__.lower()
        self._tools = [tool for tool in getattr(asked, "tools", None) or () if getattr(tool, "confirmed", None) is not None]
        self._asked = {"continued": [[tool.tool_name, tool.confirmed] for tool in self._tools]} if hasattr(asked, "run_id") else asked
        self._session = options.get("session_id") or getattr(agent, "session_id", None)
        named = {
            key: value for key in ("instructions", "description", "role") if isinstance(value := getattr(agent, key, None), str | list)
        }
        model = getattr(getattr(agent, "model", None), "id", None)
        self._definition = {"framework": _version(), **named} | ({"model": model} if isinstance(model, str) else {})
        self._events = "Team" if type(agent).__name__ == "Team" else ""
        self._parts: list[str] = []
        self._output: Any = None

    def _begin(self) -> AgentRun:
        run = agent_run(self._name, input=self._asked, session=self._session, definition=self._definition)
        run.begin()
        with run.body():
            self._look(self._tell)
        return run

    def _ask(self, tools: Iterable[Any]) -> None:
        for tool in tools:
            if tool.requires_confirmation and tool.confirmed is None:
                self._decide(tool, "require_approval", NAME)

    def _tell(self) -> None:
        for tool in self._tools:
            self._decide(tool, "allow" if tool.confirmed else "deny", "caller")
            if not tool.confirmed:
                _reject(tool)

    def _decide(self, tool: Any, outcome: Any, by: str) -> None:
        record_decision(tool.tool_name, outcome, by=by, arguments=tool.tool_args or {}, call_id=tool.tool_call_id)

    def _seen(self, event: Any) -> None:
        name, content = getattr(event, "event", None), getattr(event, "content", None)
        if name == f"{self._events}RunContent" and isinstance(content, str):
            self._parts.append(content)
        elif name == f"{self._events}RunCompleted":
            self._output = content

    def _end(self, run: AgentRun, response: Any) -> None:
        run.output = "".join(self._parts) if response is None and self._output is None else getattr(response, "content", self._output)
        if response is not None and getattr(response, "is_paused", False):
            run.outcome = "interrupted"
            with run.body():
                self._look(lambda: self._ask(response.tools or ()))
        run.end()

    def _look(self, what: Callable[[], object]) -> None:
        scope = here()
        if scope is not None:
            attempt(scope, "what a person is asked or has said", what)

    def now(self, invoke: Callable[[], Any]) -> Any:
        """Run it, or begin to, where it answers with a stream."""
        run = self._begin()
        try:
            with run.body():
                response = invoke()
        except BaseException as error:
            run.end(error)
            raise
        if hasattr(response, "__next__"):
            return self._stream(run, response)
        self._end(run, response)
        return response

    async def awaited(self, running: Any) -> Any:
        """Run it to its end."""
        run = self._begin()
        try:
            with run.body():
                response = await running
        except BaseException as error:
            run.end(error)
            raise
        self._end(run, response)
        return response

    def _stream(self, run: AgentRun, events: Iterator[Any]) -> Iterator[Any]:
        try:
            while True:
                with run.body():
                    event = next(events, _OVER)
                if event is _OVER:
                    break
                self._seen(event)
                yield event
        except BaseException as error:
            run.end(error)
            raise
        self._end(run, None)

    async def astream(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Run it as its stream is read."""
        run = self._begin()
        try:
            while True:
                with run.body():
                    event = await anext(events, _OVER)
                if event is _OVER:
                    break
                self._seen(event)
                yield event
        except BaseException as error:
            run.end(error)
            raise
        self._end(run, None)


def _reject(tool: Any) -> None:
    scope = here()
    made = None
    if scope is not None:
        offered, asked = Offered(name=tool.tool_name), tool.tool_args or {}
        made = framework.tool_call(scope, offered, asked, layer=_LAYER, call_id=tool.tool_call_id, ending=lambda _: "rejected")
    if scope is not None and made is not None:
        call(scope, made, lambda: None)


_OVER: Final = object()
