"""CrewAI: its crews, flows and agents, and every execution of a tool.

``BaseTool.run`` and ``Tool.run`` run a tool that a model called, ``CrewStructuredTool.invoke`` one that it named in its text (public,
crewai 1.15). None of them is told the id of the call, so that is taken one level up, where the executor handles it (private); without it a
call is found by its arguments. For functions that a model runs see :mod:`spanreplay.instrumentation.crewai_models`.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary import reports
from spanreplay.boundary.boundary import acall, call, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import crewai_bookkeeping, crewai_models, framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, Seam, expect
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches

NAME: Final = "crewai"
_TOOL: Final = "crewai.BaseTool"
_TEXT_TOOL: Final = "crewai.CrewStructuredTool"
_MODEL_SETTINGS: Final = ("model", "temperature", "top_p", "max_tokens", "reasoning_effort", "seed")

_REPORTS: Final = frozenset({"crewai", "crewai.telemetry"})

_call_id: ContextVar[str | None] = ContextVar("spanreplay.crewai", default=None)
"""Of the call that the executor handles here."""


# ---- tools ------------------------------------------------------------------------------------------------------


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    for owner in (module.BaseTool, module.Tool):
        expect(owner, "run", ["self", "args", "kwargs"])
        patches.replace(owner, "run", _observed_run)
        if hasattr(owner, "arun"):
            patches.replace(owner, "arun", _observed_arun)


def _patch_text_tools(module: ModuleType, patches: Patches) -> None:
    expect(module.CrewStructuredTool, "invoke", ["self", "input"])
    expect(module.CrewStructuredTool, "ainvoke", ["self", "input"])
    patches.replace(module.CrewStructuredTool, "invoke", _observed_invoke)
    patches.replace(module.CrewStructuredTool, "ainvoke", _observed_ainvoke)


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = _call(self, _arguments(args, kwargs), _TOOL)
        if made is None:
            return original(self, *args, **kwargs)
        return call(*made, _counted(self, made[0], lambda: original(self, *args, **kwargs)))

    return run


def _observed_arun(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def arun(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = _call(self, _arguments(args, kwargs), _TOOL)
        if made is None:
            return await original(self, *args, **kwargs)
        return await acall(*made, _counted(self, made[0], lambda: original(self, *args, **kwargs)))

    return arun


def _observed_invoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def invoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002 — the framework's name
        made = _call(self, input, _TEXT_TOOL)
        return original(self, input, *args, **kwargs) if made is None else call(*made, lambda: original(self, input, *args, **kwargs))

    return invoke


def _observed_ainvoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def ainvoke(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        made = _call(self, input, _TEXT_TOOL)
        body = functools.partial(original, self, input, *args, **kwargs)
        return await (body() if made is None else acall(*made, body))

    return ainvoke


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"args": list(args), **kwargs} if args else kwargs


def _counted(tool: Any, scope: Scope, body: Callable[[], Any]) -> Callable[[], Any]:
    """The body; a call that a replay answers counts against the limit of a tool as one that runs does."""
    if scope.session.mode == "replay" and hasattr(tool, "_claim_usage"):
        with suppress(Exception):
            tool._claim_usage()
    return body


def _call(tool: Any, arguments: Any, layer: str) -> tuple[Scope, Call] | None:
    scope = here()
    if scope is None:
        return None
    try:
        offered = _offered(tool)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the tool {getattr(tool, 'name', '?')}")
        return None
    annotation = framework.returned(offered.function)
    made = framework.tool_call(scope, offered, arguments, layer=layer, call_id=_call_id.get(), annotation=annotation)
    return None if made is None else (scope, made)


def _offered(tool: Any) -> Offered:
    made_from = (tool.name, tool.description, getattr(tool, "args_schema", None), getattr(tool, "func", None))
    return framework.once(tool, made_from, lambda: _described(tool))


def _described(tool: Any) -> Offered:
    schema = getattr(tool, "args_schema", None)
    strings = sys.modules.get("crewai.utilities.string_utils")
    as_offered = getattr(strings, "sanitize_tool_name", str)
    return Offered(
        name=str(as_offered(tool.name)),
        description=tool.description,
        parameters=None if schema is None else schema.model_json_schema(),
        function=getattr(tool, "func", None) or getattr(type(tool), "_run", None),
    )


# ---- ids of calls -----------------------------------------------------------------------------------------------


def _patch_executor(module: ModuleType, patches: Patches) -> None:
    expect(module.AgentExecutor, "_execute_single_native_tool_call", ["self", "tool_call"])
    patches.replace(module.AgentExecutor, "_execute_single_native_tool_call", lambda original: _observed_handling(original, 1))


def _patch_step_executor(module: ModuleType, patches: Patches) -> None:
    expect(module, "execute_single_native_tool_call", ["tool_call"])
    patches.rebind(module, "execute_single_native_tool_call", lambda original: _observed_handling(original, 0))


def _observed_handling(original: Callable[..., Any], place: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def handle(*args: Any, **options: Any) -> Any:
        if here() is None:
            return original(*args, **options)
        asked = options.get("tool_call") if len(args) <= place else args[place]
        token = _call_id.set(_id_of(asked))
        try:
            return original(*args, **options)
        finally:
            _call_id.reset(token)

    return handle


def _id_of(asked: Any) -> str | None:
    """Of a call as a model gave it: an object of the OpenAI or Anthropic SDK, or a dict, Bedrock's among them."""
    found = (asked.get("id") or asked.get("toolUseId")) if isinstance(asked, dict) else getattr(asked, "id", None)
    return found if isinstance(found, str) and found else None


