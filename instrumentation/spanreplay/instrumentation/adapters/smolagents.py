"""smolagents: agents, managed agents, every call of a tool by a tool-calling agent or from an agent's code, and models of this process.

``Tool.__call__`` and ``MultiStepAgent.run`` (public) are what all of them go through. A code agent's code runs again in a replay, as the
agent's own code does; the tools that it calls are answered. ``Model.generate`` is a step for a model that does not go over HTTP.
"""

import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import call as make_call
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.agent_streams import agent_stream
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.local_models import Asked, Said, generate, generate_stream
from spanreplay.instrumentation.manual import AgentRun, agent_run
from spanreplay.instrumentation.patching import Patches

NAME: Final = "smolagents"
_LAYER: Final = "smolagents.Tool"
_LOCAL: Final = ("TransformersModel", "VLLMModel", "MLXModel")
_WRAPPED: Final = 20
_models = Patches()
"""The classes of models that agents' own code has made."""


def _patch_tools(module: ModuleType, patches: Patches) -> None:
    expect(module.Tool, "__call__", ["self", "args", "sanitize_inputs_outputs", "kwargs"])
    patches.replace(module.Tool, "__call__", _observed_tool)


def _patch_agents(module: ModuleType, patches: Patches) -> None:
    expect(module.MultiStepAgent, "run", ["self", "task", "stream"])
    patches.replace(module.MultiStepAgent, "run", _observed_run)
    expect(module.MultiStepAgent, "__call__", ["self", "task", "kwargs"])
    patches.replace(module.MultiStepAgent, "__call__", _observed_member)


def _patch_models(module: ModuleType, patches: Patches) -> None:
    for name in _LOCAL:
        if hasattr(module, name):
            _observe_model(getattr(module, name), patches)


_hooks: Final = Hooks(
    NAME,
    {"smolagents.tools": _patch_tools, "smolagents.agents": _patch_agents, "smolagents.models": _patch_models},
)
install, status = _hooks.install, _hooks.status


def uninstall() -> None:
    """Leave smolagents, and models derived from it, as they were."""
    _models.undo()
    _hooks.uninstall()


# ---- tools ------------------------------------------------------------------------------------------------------


