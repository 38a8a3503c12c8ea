"""LangChain: every execution of a tool, wherever it is called from, and what humans decide about one.

``BaseTool.run`` and ``arun`` (langchain-core, public) run a tool for LangGraph's ``ToolNode``, for ``create_agent``, deepagents, chains and
plain code. A replay leaves the callbacks around the body in place, so that streamed events are those of the record.
``ToolNode`` answers a call of a tool that there is none of by itself: such a call is a step too, ``malformed``.
``HumanInTheLoopMiddleware`` asks with ``interrupt``, and gets the decisions as its result.
"""

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, call, here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.langchain_values import Wrote, is_a, is_command, is_tool_message, packed, unpacked
from spanreplay.instrumentation.manual import record_decision
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

NAME: Final = "langchain"
_LAYER: Final = "langchain.BaseTool"
_SUB_AGENTS: Final = "deepagents.middleware.subagents"
"""Whose tool ``task`` does nothing but run an agent, of which the graph around it streams what it does."""
_INTERRUPT: Final = "langgraph.errors:GraphInterrupt"
_SEND: Final = "__pregel_send"
"""LangGraph's ``CONFIG_KEY_SEND``."""
_RESUME: Final = "__resume__"
_RUNTIME: Final = "__pregel_runtime"
_CONTEXT: Final = ToolState("context")
"""What the program gave the graph for its tools and nodes."""
_DENIED: Final = frozenset({"reject", "respond"})


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for name, made in (("run", _observed_run), ("arun", _observed_arun)):
        expect(module.BaseTool, name, ["self", "tool_input", "tool_call_id"])
        patches.replace(module.BaseTool, name, made)


def _patch_tool_node(module: ModuleType, patches: Patches) -> None:
    node = getattr(module, "ToolNode", None) or getattr(module, "_ToolNode", None)  # the latter in langchain 1.0.0
    if node is not None and node.__module__ == module.__name__:  # later releases of langchain have none of their own
        expect(node, "_validate_tool_call", ["self", "call"])
        patches.replace(node, "_validate_tool_call", _observed_look_up)


def _patch_approvals(module: ModuleType, patches: Patches) -> None:
    expect(module, "interrupt", ["value"])
    patches.replace(module, "interrupt", _observed_question)
    middleware = module.HumanInTheLoopMiddleware
    expect(middleware, "_process_decision", ["decision", "tool_call"])
    static = isinstance(inspect.getattr_static(middleware, "_process_decision"), staticmethod)
    patches.replace(middleware, "_process_decision", functools.partial(_observed_answer, static=static))


