"""Stores of LangGraph (``BaseStore``): what agents remember from one thread to the next is read and written through the record.

A replay answers from the record and asks no store: what a tool has put there, and is not put there again, is read nevertheless.
``batch`` and ``abatch``, which the methods here go through, are not observed where a program calls them itself.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, call, here
from spanreplay.boundary.call import Call, Effect
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.untaped import unnamed

_METHODS: Final[Mapping[str, Effect]] = {"get": "read", "search": "read", "list_namespaces": "read", "put": "write", "delete": "write"}


def patch_store(module: ModuleType, patches: Patches) -> None:
    """Observe ``langgraph.store.base``."""
    expect(module.BaseStore, "get", ["self", "namespace", "key"])
    _watch(module, module.BaseStore, patches)


def patch_batched(base: ModuleType, module: ModuleType, patches: Patches) -> None:
    """Observe ``langgraph.store.base.batch``, whose store has methods of its own."""
    _watch(base, module.AsyncBatchedBaseStore, patches)


def _watch(module: ModuleType, owner: Any, patches: Patches) -> None:
    for name, effect in _METHODS.items():
        for own, seam in ((name, _method), ("a" + name, _amethod)):
            if own in vars(owner):
                patches.replace(owner, own, functools.partial(seam, module, name, effect))


def _method(module: ModuleType, name: str, effect: Effect, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        found = _step(name, effect, signature, (self, *args), options)
        if found is None:
            return original(self, *args, **options)
        held: list[Any] = []

        def invoke() -> Any:
            with unnamed():
                held.append(original(self, *args, **options))
            return _told(held[0])

        told = call(*found, invoke)
        return held[0] if held else _rebuilt(module, name, told)

    return method


def _amethod(module: ModuleType, name: str, effect: Effect, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def method(self: Any, *args: Any, **options: Any) -> Any:
        found = _step(name, effect, signature, (self, *args), options)
        if found is None:
            return await original(self, *args, **options)
        held: list[Any] = []

        async def invoke() -> Any:
            with unnamed():
                held.append(await original(self, *args, **options))
            return _told(held[0])

        told = await acall(*found, invoke)
        return held[0] if held else _rebuilt(module, name, told)

    return method


def _step(
    name: str, effect: Effect, signature: inspect.Signature, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Scope, Call] | None:
    scope = here()
    if scope is None or (scope.step is not None and scope.step.call.kind == "memory"):  # a store around another
        return None

    def made() -> Call:
        given = signature.bind(*args, **options).arguments
        asked = {key: value for key, value in list(given.items())[1:] if value is not None and type(value).__name__ != "NotProvided"}
        return Call(kind="memory", name=name, input=codec.encode(asked), effect=effect)

    step = attempt(scope, f"what {name} of a store was given", made)
    return None if step is None else (scope, step)


def _told(given: Any) -> Any:
    """What a store gave, as plain values."""
    if isinstance(given, list):
        return [_told(each) for each in given]
    return given.dict() if hasattr(given, "created_at") else given


def _rebuilt(module: ModuleType, name: str, told: Any) -> Any:
    if name == "get":
        return None if told is None else module.Item(**told)
    if name == "search":
        return [module.SearchItem(**{**each, "namespace": tuple(each["namespace"])}) for each in told]
    return [tuple(each) for each in told] if name == "list_namespaces" else told
