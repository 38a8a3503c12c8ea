"""Microsoft Agent Framework: its agents and workflows, every execution of a tool, and what people approved (core 1.8 to 1.23).

A tool's function is called by ``FunctionTool._invoke_function`` from inside ``FunctionTool.invoke``, which knows the id of the call: its
validation, parsing and own telemetry run in a replay too. Agents and workflows are ``run``, awaited or streamed. Models go over HTTP.
"""

import functools
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from importlib import metadata
from types import ModuleType
from typing import Any, Final, NamedTuple

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered, attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run, record_decision
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.tool_state import ToolState

NAME: Final = "agent_framework"
_LAYER: Final = "agent_framework.FunctionTool"
_AGENT_TOOL: Final = "BaseAgent.as_tool."
_UNNAMED: Final = "WorkflowBuilder-"
_WAITS: Final = "UserInputRequiredException"
_STATE: Final = ToolState("session_state")


class _Asked(NamedTuple):
    """The call that ``FunctionTool.invoke`` is seeing to."""

    arguments: Any
    call_id: str | None
    state: Any
    """Of the session around it, which the tool may change."""


_asked: ContextVar[_Asked | None] = ContextVar("spanreplay.agent_framework.asked", default=None)


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module.FunctionTool, "invoke", ["self", "arguments", "context", "tool_call_id"])
    expect(module.FunctionTool, "_invoke_function", ["self", "call_kwargs"])
    patches.replace(module.FunctionTool, "invoke", _noted)
    patches.replace(module.FunctionTool, "_invoke_function", _observed_tool)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    for owner in (module.Agent, module.RawAgent):
        expect(owner, "run", ["self", "messages", "stream"])
        own = type(None) if owner is module.Agent else module.Agent  # whose own run goes through that of its base class
        patches.replace(owner, "run", functools.partial(_observed_run, _of_agent, own))


def _patch_workflows(module: ModuleType, patches: Patches) -> None:
    expect(module.Workflow, "run", ["self", "message", "stream"])
    patches.replace(module.Workflow, "run", functools.partial(_observed_run, _of_workflow, type(None)))


