"""Chat models of this process, on a module of the shape of LangChain's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import langchain_models as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, recording, replayed


class BaseLanguageModel:
    __module__ = "langchain_core.language_models.base"


class BaseChatModel(BaseLanguageModel):
    def _generate_with_cache(self, messages: Any, **options: Any) -> Any:
        return self._generate(messages, **options)

    async def _agenerate_with_cache(self, messages: Any, **options: Any) -> Any:
        return await self._agenerate(messages, **options)

    def stream(self, messages: Any, **options: Any) -> Iterator[Any]:
        yield from self._stream(messages, **options)

    async def astream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        async for piece in self._astream(messages, **options):
            yield piece

    def _generate(self, messages: Any, **options: Any) -> Any: ...
    async def _agenerate(self, messages: Any, **options: Any) -> Any: ...
    def _stream(self, messages: Any, **options: Any) -> Any: ...
    def _astream(self, messages: Any, **options: Any) -> Any: ...


@dataclass
class Message:
    content: str
    type: str = "ai"

    def __add__(self, other: "Message") -> "Message":
        return Message(self.content + other.content)


@dataclass
class Generation:
    message: Message


@dataclass
class Result:
    generations: list[Generation]


class Mine(BaseChatModel):
    model_name = "mine"

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner
        self.counts = [0]

    def _generate(self, messages: Any, **options: Any) -> Any:
        self.counts[0] += 1
        return Result([Generation(Message(f"heard {messages[-1].content}"))])

    async def _agenerate(self, messages: Any, **options: Any) -> Any:
        return self._generate(messages)

    def _stream(self, messages: Any, **options: Any) -> Iterator[Any]:
        self.counts[0] += 1
        yield Generation(Message("one "))
        yield Generation(Message("two"))

    async def _astream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        for piece in self._stream(messages):
            yield piece


ASKED = [Message("hello", "human")]


@pytest.fixture(autouse=True)
def installed(seams: Any) -> None:
    seams.module("langchain_core.language_models.chat_models", BaseChatModel=BaseChatModel)
    seams.install(adapter)


def every_way(model: Mine) -> list[str]:
    async def later() -> list[str]:
        whole = await model._agenerate_with_cache(ASKED)
        pieces = [piece.message.content async for piece in model.astream(ASKED)]
        return [whole.generations[0].message.content, *pieces]

    whole = model._generate_with_cache(ASKED, stop=["."])
    pieces = [piece.message.content for piece in model.stream(ASKED)]
    return [whole.generations[0].message.content, *pieces, *asyncio.run(later())]


SAID = ["heard hello", "one ", "two"] * 2


def test_each_call_is_a_step_with_what_was_asked_and_said() -> None:
    assert every_way(Mine()) == SAID
    with recording() as tape:
        assert every_way(Mine()) == SAID
    first, second, *_ = tape.steps
    assert (len(tape.steps), first[names.GEN_AI_REQUEST_MODEL]) == (4, "mine")
    assert '"content":"hello"' in first[names.GEN_AI_INPUT_MESSAGES]
    assert '"content":"heard hello"' in first[names.GEN_AI_OUTPUT_MESSAGES]
    assert '"content":"one two"' in second[names.GEN_AI_OUTPUT_MESSAGES]


def test_a_replay_does_not_run_the_model() -> None:
    model = Mine()
    tape = recorded(every_way, model)
    result = replayed(tape, every_way, model)
    assert (result.equal, result.value, model.counts) == (True, SAID, [4])


def test_models_of_providers_and_those_that_hand_on_are_left_to_the_transports() -> None:
    other = type("ChatAcme", (Mine,), {"__module__": "langchain_acme.models", "_generate": Mine._generate})
    with recording() as tape:
        assert every_way(other()) == every_way(Mine(inner=Mine())) == SAID
    assert tape.steps == []
