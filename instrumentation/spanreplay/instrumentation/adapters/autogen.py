"""AutoGen (agentchat and core 0.7): agents, teams, agents in teams, every execution of a tool, hand-offs.

``BaseTool.run_json`` and ``BaseStreamTool.run_json_stream`` (public) are what every workbench and every hand-off executes a tool through.
``run`` and ``run_stream`` run an agent; a team runs its agents through ``on_messages_stream``, and is run through ``run_stream``.
"""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary import boundary, streams
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.agent_streams import observed_astream
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches

NAME: Final = "autogen"
_LAYER: Final = "autogen.BaseTool"
_BASE: Final = "autogen_core.tools._base"
_FUNCTION_TOOL: Final = "autogen_core.tools._function_tool"


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module.BaseTool, "run_json", ["self", "args", "cancellation_token", "call_id"])
    patches.replace(module.BaseTool, "run_json", _observed_tool)
    expect(module.BaseStreamTool, "run_json_stream", ["self", "args", "cancellation_token", "call_id"])
    patches.replace(module.BaseStreamTool, "run_json_stream", _observed_stream_tool)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.BaseChatAgent, "run", ["self", "task"])
    patches.replace(module.BaseChatAgent, "run", _observed_run)
    expect(module.BaseChatAgent, "run_stream", ["self", "task"])
    patches.replace(module.BaseChatAgent, "run_stream", _observed_run_stream)


def _patch_assistant(module: ModuleType, patches: Patches) -> None:
    expect(module.AssistantAgent, "on_messages_stream", ["self", "messages", "cancellation_token"])
    patches.replace(module.AssistantAgent, "on_messages_stream", _observed_turn)


def _patch_teams(module: ModuleType, patches: Patches) -> None:
    expect(module.BaseGroupChat, "run_stream", ["self", "task"])
    patches.replace(module.BaseGroupChat, "run_stream", _observed_run_stream)


