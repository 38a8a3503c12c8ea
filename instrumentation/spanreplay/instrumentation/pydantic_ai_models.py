"""Pydantic AI's models that are functions: ``FunctionModel`` and ``TestModel``, which have no HTTP below them.

``request`` (public) gives an answer, and a stream of ``FunctionModel`` is what its ``stream_function`` gives. ``TestModel`` streams what it
makes up itself: that is the same in a replay, and no step.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import wrapt

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.local_models import Asked, Said, agenerate, agenerate_stream
from spanreplay.instrumentation.patching import Patches

if TYPE_CHECKING:
    _Behind: TypeAlias = wrapt.ObjectProxy[Any]
else:
    _Behind = wrapt.ObjectProxy


def patch(module: ModuleType, patches: Patches) -> None:
    """Observe the model of a module of ``pydantic_ai.models``.

    Raises:
        UnsupportedError: it is not as it is known here.
    """
    streams = hasattr(module, "FunctionModel")
    model = module.FunctionModel if streams else module.TestModel
    expect(model, "request", ["self", "messages", "model_settings", "model_request_parameters"])
    patches.replace(model, "request", _observed_request)
    if streams:
        expect(model, "request_stream", ["self", "messages", "model_settings", "model_request_parameters"])
        patches.replace(model, "request_stream", _observed_stream)


def _observed_request(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def request(self: Any, messages: Any, model_settings: Any, model_request_parameters: Any, *more: Any) -> Any:
        scope = here()
        if scope is None:
            return await original(self, messages, model_settings, model_request_parameters, *more)
        return await agenerate(
            scope,
            lambda: _asked(self, messages, model_settings, model_request_parameters),
            lambda: original(self, messages, model_settings, model_request_parameters, *more),
            _said,
        )

    return request


def _observed_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def request_stream(self: Any, messages: Any, model_settings: Any, parameters: Any, *more: Any) -> AbstractAsyncContextManager[Any]:
        model = self if here() is None else _Streaming(self, _asked(self, messages, model_settings, parameters))
        stream: AbstractAsyncContextManager[Any] = original(model, messages, model_settings, parameters, *more)
        return stream

    return request_stream


class _Streaming(_Behind):
    """A model whose function for streams is observed."""

    def __init__(self, model: Any, asked: Asked) -> None:
        super().__init__(model)
        self._self_asked = asked

    def stream_function(self, *args: Any) -> Any:
        """The pieces that the model's own function gives."""
        function = self.__wrapped__.stream_function
        scope = here()
        return (
            function(*args)
            if scope is None
            else agenerate_stream(scope, lambda: self._self_asked, lambda: function(*args), _said_in_pieces)
        )


def _asked(model: Any, messages: Any, settings: Any, parameters: Any) -> Asked:
    tools = [*getattr(parameters, "function_tools", ()), *getattr(parameters, "output_tools", ())]
    parts = [(message, part) for message in messages for part in message.parts]
    instructions = [message.instructions for message in messages if getattr(message, "instructions", None)]
    system = [part.content for _, part in parts if part.part_kind == "system-prompt"] + instructions[-1:]
    return Asked(
        model=model.model_name,
        messages=[shown for message, part in parts for shown in _message(message, part)],
        system=[{"type": "text", "content": text} for text in system],
        tools=[
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
            for tool in tools
        ],
        settings={name: value for name, value in dict(settings or {}).items() if isinstance(value, str | int | float | bool)},
    )


def _message(message: Any, part: Any) -> Iterator[dict[str, object]]:
    """A part as a message of its own, without its time."""
    if message.kind == "response":
        yield {"role": "assistant", "parts": [_part(part)]}
    elif part.part_kind == "user-prompt":
        contents = [part.content] if isinstance(part.content, str) else list(part.content)
        shown = [{"type": "text", "content": each} if isinstance(each, str) else {"type": type(each).__name__} for each in contents]
        yield {"role": "user", "parts": shown}
    elif part.part_kind in ("tool-return", "retry-prompt"):
        text = part.model_response_str() if part.part_kind == "tool-return" else part.model_response()
        yield {"role": "tool", "parts": [{"type": "tool_call_response", "id": part.tool_call_id, "response": text}]}


def _part(part: Any) -> dict[str, Any]:
    if part.part_kind == "tool-call":
        return {"type": "tool_call", "id": part.tool_call_id, "name": part.tool_name, "arguments": part.args_as_dict()}
    if part.part_kind == "thinking":
        return {"type": "reasoning", "content": part.content}
    return {"type": "text" if part.part_kind == "text" else part.part_kind, "content": getattr(part, "content", None)}


def _said(response: Any) -> Said:
    usage = response.usage
    return Said(parts=[_part(part) for part in response.parts], input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)


def _said_in_pieces(pieces: Sequence[Any]) -> Said:
    """The pieces are texts, or by their place the changes of calls and of thoughts."""
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    calls: dict[int, dict[str, Any]] = {}
    for place, change in ((place, change) for piece in pieces if isinstance(piece, Mapping) for place, change in piece.items()):
        call = calls.setdefault(place, {"name": "", "arguments": "", "id": None})
        call["name"] += getattr(change, "name", None) or ""
        call["arguments"] += getattr(change, "json_args", None) or ""
        call["id"] = call["id"] or getattr(change, "tool_call_id", None)
    asked = [{"type": "tool_call", **call, "arguments": json.loads(call["arguments"] or "{}")} for call in calls.values() if call["name"]]
    return Said(parts=[*([{"type": "text", "content": text}] if text else []), *asked])
