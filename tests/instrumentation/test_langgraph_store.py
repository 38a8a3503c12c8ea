"""Stores of LangGraph, on classes of the same shape."""

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import langgraph as adapter
from support.taped import recorded, replayed

THEN = datetime(2026, 1, 1, tzinfo=UTC)


class Item:
    def __init__(self, *, value: Any, key: str, namespace: Any, created_at: Any, updated_at: Any) -> None:
        self.value, self.key, self.namespace = value, key, tuple(namespace)
        self.created_at, self.updated_at = (datetime.fromisoformat(x) if isinstance(x, str) else x for x in (created_at, updated_at))

    def dict(self) -> dict[str, Any]:
        times = {"created_at": self.created_at.isoformat(), "updated_at": self.updated_at.isoformat()}
        return {"namespace": list(self.namespace), "key": self.key, "value": self.value, **times}


class SearchItem(Item):
    def __init__(self, score: float | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.score = score

    def dict(self) -> dict[str, Any]:
        return {**super().dict(), "score": self.score}


@pytest.fixture(name="store")
def _store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = ModuleType("langgraph.store.base")

    class BaseStore:
        asked = 0

        def __init__(self) -> None:
            self.kept: dict[Any, Any] = {}

        def get(self, namespace: Any, key: str, *, refresh_ttl: bool | None = None) -> Any:
            BaseStore.asked += 1
            value = self.kept.get((namespace, key))
            return None if value is None else Item(value=value, key=key, namespace=namespace, created_at=THEN, updated_at=THEN)

        async def aput(self, namespace: Any, key: str, value: Any) -> None:
            BaseStore.asked += 1
            if value is None:
                raise ValueError("nothing to put")
            self.kept[namespace, key] = value

        async def asearch(self, namespace_prefix: Any, /, *, limit: int = 10) -> Any:
            found = [(n, k, v) for (n, k), v in self.kept.items() if n[: len(namespace_prefix)] == namespace_prefix]
            return [SearchItem(0.5, value=v, key=k, namespace=n, created_at=THEN, updated_at=THEN) for n, k, v in found[:limit]]

        def list_namespaces(self) -> Any:
            return [namespace for namespace, _ in self.kept]

    module.BaseStore, module.Item, module.SearchItem = BaseStore, Item, SearchItem  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield BaseStore
    adapter.uninstall()


def use(store: Any) -> Any:
    async def work() -> Any:
        one = store()
        await one.aput(("a", "b"), "k", {"n": 1})
        try:
            await one.aput(("a",), "none", None)
        except ValueError as error:
            failure = str(error)
        item, missing = one.get(("a", "b"), "k"), one.get(("a",), "k")
        (found,) = await one.asearch(("a",))
        return failure, item.value, item.namespace, item.created_at, missing, type(found).__name__, found.score, one.list_namespaces()

    return work


def test_what_is_put_is_read_in_a_replay_that_asks_no_store(store: Any) -> None:
    off = asyncio.run(use(store)())
    tape = recorded(use(store))
    assert [(s.name, s.outcome) for run in tape.runs() for s in run.steps] == [
        ("put", "ok"),
        ("put", "error"),
        ("get", "ok"),
        ("get", "ok"),
        ("search", "ok"),
        ("list_namespaces", "ok"),
    ]
    asked = store.asked
    again = replayed(tape, use(store))
    assert (again.equal, again.value, store.asked) == (True, off, asked)


def test_it_is_as_it_was_when_taken_out(store: Any) -> None:
    adapter.uninstall()
    assert not hasattr(store.get, "__wrapped__")