# ---- crews, flows, agents ---------------------------------------------------------------------------------------


def _crew(crew: Any, inputs: Any = None, *_: Any, **__: Any) -> AgentRun | None:
    if getattr(crew, "stream", False):  # it calls itself in a thread, without
        return None
    return agent_run(
        crew.name or "crew",
        input=inputs,
        definition={
            "process": str(getattr(crew.process, "value", crew.process)),
            "agents": [agent.role for agent in crew.agents],
            "tasks": [{"description": task.description, "expected_output": task.expected_output} for task in crew.tasks],
        },
    )


def _flow(flow: Any, inputs: Any = None, *_: Any, **__: Any) -> AgentRun | None:
    if type(flow).__module__.partition(".")[0] == "crewai":  # what agents themselves are made of
        return None
    return agent_run(getattr(flow, "name", None) or type(flow).__name__, input=inputs)


def _agent(agent: Any, messages: Any = None, *_: Any, **__: Any) -> AgentRun:
    return agent_run(agent.role, input=messages, definition=_definition(agent))


def _agent_outside_a_loop(agent: Any, *args: Any, **options: Any) -> AgentRun | None:
    return _agent(agent, *args, **options) if asyncio._get_running_loop() is None else None  # else it is ``kickoff_async``


def _task(agent: Any, task: Any, context: Any = None, *_: Any, **__: Any) -> AgentRun:
    asked = {"description": task.description, "expected_output": task.expected_output, "context": context}
    return agent_run(agent.role, input={name: value for name, value in asked.items() if value}, definition=_definition(agent))


def _definition(agent: Any) -> dict[str, object]:
    settings = {name: getattr(agent.llm, name, None) for name in _MODEL_SETTINGS}
    return {
        "role": agent.role,
        "goal": agent.goal,
        "backstory": agent.backstory,
        "model": {name: value for name, value in settings.items() if isinstance(value, str | int | float)},
        "tools": [tool.name for tool in agent.tools or ()],
    }


def _output(given: Any) -> Any:
    """What a crew or an agent says in the end: an object if it was asked for one, else its text."""
    for name in ("pydantic", "json_dict", "raw"):
        found = getattr(given, name, None)
        if found is not None:
            return found
    return given


Begin = Callable[..., AgentRun | None]
"""The run that a call of a crew, a flow or an agent is; ``None`` where it is a part of another."""


def _begun(scope: Scope, begin: Begin, *args: Any, **options: Any) -> AgentRun | None:
    try:
        return begin(*args, **options)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the agent {type(args[0]).__name__}")
        return None


def _observed(begin: Begin) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def kickoff(*args: Any, **options: Any) -> Any:
            scope = here()
            run = None if scope is None else _begun(scope, begin, *args, **options)
            if run is None:
                return original(*args, **options)
            with run, _no_call():
                given = original(*args, **options)
                run.output = _output(given)
                return given

        return kickoff

    return make


def _observed_async(begin: Begin) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        async def kickoff(*args: Any, **options: Any) -> Any:
            scope = here()
            run = None if scope is None else _begun(scope, begin, *args, **options)
            if run is None:
                return await original(*args, **options)
            with run, _no_call():
                given = await original(*args, **options)
                run.output = _output(given)
                return given

        return kickoff

    return make


@contextmanager
def _no_call() -> Iterator[None]:
    """The calls of an agent that a tool runs have ids of their own."""
    token = _call_id.set(None)
    try:
        yield
    finally:
        _call_id.reset(token)


def _runs(owner: str, *seams: tuple[str, list[str], Callable[[Callable[..., Any]], Callable[..., Any]]]) -> Seam:
    def patch(module: ModuleType, patches: Patches) -> None:
        for name, parameters, make in seams:
            expect(getattr(module, owner), name, ["self", *parameters])
            patches.replace(getattr(module, owner), name, make)

    return patch


_hooks: Final = Hooks(
    NAME,
    {
        "crewai.tools.base_tool": _patch_tools,
        "crewai.tools.structured_tool": _patch_text_tools,
        "crewai.llms.base_llm": crewai_models.patch,
        "crewai.agents.agent_executor": _patch_executor,
        "crewai.utilities.agent_utils": _patch_step_executor,
        "crewai.memory.storage.kickoff_task_outputs_storage": crewai_bookkeeping.patch,
        "crewai.crew": _runs("Crew", ("kickoff", ["inputs"], _observed(_crew)), ("akickoff", ["inputs"], _observed_async(_crew))),
        "crewai.flow.runtime": _runs("Flow", ("kickoff_async", ["inputs"], _observed_async(_flow))),
        "crewai.agent.core": _runs(
            "Agent",
            ("kickoff", ["messages"], _observed(_agent_outside_a_loop)),
            ("kickoff_async", ["messages"], _observed_async(_agent)),
            ("execute_task", ["task", "context"], _observed(_task)),
            ("aexecute_task", ["task", "context"], _observed_async(_task)),
        ),
    },
)
status = _hooks.status


def install() -> None:
    """As :meth:`Hooks.install`; the spans that CrewAI makes for its own service are no part of the record."""
    reports.scopes.update(_REPORTS)
    _hooks.install()


def uninstall() -> None:
    """As :meth:`Hooks.uninstall`."""
    reports.scopes.difference_update(_REPORTS)
    _hooks.uninstall()