_hooks: Final = Hooks(
    NAME,
    {
        "autogen_core.tools._base": _patch_tools,
        "autogen_agentchat.agents._base_chat_agent": _patch_agents,
        "autogen_agentchat.agents._assistant_agent": _patch_assistant,
        "autogen_agentchat.teams._group_chat._base_group_chat": _patch_teams,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_json(self: Any, args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        def invoke() -> Any:
            return original(self, args, cancellation_token, call_id=call_id)

        scope = here()
        call = None if scope is None else framework.attempt(scope, "a call of a tool", lambda: _call(scope, self, args, call_id))
        if scope is None or call is None:
            return await invoke()
        if not _is_agent(self):
            return await boundary.acall(scope, call, invoke)
        step = boundary.begin(scope, call)
        if step is None:
            return await invoke()
        step.ask()
        try:
            with step.body():
                result = await invoke()
        except BaseException as error:
            step.fail(error)
            raise
        step.succeed(self.return_value_as_string(result))
        return result

    return run_json


def _observed_stream_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_json_stream(self: Any, args: Any, cancellation_token: Any, call_id: str | None = None) -> AsyncGenerator[Any]:
        def invoke() -> AsyncIterator[Any]:
            events: AsyncIterator[Any] = original(self, args, cancellation_token, call_id=call_id)
            return events

        scope = here()
        call = None if scope is None else framework.attempt(scope, "a call of a tool", lambda: _call(scope, self, args, call_id))
        if scope is None or call is None:
            source = invoke()
        elif _is_agent(self):
            source = _of_agent(scope, call, self, invoke)
        else:
            call.streams = True
            source = streams.astream(scope, call, invoke)
        async with aclosing(source) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    return run_json_stream


def _is_agent(tool: Any) -> bool:
    """A tool that runs an agent or a team, whose messages have times and ids of their own."""
    return "TaskRunnerTool" in [kind.__name__ for kind in type(tool).__mro__]


async def _of_agent(scope: Scope, call: Call, tool: Any, invoke: Callable[[], AsyncIterator[Any]]) -> AsyncGenerator[Any]:
    step = boundary.begin(scope, call)
    events = invoke()
    if step is not None:
        step.ask()
    last: Any = None
    try:
        while True:
            try:
                if step is None:
                    last = await anext(events)
                else:
                    with step.body():
                        last = await anext(events)
            except StopAsyncIteration:
                break
            yield last
    except BaseException as error:
        if step is not None:
            step.fail(error)
        raise
    if step is not None:
        step.succeed(tool.return_value_as_string(last))


def _call(scope: Scope, tool: Any, args: Any, call_id: str | None) -> Call | None:
    function = getattr(tool, "_func", None)
    offered = _offered(tool)
    made = framework.tool_call(scope, offered, dict(args), layer=_LAYER, call_id=call_id, annotation=framework.returned(offered.function))
    if made is not None and getattr(function, "__module__", "") == "autogen_agentchat.base._handoff":
        made.kind = "handoff"
    if made is not None:
        made.passed = _is_agent(tool)
    return made


def _offered(tool: Any) -> Offered:
    function = getattr(tool, "_func", None)
    made_from = (tool.name, tool.description, getattr(tool, "_strict", None))
    if type(tool).__module__ == _FUNCTION_TOOL and callable(function):  # often made anew for each run, of the same function
        return framework.once(function, made_from, lambda: _described(tool))
    whose = getattr(getattr(type(tool), "schema", None), "fget", None)
    if getattr(whose, "__module__", None) != _BASE:  # a tool may make its schema of anything
        return _described(tool)
    return framework.once(tool, (*made_from, tool._args_type), lambda: _described(tool))


def _described(tool: Any) -> Offered:
    function = getattr(tool, "_func", None)
    return Offered(
        name=tool.name,
        description=tool.description,
        parameters=tool.schema.get("parameters"),
        function=function if callable(function) else None,
    )


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run(self: Any, *, task: Any = None, **options: Any) -> Any:
        scope = here()
        recorded = None if scope is None else framework.attempt(scope, "the run of an agent", lambda: _run(self, task))
        if recorded is None:
            return await original(self, task=task, **options)
        async with recorded:
            result = await original(self, task=task, **options)
            recorded.output = _last_text(result)
            return result

    return run


def _observed_run_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_stream(self: Any, *, task: Any = None, **options: Any) -> AsyncIterator[Any]:
        return observed_astream(lambda: _run(self, task), functools.partial(original, self, task=task, **options), _seen)

    return run_stream


def _observed_turn(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def on_messages_stream(self: Any, messages: Any, cancellation_token: Any) -> AsyncIterator[Any]:
        def make() -> AgentRun | None:
            return None if framework.is_running(self.name) else _run(self, list(messages))

        return observed_astream(make, functools.partial(original, self, messages, cancellation_token), _seen)

    return on_messages_stream


def _seen(run: AgentRun, event: Any) -> None:
    if hasattr(event, "messages") or hasattr(event, "chat_message"):
        run.output = _last_text(event)


def _run(agent: Any, task: Any) -> AgentRun:
    system = [message.content for message in getattr(agent, "_system_messages", ())]
    members = [each.name for each in getattr(agent, "_participants", ())]
    settings = getattr(getattr(agent, "_model_client", None), "_create_args", {})
    definition = {"description": agent.description, "instructions": system, "members": members, "model": settings.get("model")}
    tasks = task if isinstance(task, list) else [task]
    asked = [each if each is None or isinstance(each, str) else _text(each) for each in tasks]
    return agent_run(
        agent.name,
        input=asked if isinstance(task, list) else asked[0],
        definition={name: value for name, value in definition.items() if value},
    )


def _text(message: Any) -> str:
    return f"{message.source}: {message.to_text()}"


def _last_text(result: Any) -> str | None:
    """What a run or a turn ended with; messages have ids and times of their own."""
    message = result.chat_message if hasattr(result, "chat_message") else (result.messages or [None])[-1]
    return None if message is None else str(message.to_text())
