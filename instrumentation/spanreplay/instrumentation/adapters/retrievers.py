"""Retrievers of LangChain and LlamaIndex: what an application looks up in its own documents is a step, whatever keeps them.

``BaseRetriever.invoke`` and ``ainvoke`` (langchain-core 1.8.3) and ``BaseRetriever.retrieve`` and ``aretrieve`` (llama-index-core 0.14.25),
all public. What a retriever asks on its way, a model for embeddings or a database, belongs to the step. A replay of LangChain's leaves the
callbacks around the look-up in place, so that streamed events are those of the record.
"""

import copy
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, call, here
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches

NAME: Final = "retrievers"


def _patch_langchain(module: ModuleType, patches: Patches) -> None:
    for name, made in (("invoke", _observed_invoke), ("ainvoke", _observed_ainvoke)):
        expect(module.BaseRetriever, name, ["self", "input", "config"])
        patches.replace(module.BaseRetriever, name, made)


def _patch_llama_index(module: ModuleType, patches: Patches) -> None:
    for name, made in (("retrieve", _observed_retrieve), ("aretrieve", _observed_aretrieve)):
        expect(module.BaseRetriever, name, ["self", "str_or_query_bundle"])
        patches.replace(module.BaseRetriever, name, made)


_hooks: Final = Hooks(
    NAME,
    {"langchain_core.retrievers": _patch_langchain, "llama_index.core.base.base_retriever": _patch_llama_index},
)
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _call(name: str, asked: dict[str, Any]) -> Call:
    return Call(kind="retrieval", name=name, input=codec.encode(asked))


# ---- LangChain --------------------------------------------------------------------------------------------------


def _observed_invoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def invoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 — the library's name
        scope = here()
        made = None if scope is None else attempt(scope, "a look-up", lambda: _asked(self, input, options))
        if scope is None or made is None:
            return original(self, input, config, **options)
        found = self._get_relevant_documents
        stand_in = _stand_in(scope, self, "_get_relevant_documents", lambda *a, **o: call(scope, made, lambda: found(*a, **o)))
        if stand_in is not None:
            return original(stand_in, input, config, **options)
        return call(scope, made, lambda: original(self, input, config, **options))

    return invoke


def _observed_ainvoke(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def ainvoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:  # noqa: A002 — the library's name
        scope = here()
        made = None if scope is None else attempt(scope, "a look-up", lambda: _asked(self, input, options))
        if scope is None or made is None:
            return await original(self, input, config, **options)
        found = self._aget_relevant_documents
        stand_in = _stand_in(scope, self, "_aget_relevant_documents", lambda *a, **o: acall(scope, made, lambda: found(*a, **o)))
        if stand_in is not None:
            return await original(stand_in, input, config, **options)
        return await acall(scope, made, lambda: original(self, input, config, **options))

    return ainvoke


def _asked(retriever: Any, query: Any, options: dict[str, Any]) -> Call:
    named = {name: value for name, value in options.items() if name != "run_id"}
    return _call(retriever.get_name(), {"query": query, **named})


def _stand_in(scope: Scope, retriever: Any, name: str, step: Callable[..., Any]) -> Any:
    """In a replay that answers, a retriever whose look-up is the recorded step; else ``None``."""
    if scope.session.mode != "replay":
        return None
    try:
        made = copy.copy(retriever)
        object.__setattr__(made, name, step)
    except Exception:  # noqa: BLE001 — a retriever of any kind
        return None
    return made


# ---- LlamaIndex -------------------------------------------------------------------------------------------------


def _observed_retrieve(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def retrieve(self: Any, str_or_query_bundle: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, "a look-up", lambda: _bundled(self, str_or_query_bundle))
        if scope is None or made is None:
            return original(self, str_or_query_bundle, *args, **options)
        return call(scope, made, lambda: original(self, str_or_query_bundle, *args, **options))

    return retrieve


def _observed_aretrieve(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def aretrieve(self: Any, str_or_query_bundle: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        made = None if scope is None else attempt(scope, "a look-up", lambda: _bundled(self, str_or_query_bundle))
        if scope is None or made is None:
            return await original(self, str_or_query_bundle, *args, **options)
        return await acall(scope, made, lambda: original(self, str_or_query_bundle, *args, **options))

    return aretrieve


def _bundled(retriever: Any, asked: Any) -> Call:
    """Of a bundle the text; the vector that may be with it is made of that."""
    return _call(type(retriever).__name__, {"query": getattr(asked, "query_str", asked)})
