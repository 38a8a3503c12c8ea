"""LangChain: chat models that run in this process, without HTTP. Those of a provider are seen by the transports.

``BaseChatModel`` calls ``_generate`` or ``_stream`` of its subclass (public, langchain-core): a stand-in of the model has a step in their
place, so that callbacks, caches and streamed events are as ever.
"""

import copy
import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.langchain_values import is_a
from spanreplay.instrumentation.local_models import Asked, Said, agenerate, agenerate_stream, generate, generate_stream
from spanreplay.instrumentation.patching import Patches

NAME: Final = "langchain_models"
_MODEL: Final = "langchain_core.language_models.base:BaseLanguageModel"
_IN_PROCESS: Final = ("langchain_core.", "langchain_community.chat_models.llamacpp", "langchain_community.chat_models.mlx")
_PIPELINE: Final = "langchain_huggingface.llms.huggingface_pipeline:HuggingFacePipeline"
_ROLES: Final = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}


def _patch(module: ModuleType, patches: Patches) -> None:
    for name in ("_generate_with_cache", "_agenerate_with_cache", "stream", "astream"):
        expect(module.BaseChatModel, name, ["self"])
        patches.replace(module.BaseChatModel, name, _observed)


_hooks: Final = Hooks(NAME, {"langchain_core.language_models.chat_models": _patch})
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def through(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None or "_generate" in vars(self) or not _is_local(self):
            return original(self, *args, **options)
        return original(_stand_in(scope, self), *args, **options)

    return through


def _is_local(model: Any) -> bool:
    """Whether its answers come from this process, as far as its class tells; a model that hands on to another is that one's business."""
    owner = next((cls for cls in type(model).__mro__ if "_generate" in vars(cls)), None)
    if owner is None or any(is_a(type(value), _MODEL) for value in vars(model).values()):
        return owner is not None and is_a(type(getattr(model, "llm", None)), _PIPELINE)
    of = owner.__module__
    return of.startswith(_IN_PROCESS) or not of.startswith(("langchain", "langgraph"))


def _stand_in(scope: Scope, model: Any) -> Any:
    try:
        made = copy.copy(model)
        for name, step in (("_generate", _one), ("_agenerate", _aone), ("_stream", _pieces), ("_astream", _apieces)):
            object.__setattr__(made, name, step(scope, model, getattr(model, name)))
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the model {type(model).__name__}")
        return model
    return made


def _one(scope: Scope, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _generate(messages: Any, *args: Any, **options: Any) -> Any:
        return generate(scope, lambda: _asked(model, messages, options), lambda: original(messages, *args, **options), _said)

    return _generate


def _aone(scope: Scope, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def _agenerate(messages: Any, *args: Any, **options: Any) -> Any:
        return await agenerate(scope, lambda: _asked(model, messages, options), lambda: original(messages, *args, **options), _said)

    return _agenerate


def _pieces(scope: Scope, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _stream(messages: Any, *args: Any, **options: Any) -> Any:
        made = functools.partial(original, messages, *args, **options)
        return generate_stream(scope, lambda: _asked(model, messages, options), made, _said_in_pieces)

    return _stream


def _apieces(scope: Scope, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _astream(messages: Any, *args: Any, **options: Any) -> Any:
        made = functools.partial(original, messages, *args, **options)
        return agenerate_stream(scope, lambda: _asked(model, messages, options), made, _said_in_pieces)

    return _astream


# ---- what is asked and said -------------------------------------------------------------------------------------


def _asked(model: Any, messages: Sequence[Any], options: dict[str, Any]) -> Asked:
    named = getattr(model, "model_name", None) or getattr(model, "model", None) or getattr(model, "model_id", None)
    settings = {name: value for name, value in options.items() if name not in ("run_manager", "tools") and value is not None}
    return Asked(
        model=named if isinstance(named, str) else type(model).__name__,
        messages=[_message(message) for message in messages],
        tools=[tool for tool in options.get("tools") or () if isinstance(tool, dict)],
        settings=settings,
    )


def _message(message: Any) -> dict[str, object]:
    if message.type == "tool":
        parts = [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}]
    else:
        parts = _parts(message)
    return {"role": _ROLES.get(message.type, message.type), "parts": parts}


def _parts(message: Any) -> list[dict[str, Any]]:
    content = message.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
    told = [
        {"type": "text", "content": block["text"]} if block.get("type") == "text" else {"type": str(block.get("type"))}
        for block in ({"type": "text", "text": block} if isinstance(block, str) else block for block in blocks)
    ]
    calls = getattr(message, "tool_calls", None) or ()
    return told + [{"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["args"]} for call in calls]


def _said(result: Any) -> Said:
    message = result.generations[0].message
    usage = getattr(message, "usage_metadata", None) or {}
    return Said(parts=_parts(message), input_tokens=usage.get("input_tokens"), output_tokens=usage.get("output_tokens"))


def _said_in_pieces(pieces: Sequence[Any]) -> Said:
    message = functools.reduce(lambda one, other: one + other, (piece.message for piece in pieces))
    return Said(parts=_parts(message))
