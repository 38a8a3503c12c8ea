"""Google ADK: agents, every execution of a tool with what it does to the session, transfers, confirmations.

``Runner.run_async`` is a run, and ``BaseAgent.run_async`` (both public) what every sub-agent runs through. Tools are executed by a
function of the flow that does nothing but ``tool.run_async``: ``_call_tool_async`` and ``_call_tool_in_thread_pool`` (2.x),
``__call_tool_async`` (1.x). ADK makes up the id of a call where the model gives none (``adk-<uuid>``): such an id is another one in a
replay, and is not kept.
"""

import functools
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.agent_streams import observed_astream
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.manual import AgentRun, Decision, agent_run, record_decision
from spanreplay.instrumentation.patching import Patches

NAME: Final = "google_adk"
_LAYER: Final = "google_adk.BaseTool"
_OWN_ID: Final = "adk-"
_OWN_IDS: Final = {"parts": {"__all__": {"function_response": {"id"}}}}
_ACTIONS: Final = "google_adk.actions"
_REJECTED: Final = {"error": "This tool call is rejected."}
_BY_CALL: Final = ("requested_auth_configs", "requested_tool_confirmations")
_DECLARING: Final = ("google.adk.tools.function_tool", "google.adk.tools.long_running_tool")
_PASSED: Final = frozenset({"AgentTool", "TransferToAgentTool", "SetModelResponseTool"})
"""Tools whose body a replay runs: another agent, and what only steers the framework."""


def _patch_caller(module: ModuleType, patches: Patches) -> None:
    expect(module, "_call_tool_async", ["tool", "args", "tool_context"])
    patches.rebind(module, "_call_tool_async", _observed_tool)
    if hasattr(module, "apply_confirmation_gate"):
        expect(module, "apply_confirmation_gate", ["tool", "function_args", "tool_context"])
        patches.replace(module, "apply_confirmation_gate", _observed_gate)


def _patch_pool(module: ModuleType, patches: Patches) -> None:
    expect(module, "_call_tool_in_thread_pool", ["tool", "args", "tool_context"])
    patches.rebind(module, "_call_tool_in_thread_pool", _observed_tool)


def _patch_functions(module: ModuleType, patches: Patches) -> None:
    """Until 2.7 all of it is here; later it is only imported here."""
    if not hasattr(module, "__call_tool_async"):
        return
    for name in ("__call_tool_async", "_call_tool_in_thread_pool"):
        if hasattr(module, name):
            expect(module, name, ["tool", "args", "tool_context"])
            patches.replace(module, name, _observed_asking_tool)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.BaseAgent, "run_async", ["self", "parent_context"])
    patches.replace(module.BaseAgent, "run_async", _observed_agent)


def _patch_runners(module: ModuleType, patches: Patches) -> None:
    expect(module.Runner, "run_async", ["self", "user_id", "session_id", "new_message"])
    patches.replace(module.Runner, "run_async", _observed_runner)