_hooks: Final = Hooks(
    NAME,
    {
        "agent_framework._tools": _patch_tools,
        "agent_framework._agents": _patch_agents,
        "agent_framework._workflows._workflow": _patch_workflows,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _noted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def invoke(self: Any, *, arguments: Any = None, context: Any = None, tool_call_id: str | None = None, **options: Any) -> Any:
        given = arguments if arguments is not None else getattr(context, "arguments", None) or options
        state = getattr(getattr(context, "session", None), "state", None)
        token = _asked.set(_Asked(given, tool_call_id, state))
        try:
            return await original(self, arguments=arguments, context=context, tool_call_id=tool_call_id, **options)
        finally:
            _asked.reset(token)

    return invoke


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _invoke_function(self: Any, call_kwargs: Mapping[str, Any]) -> Any:
        scope = here()
        call = None if scope is None else attempt(scope, f"a call of {self.name}", lambda: _call(scope, self, call_kwargs))
        if scope is None or call is None:
            return await original(self, call_kwargs)

        asked = _asked.get()
        state = None if asked is None or call.passed else asked.state

        async def body() -> Any:
            token = _asked.set(None)
            try:
                return await original(self, call_kwargs)
            finally:
                _asked.reset(token)

        return await _STATE.acall(scope, call, body, state)

    return _invoke_function


def _call(scope: Scope, tool: Any, given: Mapping[str, Any]) -> Call | None:
    asked = _asked.get()
    arguments: Any = given if asked is None else asked.arguments
    if hasattr(arguments, "model_dump"):
        arguments = arguments.model_dump(exclude_unset=True)
    function = getattr(tool.func, "func", tool.func)
    call = framework.tool_call(
        scope,
        Offered(name=tool.name, description=tool.description, parameters=tool.parameters(), function=function),
        dict(arguments),
        layer=_LAYER,
        call_id=None if asked is None else asked.call_id,
        annotation=framework.returned(function),
        ending=_ending,
    )
    if call is not None:
        call.passed = getattr(function, "__qualname__", "").startswith(_AGENT_TOOL)  # it changes the session around it
    return call


def _ending(given: object) -> OutcomeName | None:
    return "interrupted" if type(given).__name__ == _WAITS else None


# ---- agents and workflows ---------------------------------------------------------------------------------------


class _Facts(NamedTuple):
    """What a run is recorded with."""

    name: str
    given: object
    session: str | None
    definition: Mapping[str, object]


Describe = Callable[[Any, Any, Mapping[str, Any]], _Facts]


def _observed_run(describe: Describe, elsewhere: type, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, messages: Any = None, *, stream: bool = False, **options: Any) -> Any:
        running = original(self, messages, stream=stream, **options)
        scope = here()
        if scope is None or isinstance(self, elsewhere):
            return running
        facts = attempt(scope, "a run of an agent", lambda: describe(self, messages, options))
        if facts is None:
            return running
        observed = _Run(facts, messages)
        if not stream:
            return observed.awaited(running)
        return attempt(scope, "a run of an agent", lambda: observed.streamed(running)) or running

    return run


class _Run:
    """A run of an agent or a workflow."""

    def __init__(self, facts: _Facts, messages: Any) -> None:
        self._facts = facts
        self._messages = messages
        self._recorded: AgentRun | None = None

    def _begin(self) -> AgentRun:
        facts = self._facts
        made = agent_run(facts.name, input=facts.given, session=facts.session, definition=facts.definition)
        made.begin()
        with made.body():
            _look(lambda: _decide(self._messages))
        return made

    def _end(self, made: AgentRun, response: Any) -> None:
        with made.body():
            _look(lambda: _wait_for(made, response))
        made.end()

    async def awaited(self, running: Awaitable[Any]) -> Any:
        """Run it to its end."""
        made = self._begin()
        try:
            with made.body():
                response = await running
        except BaseException as error:
            made.end(error)
            raise
        self._end(made, response)
        return response

    def streamed(self, stream: Any) -> Any:
        """Run it as its stream is read; what its reader does in between is not the run's."""
        held = weakref.ref(stream)

        def pulled() -> AbstractContextManager[object]:
            if self._recorded is None:
                self._recorded = self._begin()
            return self._recorded.body()

        async def ended() -> None:
            made, self._recorded = self._recorded, None
            whole = held()
            if made is None or whole is None:
                return
            error = getattr(whole, "_stream_error", None)
            if error is not None:
                made.end(error)
                return
            try:
                response = await whole.get_final_response()  # as the framework's own telemetry does here
            except Exception as raised:  # noqa: BLE001 — the reader is told when it asks for it
                made.end(raised)
            else:
                self._end(made, response)

        observed = stream.with_pull_context_manager(pulled).with_cleanup_hook(ended)
        weakref.finalize(stream, self._abandoned)
        return observed

    def _abandoned(self) -> None:
        made, self._recorded = self._recorded, None
        if made is not None:
            made.end(GeneratorExit())


def _look(what: Callable[[], None]) -> None:
    scope = here()
    if scope is not None:
        attempt(scope, "what an agent was told or asks", what)


@functools.cache
def _version() -> str:
    return f"agent-framework-core {metadata.version('agent-framework-core')}"


def _of_agent(agent: Any, messages: Any, options: Mapping[str, Any]) -> _Facts:
    session = options.get("session")
    defaults = {**(getattr(agent, "default_options", None) or {})}
    tools = defaults.pop("tools", None) or ()
    model = defaults.get("model") or getattr(agent.client, "model", None)
    settings = {key: value for key, value in defaults.items() if isinstance(value, str | int | float | bool)}
    made = {
        "framework": _version(),
        **settings,
        "description": getattr(agent, "description", None),
        "model": model if isinstance(model, str) else None,
        "tools": [getattr(tool, "name", type(tool).__name__) for tool in tools],
    }
    definition = {key: value for key, value in made.items() if value not in (None, [], "")}
    identity = getattr(session, "session_id", None)
    return _Facts(agent.name or "agent", _told(messages), identity if isinstance(identity, str) else None, definition)


def _of_workflow(workflow: Any, message: Any, options: Mapping[str, Any]) -> _Facts:
    name = getattr(workflow, "name", None) or "workflow"
    given = {"message": _told(message)} | {key: options[key] for key in ("responses", "checkpoint_id") if options.get(key) is not None}
    asked = given["message"] if len(given) == 1 else given
    return _Facts("workflow" if name.startswith(_UNNAMED) else name, asked, None, {"framework": _version()})


def _told(messages: Any) -> object:
    """What a run was asked, without what the framework makes up for it: messages are their role and what is in them."""
    if isinstance(messages, str | bytes):
        return messages
    if isinstance(messages, Sequence):
        return [_told(message) for message in messages]
    if hasattr(messages, "contents"):
        return {"role": str(messages.role), "contents": [_content(content) for content in messages.contents]}
    return _content(messages) if hasattr(messages, "type") and hasattr(messages, "to_dict") else messages


_SAID: Final = ("type", "text", "uri", "media_type", "call_id", "name", "arguments", "result", "approved")


def _content(content: Any) -> object:
    if isinstance(content, str):
        return content
    asked = getattr(content, "function_call", None)
    given = {key: getattr(content, key, None) for key in _SAID} | ({} if asked is None else {"function_call": _content(asked)})
    return {key: value for key, value in given.items() if value is not None and isinstance(value, str | bool | Mapping)}


# ---- people -----------------------------------------------------------------------------------------------------


def _contents(told: Any) -> list[Any]:
    """The contents of a response, of the parts of a streamed one, or of messages."""
    if isinstance(told, Sequence) and not isinstance(told, str | bytes):
        return [content for each in told for content in _contents(each)]
    messages = getattr(told, "messages", None)
    if messages is not None:
        return _contents(list(messages))
    contents = getattr(told, "contents", None)
    if contents is not None:
        return list(contents)
    return [told] if hasattr(told, "function_call") else []


def _decide(messages: Any) -> None:
    """Keep what a person has said of calls that an earlier run has asked to approve."""
    for content in _contents(messages):
        if content.type != "function_approval_response" or content.function_call is None:
            continue
        asked = content.function_call
        allowed = content.approved is True
        arguments = dict(asked.parse_arguments() or {})
        record_decision(asked.name, "allow" if allowed else "deny", by="caller", arguments=arguments, call_id=asked.call_id)
        if not allowed:
            _mark(asked, arguments, "rejected")


def _mark(asked: Any, arguments: Mapping[str, Any], outcome: OutcomeName) -> None:
    scope = here()
    if scope is None:
        return
    call = framework.tool_call(
        scope, Offered(name=asked.name), dict(arguments), layer=_LAYER, call_id=asked.call_id, ending=lambda _: outcome
    )
    if call is not None:
        boundary.call(scope, call, lambda: None)


def _wait_for(made: AgentRun, response: Any) -> None:
    """Keep what a run has answered, and which calls it has left open: for a person, or for the caller."""
    if hasattr(response, "get_outputs"):
        made.output = [getattr(output, "text", output) for output in response.get_outputs()]
        return
    contents = _contents(response)
    made.output = "".join(content.text for content in contents if content.type == "text" and content.text)
    for content in contents:
        if content.type == "function_approval_request" and content.function_call is not None:
            asked = content.function_call
            made.outcome = "interrupted"
            arguments = dict(asked.parse_arguments() or {})
            record_decision(asked.name, "require_approval", by=NAME, arguments=arguments, call_id=asked.call_id)
        elif content.type == "function_call" and content.user_input_request:
            _mark(content, dict(content.parse_arguments() or {}), "deferred")
