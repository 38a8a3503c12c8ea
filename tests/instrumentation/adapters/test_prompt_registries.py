"""Prompts from registries are in force from their fetch on, with classes of the libraries' shape and without the libraries."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import in_force
from spanreplay.instrumentation.adapters import prompt_registries
from spanreplay.semconv import attributes as names
from support.taped import recorded


@dataclass
class Prompt:
    name: str
    version: int
    prompt: Any = None
    template: Any = None


@dataclass
class Commit:
    owner: str
    repo: str
    commit_hash: str
    manifest: dict[str, Any]


class Langfuse:
    def get_prompt(self, name: str, *, version: int | None = None, label: str | None = None) -> Prompt:
        return Prompt(name, version or 3, prompt=[{"role": "system", "content": "Be kind."}])


class Before3:
    """The SDK before 3.0, whose class of the same name was in another module."""

    class Langfuse:
        def get_prompt(self, name: str, version: int | None = None, *, label: str | None = None) -> Prompt:
            return Prompt(name, version or 2, prompt="Be kind.")


class Client:
    def pull_prompt_commit(self, prompt_identifier: str, *, include_model: bool = False) -> Commit:
        return Commit("acme", prompt_identifier, "abc123", {"lc": 1})


class AsyncClient:
    async def pull_prompt_commit(self, prompt_identifier: str, *, include_model: bool = False) -> Commit:
        return Commit("acme", prompt_identifier, "abc123", {"lc": 1})


@dataclass
class Version:
    id: str
    _template: dict[str, Any]


class Prompts:
    def get(self, *, prompt_version_id: str | None = None, prompt_identifier: str | None = None, tag: str | None = None) -> Version:
        return Version(prompt_version_id or "v7", {"type": "chat"})


class AsyncPrompts:
    async def get(self, *, prompt_version_id: str | None = None, prompt_identifier: str | None = None, tag: str | None = None) -> Version:
        return Version("v8", {"type": "chat"})


class MlflowClient:
    def load_prompt(self, name_or_uri: str, version: int | None = None, allow_missing: bool = False) -> Prompt | None:
        return None if allow_missing else Prompt(name_or_uri, 2, template="Be brief.")


class Odd:
    def get_prompt(self, name: str) -> int:
        return 7


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    made = {}
    shapes: dict[str, tuple[type, ...]] = {
        "langfuse._client.client": (Langfuse,),
        "langfuse.client": (Before3.Langfuse,),
        "langsmith.client": (Client,),
        "langsmith.async_client": (AsyncClient,),
        "mlflow.tracking.client": (MlflowClient,),
        "phoenix.client.resources.prompts": (Prompts, AsyncPrompts),
    }
    for name, kinds in shapes.items():
        made[name] = ModuleType(name)
        for kind in kinds:
            setattr(made[name], kind.__name__, kind)
        monkeypatch.setitem(sys.modules, name, made[name])
    prompt_registries.uninstall()  # a replay in this process has installed every adapter
    prompt_registries.install()
    token = in_force.set(MappingProxyType({}))
    yield made
    in_force.reset(token)
    prompt_registries.uninstall()


def asked_after(fetch: Callable[[], Any]) -> dict[str, Any]:
    """The attributes of a model call after a fetch."""
    assert prompt_registries.status() == "active", prompt_registries.status()

    def agent() -> None:
        fetch()
        scope = boundary.here()
        assert scope is not None
        boundary.call(scope, Call(kind="model_call", name="m"), lambda: None)

    return recorded(agent).steps[-1]


@pytest.mark.parametrize(
    ("fetch", "known"),
    [
        (lambda: Langfuse().get_prompt("tone"), ("langfuse", "tone", "3", '[{"role":"system","content":"Be kind."}]')),
        (lambda: Langfuse().get_prompt("tone", version=1), ("langfuse", "tone", "1", '[{"role":"system","content":"Be kind."}]')),
        (lambda: Before3.Langfuse().get_prompt("tone", 1), ("langfuse", "tone", "1", "Be kind.")),
        (lambda: Client().pull_prompt_commit("tone"), ("langsmith", "acme/tone", "abc123", '{"lc":1}')),
        (lambda: MlflowClient().load_prompt("tone"), ("mlflow", "tone", "2", "Be brief.")),
        (lambda: Prompts().get(prompt_identifier="tone", tag="best"), ("phoenix", "tone", "v7", '{"type":"chat"}')),
        (lambda: Prompts().get(prompt_version_id="v1"), ("phoenix", "v1", "v1", '{"type":"chat"}')),
    ],
)
def test_a_fetched_prompt_is_in_force(libraries: Any, fetch: Callable[[], Any], known: tuple[str, ...]) -> None:
    step = asked_after(fetch)
    told = (names.PROMPT_REGISTRY, names.GEN_AI_PROMPT_NAME, names.GEN_AI_PROMPT_VERSION, names.PROMPT_TEMPLATE)
    assert tuple(step[name] for name in told) == known
    assert step[names.PROMPT_DIGEST].startswith("sha256:")


@pytest.mark.parametrize(
    ("fetch", "known"),
    [
        (lambda: AsyncClient().pull_prompt_commit("tone"), ("acme/tone", "abc123")),
        (lambda: AsyncPrompts().get(prompt_identifier="tone"), ("tone", "v8")),
    ],
)
def test_a_prompt_that_was_awaited_is_in_force(libraries: Any, fetch: Callable[[], Any], known: tuple[str, ...]) -> None:
    async def agent() -> None:
        await fetch()
        scope = boundary.here()
        assert scope is not None
        boundary.call(scope, Call(kind="model_call", name="m"), lambda: None)

    step = recorded(lambda: asyncio.run(agent())).steps[-1]
    assert tuple(step[name] for name in (names.GEN_AI_PROMPT_NAME, names.GEN_AI_PROMPT_VERSION)) == known


def test_what_gives_no_prompt_says_nothing(libraries: dict[str, ModuleType]) -> None:
    assert names.GEN_AI_PROMPT_NAME not in asked_after(lambda: MlflowClient().load_prompt("tone", allow_missing=True))
    prompt_registries.uninstall()
    libraries["langfuse._client.client"].Langfuse = Odd  # type: ignore[attr-defined]
    prompt_registries.install()
    assert names.GEN_AI_PROMPT_NAME not in asked_after(lambda: Odd().get_prompt("tone"))


def test_off_and_taken_out(libraries: Any) -> None:
    assert json.dumps(Langfuse().get_prompt("tone").prompt) == '[{"role": "system", "content": "Be kind."}]'
    assert prompt_registries.status() == "active"
    prompt_registries.uninstall()
    assert not hasattr(Langfuse.get_prompt, "__wrapped__")