_hooks: Final = Hooks(
    NAME,
    {
        "google.adk.flows.llm_flows.tools._caller": _patch_caller,
        "google.adk.flows.llm_flows.tools._thread_pool": _patch_pool,
        "google.adk.flows.llm_flows.functions": _patch_functions,
        "google.adk.agents.base_agent": _patch_agents,
        "google.adk.runners": _patch_runners,
    },
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def call_tool(tool: Any, args: Any, tool_context: Any, *more: Any, **options: Any) -> Any:
        scope = here()
        call = None if scope is None else framework.attempt(scope, "a call of a tool", lambda: _call(scope, tool, args, tool_context))
        if scope is None or call is None:
            return await original(tool, args, tool_context, *more, **options)

        async def body() -> Any:
            before = _actions(tool_context)
            result = await original(tool, args, tool_context, *more, **options)
            return _kept(result, before, _actions(tool_context))

        kept = await boundary.acall(scope, call, body)
        return _given(kept, tool_context)

    return call_tool


def _observed_asking_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    """As above, for a tool that sees itself to its confirmation."""
    observed = _observed_tool(original)

    @functools.wraps(original)
    async def call_tool(tool: Any, args: Any, tool_context: Any, *more: Any, **options: Any) -> Any:
        scope = here()
        if scope is not None:
            framework.attempt(scope, "what a person said", lambda: _decide(tool, args, tool_context))
        return await observed(tool, args, tool_context, *more, **options)

    return call_tool


def _call(scope: Scope, tool: Any, args: Any, tool_context: Any) -> Call | None:
    made = framework.tool_call(
        scope,
        _offered(tool),
        dict(args),
        layer=_LAYER,
        call_id=_id_of(tool_context),
        ending=functools.partial(_ending, bool(getattr(tool, "is_long_running", False))),
    )
    if made is not None and any(kind.__name__ in _PASSED for kind in type(tool).__mro__):
        made.passed = True
        if "TransferToAgentTool" in {kind.__name__ for kind in type(tool).__mro__}:
            made.kind = "handoff"
    return made


def _id_of(tool_context: Any) -> str | None:
    call_id = tool_context.function_call_id
    return None if call_id is None or call_id.startswith(_OWN_ID) else call_id


def _offered(tool: Any) -> Offered:
    if getattr(type(tool)._get_declaration, "__module__", None) not in _DECLARING:  # others may declare anything, as their state is
        return _described(tool)
    made_from = (tool.name, tool.description, tool.func, tuple(getattr(tool, "_ignore_params", ())))
    return framework.once(tool, made_from, lambda: _described(tool))


def _described(tool: Any) -> Offered:
    declared = tool._get_declaration()
    schema = None if declared is None else declared.model_dump(mode="json", exclude_none=True)
    function = getattr(tool, "func", None)
    return Offered(
        name=tool.name,
        description=tool.description,
        parameters=None if schema is None else schema.get("parameters") or schema.get("parameters_json_schema"),
        function=function if callable(function) else None,
    )


def _ending(long_running: bool, given: object) -> OutcomeName | None:
    actions = given.get(_ACTIONS, {}) if isinstance(given, dict) else {}
    if actions.get("requested_tool_confirmations") or actions.get("requested_auth_configs"):
        return "interrupted"
    if given == _REJECTED:
        return "rejected"
    return "deferred" if long_running and not isinstance(given, BaseException) else None


# ---- what a tool does to the session ----------------------------------------------------------------------------


def _actions(tool_context: Any) -> dict[str, Any]:
    """What a tool has asked of the framework so far: changes of the state, artifacts, a transfer, a confirmation."""
    made: dict[str, Any] = tool_context.actions.model_dump(mode="json", exclude_defaults=True)
    for name in _BY_CALL:  # under the id of the call, which may be another one in a replay
        if tool_context.function_call_id in made.get(name, {}):
            made[name] = {"": made[name][tool_context.function_call_id]}
    return made


def _kept(result: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return {"result": result, _ACTIONS: changed} if changed else result


def _given(kept: Any, tool_context: Any) -> Any:
    """The result; what else the tool did is done, where it was not the tool that did it."""
    if not (isinstance(kept, dict) and _ACTIONS in kept):
        return kept
    changed = dict(kept[_ACTIONS])
    if changed != _actions(tool_context):
        for name in _BY_CALL:
            if "" in changed.get(name, {}):
                changed[name] = {tool_context.function_call_id: changed[name][""]}
        actions = tool_context.actions
        made = type(actions).model_validate(changed)
        for name in changed:
            if name == "state_delta":
                tool_context.state.update(made.state_delta)
            else:
                setattr(actions, name, getattr(made, name))
    return kept["result"]


# ---- calls that wait for a person -------------------------------------------------------------------------------


def _observed_gate(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def gate(tool: Any, function_args: Any, tool_context: Any) -> Any:
        answer = await original(tool, function_args, tool_context)
        scope = here()
        if scope is None:
            return answer
        said = tool_context.tool_confirmation

        def keep() -> None:
            _decide(tool, function_args, tool_context)
            if answer is not None:
                outcome: OutcomeName = "interrupted" if said is None else "rejected"
                framework.not_made(scope, _offered(tool), dict(function_args), outcome, layer=_LAYER, call_id=_id_of(tool_context))

        framework.attempt(scope, "a call that waits for a person", keep)
        return answer

    return gate


def _decide(tool: Any, args: Any, tool_context: Any) -> None:
    said = tool_context.tool_confirmation
    if said is not None:
        decision: Decision = "allow" if said.confirmed else "deny"
        record_decision(tool.name, decision, by="caller", arguments=dict(args), call_id=_id_of(tool_context))


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_runner(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_async(self: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        def make() -> AgentRun:
            message, root = options.get("new_message"), getattr(self, "agent", None)
            name = self.app_name if root is None else root.name
            return _run(name, root, message, options.get("session_id"), options.get("user_id"))

        return observed_astream(make, functools.partial(original, self, *args, **options), _seen)

    return run_async


def _observed_agent(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_async(self: Any, parent_context: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        def make() -> AgentRun | None:
            if framework.is_running(self.name):
                return None  # what the runner runs
            session = parent_context.session
            return _run(self.name, self, parent_context.user_content, session.id, session.user_id)

        return observed_astream(make, functools.partial(original, self, parent_context, *args, **options), _seen)

    return run_async


def _seen(run: AgentRun, event: Any) -> None:
    if event.long_running_tool_ids or event.actions.requested_tool_confirmations:
        run.outcome = "interrupted"
    elif event.is_final_response() and (text := _text(event.content)):
        run.output, run.outcome = text, None


def _run(name: str, agent: Any, content: Any, session: str | None, user: str | None) -> AgentRun:
    asked = None if content is None else _text(content) or content.model_dump(mode="json", exclude_none=True, exclude=_OWN_IDS)
    return agent_run(name, input=asked, session=session, user=user, definition=None if agent is None else _definition(agent))


def _definition(agent: Any) -> dict[str, object]:
    model, settings = getattr(agent, "model", None), getattr(agent, "generate_content_config", None)
    instructions = [getattr(agent, name, None) for name in ("global_instruction", "static_instruction", "instruction")]
    made = {
        "description": agent.description,
        "instructions": [each if isinstance(each, str) else getattr(each, "__qualname__", str(each)) for each in instructions if each],
        "model": model if isinstance(model, str) else getattr(model, "model", None),
        "model_settings": None if settings is None else settings.model_dump(mode="json", exclude_none=True),
        "sub_agents": [each.name for each in agent.sub_agents],
        "kind": type(agent).__name__,
    }
    return {name: value for name, value in made.items() if value}


def _text(content: Any) -> str | None:
    """What the parts of a message say, where all of them are text."""
    parts = getattr(content, "parts", None) or []
    texts = [part.text for part in parts if not getattr(part, "thought", None)]
    return "".join(texts) if texts and all(isinstance(text, str) for text in texts) else None
