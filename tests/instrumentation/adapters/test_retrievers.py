"""Retrievers, with classes of the libraries' shape and without the libraries."""

import asyncio
import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import retrievers
from spanreplay.semconv import attributes as names
from support.taped import recorded


class LangChain:
    def get_name(self) -> str:
        return "Cities"

    def _get_relevant_documents(self, query: str) -> list[str]:
        return [f"{query} lies at the sea."]

    async def _aget_relevant_documents(self, query: str) -> list[str]:
        return self._get_relevant_documents(query)

    def invoke(self, input: str, config: Any = None, **options: Any) -> list[str]:
        return self._get_relevant_documents(input)

    async def ainvoke(self, input: str, config: Any = None, **options: Any) -> list[str]:
        return await self._aget_relevant_documents(input)


class LlamaIndex:
    def retrieve(self, str_or_query_bundle: str) -> list[str]:
        return [f"{str_or_query_bundle} lies at the sea."]

    async def aretrieve(self, str_or_query_bundle: str) -> list[str]:
        return [f"{str_or_query_bundle} lies at the sea."]


class Odd:
    def invoke(self, question: str) -> str:
        return question


SHAPES: dict[str, type] = {"langchain_core.retrievers": LangChain, "llama_index.core.base.base_retriever": LlamaIndex}


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    made: dict[str, Any] = {}
    for name, kind in SHAPES.items():
        module: Any = ModuleType(name)
        module.BaseRetriever = type("BaseRetriever", (), dict(vars(kind)))
        monkeypatch.setitem(sys.modules, name, module)
        made[name] = module
    retrievers.uninstall()  # a replay in this process has installed every adapter
    yield made
    retrievers.uninstall()


def test_each_look_up_is_a_step(libraries: dict[str, Any]) -> None:
    chain, index = (module.BaseRetriever() for module in libraries.values())
    before = [vars(module.BaseRetriever).copy() for module in libraries.values()]
    retrievers.install()
    assert retrievers.status() == "active"
    assert chain.invoke("Oslo") == ["Oslo lies at the sea."]  # nothing is recorded

    def agent() -> None:
        assert chain.invoke("Oslo", None, limit=1) == ["Oslo lies at the sea."]
        assert asyncio.run(chain.ainvoke("Paris")) == ["Paris lies at the sea."]
        assert index.retrieve("Rome") == ["Rome lies at the sea."]
        assert asyncio.run(index.aretrieve("Bern")) == ["Bern lies at the sea."]

    told = [(step[names.STEP_KIND], step[names.STEP_NAME], json.loads(step[names.STEP_INPUT])) for step in recorded(agent).steps]
    assert told == [
        ("retrieval", "Cities", {"query": "Oslo", "limit": 1}),
        ("retrieval", "Cities", {"query": "Paris"}),
        ("retrieval", "BaseRetriever", {"query": "Rome"}),
        ("retrieval", "BaseRetriever", {"query": "Bern"}),
    ]
    retrievers.uninstall()
    assert [vars(module.BaseRetriever) for module in libraries.values()] == before


def test_a_library_of_another_shape_is_left_alone(libraries: dict[str, Any]) -> None:
    libraries["langchain_core.retrievers"].BaseRetriever = Odd
    retrievers.install()
    assert "wanted BaseRetriever.invoke" in retrievers.status() or "wanted Odd.invoke" in retrievers.status()
    assert Odd().invoke("Oslo") == "Oslo"