_hooks: Final = Hooks(
    NAME,
    {
        "langchain_core.tools.base": _patch_tools,
        "langgraph.prebuilt.tool_node": _patch_tool_node,
        "langchain.tools.tool_node": _patch_tool_node,  # langchain 1.0 has one of its own
        "langchain.agents.middleware.human_in_the_loop": _patch_approvals,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, tool_input: Any, *args: Any, **options: Any) -> Any:
        made = _call(self, tool_input, options)
        if made is None:
            return original(self, tool_input, *args, **options)
        scope, asked = made
        live = _Live(self, options)

        def step(*_: Any, **__: Any) -> Any:
            def body() -> Any:
                with live.running():
                    return live.gave(original(self, tool_input, *args, **live.options))

            with _renumbered(scope, options), live.raised(scope):
                given = call(scope, asked, body)
            return live.result(given)

        stand_in = _stand_in(self, "_run", step) if scope.session.mode == "replay" and not asked.passed else None
        return step() if stand_in is None else original(stand_in, tool_input, *args, **options)

    return run


def _observed_arun(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def arun(self: Any, tool_input: Any, *args: Any, **options: Any) -> Any:
        made = _call(self, tool_input, options)
        if made is None:
            return await original(self, tool_input, *args, **options)
        scope, asked = made
        live = _Live(self, options)

        async def body() -> Any:
            with live.running():
                return live.gave(await original(self, tool_input, *args, **live.options))

        async def step(*_: Any, **__: Any) -> Any:
            with _renumbered(scope, options), live.raised(scope):
                given = await acall(scope, asked, body)
            return live.result(given)

        stand_in = _stand_in(self, "_arun", step) if scope.session.mode == "replay" and not asked.passed else None
        return await (step() if stand_in is None else original(stand_in, tool_input, *args, **options))

    return arun


def _observed_look_up(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _validate_tool_call(self: Any, call: Any) -> Any:
        refused, scope = original(self, call), here()
        if refused is not None and scope is not None:
            framework.attempt(scope, "a call of no tool", lambda: _keep_malformed(scope, call, refused.content))
        return refused

    return _validate_tool_call


def _keep_malformed(scope: Scope, asked: Any, told: object) -> None:
    framework.not_made(scope, Offered(name=asked["name"]), asked["args"], "malformed", layer=_LAYER, call_id=asked["id"], told=told)


class _Live:
    """One execution of a tool: what it gives, and what it writes to the state of its graph past that."""

    def __init__(self, tool: Any, options: dict[str, Any]) -> None:
        self._tool = tool
        self._call_id: str | None = options.get("tool_call_id")
        self._given: list[Any] = []
        self._writes: list[tuple[str, Any]] = []
        config = options.get("config") or {}
        place = config.get("configurable") or {}
        self._send: Any = place.get(_SEND)
        self._context = getattr(place.get(_RUNTIME), "context", None)
        self._before = _CONTEXT.of(self._context)
        self.options = options
        """With a way to the state that is listened to."""
        if self._send is not None:
            self.options = {**options, "config": {**config, "configurable": {**place, _SEND: self._wrote}}}

    def _wrote(self, writes: Any) -> None:
        self._send(writes)
        self._writes.extend((channel, value) for channel, value in writes if channel != _RESUME)

    def running(self) -> AbstractContextManager[None]:
        """Around the tool: what it leaves behind where it raises."""
        return _CONTEXT.left(self._before, self._context, lambda: Wrote(None, self._writes) if self._writes else None)

    def raised(self, scope: Scope) -> AbstractContextManager[None]:
        """Around the call: a tool that raised in the record has left behind what it left there."""
        return _CONTEXT.raised(scope, self._context, self._written)

    def _written(self, given: Any) -> Any:
        if not isinstance(given, Wrote):
            return given
        if self._send is not None:
            self._send(given.writes)
        return given.result

    def gave(self, value: Any) -> Any:
        """The result, as it is kept."""
        self._given.append(value)
        kept = packed(value, self._tool.name)
        return _CONTEXT.kept(Wrote(kept, self._writes) if self._writes else kept, self._before, self._context)

    def result(self, given: Any) -> Any:
        """The result: the very object, or what the record says, as this execution needs it.

        Clients of some models make the ids of calls themselves, anew each time.
        """
        if self._given:
            return self._given[0]
        given = self._written(_CONTEXT.restored(given, self._context))
        given = unpacked(given, self._tool.name, self._call_id, sys.modules)
        if self._call_id is not None:
            told = given.update.get("messages") if is_command(given) and isinstance(given.update, dict) else [given]
            mine = [message for message in told if is_tool_message(message)] if isinstance(told, list) else []
            if len(mine) == 1:
                mine[0].tool_call_id = self._call_id
        return given


def _call(tool: Any, tool_input: Any, options: dict[str, Any]) -> tuple[Scope, Call] | None:
    scope = here()
    if scope is None:
        return None
    try:
        offered = _offered(tool)
        arguments = _asked(tool, offered, tool_input)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the tool {getattr(tool, 'name', '?')}")
        return None
    call_id = options.get("tool_call_id")
    annotation = framework.returned(offered.function) if call_id is None else None
    made = framework.tool_call(scope, offered, arguments, layer=_LAYER, call_id=call_id, annotation=annotation, ending=_ending)
    if made is None:
        return None
    made.passed = getattr(offered.function, "__module__", None) == _SUB_AGENTS
    return scope, made


def _offered(tool: Any) -> Offered:
    """What a model is shown of a tool."""
    made_from = (tool.name, tool.description, id(tool.args_schema), getattr(tool, "func", None), getattr(tool, "coroutine", None))
    return framework.once(tool, made_from, lambda: _described(tool))


def _described(tool: Any) -> Offered:
    schema = tool.tool_call_schema
    hints = tool.metadata or {}  # of a server of MCP
    return Offered(
        name=tool.name,
        description=tool.description,
        parameters=schema if isinstance(schema, dict) else schema.model_json_schema(),
        function=getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run,
        effect="read" if hints.get("readOnlyHint") is True else "unknown",
    )


def _asked(tool: Any, offered: Offered, tool_input: Any) -> Any:
    """The arguments that the model gave, without those that the framework injects: state, store, runtime."""
    if not isinstance(tool_input, dict):
        return tool_input
    keep = getattr(tool, "_filter_injected_args", None)
    if keep is not None:
        return keep(tool_input)
    properties = offered.parameters.get("properties", {}) if isinstance(offered.parameters, dict) else {}
    return {name: value for name, value in tool_input.items() if name in properties}


def _ending(given: object) -> OutcomeName | None:
    given = _CONTEXT.result_of(given)
    given = given.result if isinstance(given, Wrote) else given
    if isinstance(given, BaseException):
        return "interrupted" if is_a(type(given), _INTERRUPT) else None
    return "tool_error" if is_tool_message(given) and getattr(given, "status", None) == "error" else None


# ---- a replay ---------------------------------------------------------------------------------------------------


def _stand_in(tool: Any, name: str, step: Callable[..., Any]) -> Any:
    """A tool whose body is a recorded step, and which makes nothing more of what that gives; ``None`` for a tool that cannot be copied."""
    try:
        made = copy.copy(tool)
        changes = {
            name: step,
            "_to_args_and_kwargs": lambda *_: ((), {}),
            "response_format": "content",
            "handle_tool_error": False,
            "handle_validation_error": False,
        }
        for changed, value in changes.items():
            object.__setattr__(made, changed, value)
    except Exception:  # noqa: BLE001 — a tool of any kind
        return None
    return made


@contextmanager
def _renumbered(scope: Scope, options: dict[str, Any]) -> Iterator[None]:
    """A recorded interrupt gets the id that this execution knows it by."""
    try:
        yield
    except BaseException as error:
        place = ((options.get("config") or {}).get("configurable") or {}).get("checkpoint_ns")
        if scope.session.mode == "replay" and place and is_a(type(error), _INTERRUPT) and error.args:
            error.args = (tuple(_numbered(interrupt, place) for interrupt in error.args[0]), *error.args[1:])
        raise


def _numbered(interrupt: Any, place: str) -> Any:
    known = getattr(type(interrupt), "from_ns", None)
    if known is not None:
        object.__setattr__(interrupt, "id", known(None, ns=place).id)  # frozen in some releases
    return interrupt


# ---- approvals --------------------------------------------------------------------------------------------------


def _observed_question(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def interrupt(value: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(value, *args, **options)
        try:
            answer = original(value, *args, **options)
        except BaseException as error:
            if is_a(type(error), _INTERRUPT):
                for asked in _questions(value):
                    _decided(scope, {"type": "ask"}, asked, by="HumanInTheLoopMiddleware")
            raise
        if isinstance(value, dict) and value.get("type") == "tool_approval":
            _decided(scope, answer, value, by="human")
        return answer

    return interrupt


def _questions(value: Any) -> list[Any]:
    return list(value.get("action_requests") or [value]) if isinstance(value, dict) else []


def _observed_answer(original: Callable[..., Any], *, static: bool) -> Any:
    @functools.wraps(original)
    def _process_decision(*args: Any, **options: Any) -> Any:
        scope = here()
        if scope is not None:
            decision, tool_call, *_ = args if static else args[1:]
            _decided(scope, decision, tool_call, by="human")
        return original(*args, **options)

    return staticmethod(_process_decision) if static else _process_decision


def _decided(scope: Scope, decision: Any, asked: Any, *, by: str) -> None:
    """Keep a decision: ``{"type": "approve" | "edit" | "reject" | "respond", …}`` on ``{"name", "args", "id" | "tool_call_id"}``."""
    try:
        kind = decision["type"]
        edited = decision.get("edited_action") or {}
        arguments = edited.get("args", asked.get("args"))
        record_decision(
            asked["name"],
            "require_approval" if kind == "ask" else "deny" if kind in _DENIED else "allow",
            by=by,
            reason=decision.get("message") or ("edited" if edited else None),
            arguments=arguments if isinstance(arguments, dict) else None,
            call_id=asked.get("id") or asked.get("tool_call_id"),
        )
    except (AttributeError, LookupError, TypeError):
        scope.session.failed("a decision about a tool call")