def _observed_tool(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_tool(self: Any, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
        def invoke() -> Any:
            return original(self, *args, sanitize_inputs_outputs=sanitize_inputs_outputs, **kwargs)

        scope = here()
        made = None if scope is None else framework.attempt(scope, "a call of a tool", lambda: _tool_call(scope, self, args, kwargs))
        if scope is None or made is None:
            return invoke()
        live: list[Any] = []

        def body() -> Any:
            live.append(invoke())
            return _raw(live[0])

        given = make_call(scope, made, body)
        if live:
            return live[0]
        return _wrapped(given, self.output_type) if sanitize_inputs_outputs else given

    return call_tool


def _tool_call(scope: Scope, tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    first = args[0] if args else None
    if len(args) == 1 and not kwargs and isinstance(first, dict) and all(name in tool.inputs for name in first):
        arguments = first  # as the tool itself takes them
    else:
        arguments = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
    offered = Offered(
        name=tool.name,
        description=tool.description,
        parameters={"inputs": tool.inputs, "output_type": tool.output_type},
        function=tool.forward if callable(getattr(tool, "forward", None)) else None,
    )
    return framework.tool_call(scope, offered, arguments, layer=_LAYER, annotation=framework.returned(offered.function))


def _raw(value: Any) -> Any:
    """A result without the framework's own type around it (``AgentText`` and its like), which each agent and tool puts around it anew."""
    for _ in range(_WRAPPED):
        if type(value).__module__ != "smolagents.agent_types":
            break
        value = value.to_raw()
    return value


def _wrapped(value: Any, kind: Any) -> Any:
    types = sys.modules.get("smolagents.agent_types")
    return value if types is None else types.handle_agent_output_types(value, kind)


# ---- agents -----------------------------------------------------------------------------------------------------


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, task: Any, stream: bool = False, *args: Any, **options: Any) -> Any:
        scope = here()
        recorded = None if scope is None else framework.attempt(scope, "the run of an agent", lambda: _run(self, task))
        if recorded is None:
            return original(self, task, stream, *args, **options)
        if stream:
            steps: Iterator[Any] = original(self, task, stream, *args, **options)

            def seen(step: Any) -> None:
                if type(step).__name__ == "FinalAnswerStep":
                    recorded.output = _raw(step.output)

            return agent_stream(recorded, lambda: steps, seen)
        with recorded:
            result = original(self, task, stream, *args, **options)
            recorded.output = _raw(result.output if type(result).__name__ == "RunResult" else result)
            return result

    return run


def _run(agent: Any, task: Any) -> AgentRun:
    _observe_own_model(type(agent.model))
    definition = {
        "kind": type(agent).__name__,
        "instructions": getattr(agent, "instructions", None),
        "system_prompt": agent.system_prompt,
        "model": getattr(agent.model, "model_id", None) or type(agent.model).__name__,
        "max_steps": agent.max_steps,
        "tools": sorted(agent.tools),
        "managed_agents": sorted(agent.managed_agents),
    }
    return agent_run(
        agent.name or type(agent).__name__, input=task, definition={name: value for name, value in definition.items() if value is not None}
    )


def _observed_member(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_member(self: Any, task: Any, **kwargs: Any) -> Any:
        scope = here()
        made = (
            None
            if scope is None
            else framework.attempt(scope, "the call of a managed agent", lambda: _member_call(scope, self, task, kwargs))
        )
        if scope is None or made is None:
            return original(self, task, **kwargs)
        return make_call(scope, made, lambda: original(self, task, **kwargs))

    return call_member


def _member_call(scope: Scope, agent: Any, task: Any, kwargs: dict[str, Any]) -> Call | None:
    offered = Offered(name=agent.name, description=agent.description, parameters={"inputs": getattr(agent, "inputs", None)})
    made = framework.tool_call(scope, offered, {"task": task, **kwargs}, layer=_LAYER)
    if made is not None:
        made.passed = True
    return made


# ---- models of this process -------------------------------------------------------------------------------------


def _observe_own_model(kind: type) -> None:
    """Observe a class of the agent's own code that is a model all by itself; one derived from a model over HTTP is seen there."""
    framework_s = [each.__name__ for each in kind.__mro__ if each.__module__ == "smolagents.models"]
    for each in kind.__mro__:
        if framework_s == ["Model"] and each.__module__ != "smolagents.models" and "generate" in vars(each):
            _observe_model(each, _models)


def _observe_model(kind: type, patches: Patches) -> None:
    if hasattr(vars(kind).get("generate"), "__spanreplay__"):
        return
    patches.replace(kind, "generate", _observed_generate)
    if "generate_stream" in vars(kind):
        patches.replace(kind, "generate_stream", _observed_generate_stream)


def _observed_generate(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def generate_(self: Any, messages: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, messages, *args, **options)
        return generate(
            scope, lambda: _asked(self, messages, options), lambda: original(self, messages, *args, **options), _said, _without_raw
        )

    generate_.__spanreplay__ = True  # type: ignore[attr-defined]
    return generate_


def _observed_generate_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def generate_stream_(self: Any, messages: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, messages, *args, **options)
        return generate_stream(
            scope, lambda: _asked(self, messages, options), lambda: original(self, messages, *args, **options), _said_in_pieces
        )

    return generate_stream_


def _asked(model: Any, messages: Any, options: dict[str, Any]) -> Asked:
    shown = [_message(each) for each in messages]
    tools = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.inputs}
        for tool in options.get("tools_to_call_from") or ()
    ]
    return Asked(
        model=getattr(model, "model_id", None) or type(model).__name__,
        messages=shown,
        tools=tools,
        settings={name: value for name, value in options.items() if name in ("stop_sequences", "response_format") and value is not None},
    )


def _message(message: Any) -> dict[str, object]:
    role = message["role"] if isinstance(message, dict) else message.role
    content = message["content"] if isinstance(message, dict) else message.content
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    shown = [{"type": "text", "content": part["text"]} if part.get("type") == "text" else {"type": str(part.get("type"))} for part in parts]
    return {"role": str(getattr(role, "value", role)), "parts": shown}


def _said(message: Any) -> Said:
    text = message.content if isinstance(message.content, str) else None
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.function.name, "arguments": _arguments(call.function.arguments)}
        for call in message.tool_calls or ()
    ]
    usage = message.token_usage
    return Said(
        parts=[*([{"type": "text", "content": text}] if text else []), *calls],
        input_tokens=getattr(usage, "input_tokens", None),
        output_tokens=getattr(usage, "output_tokens", None),
    )


def _said_in_pieces(pieces: Sequence[Any]) -> Said:
    models = sys.modules["smolagents.models"]
    return _said(models.agglomerate_stream_deltas(list(pieces)))


def _arguments(value: Any) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _without_raw(message: Any) -> object:
    """An answer without the model's raw output, which holds tensors."""
    return dataclasses.replace(message, raw=None) if dataclasses.is_dataclass(message) and not isinstance(message, type) else message
