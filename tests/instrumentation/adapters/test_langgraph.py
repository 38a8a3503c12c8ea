"""The adapter of LangGraph on modules of the same shape: what is an agent, and what it is said to have been asked and to have said."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run
from spanreplay.instrumentation.adapters import langgraph as adapter
from spanreplay.semconv import attributes as names
from support.taped import recording


class Builder:
    pass


class Pregel:
    stream_mode = "updates"

    def __init__(self, name: str | None = None, inner: "Pregel | None" = None) -> None:
        self.name, self.inner, self.builder = name, inner, Builder()
        self.nodes = {"__start__": None, "only": None}

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return list(self.stream(input, config, stream_mode="values"))[-1]

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return [item async for item in self.astream(input, config, stream_mode="values")][-1]

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
        if self.inner is not None:
            self.inner.invoke(input)
        yield {"said": 1}
        yield {"said": 2}

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        yield {"said": 2}


def create_agent(model: Any, tools: Any = None, **options: Any) -> Pregel:
    return Pregel(options.get("name"))


@pytest.fixture(autouse=True)
def factory(seams: Any) -> Any:
    seams.module("langgraph.pregel.main", Pregel=Pregel)
    made = seams.module("langchain.agents.factory", create_agent=create_agent)
    seams.install(adapter)
    return made


def test_a_graph_is_a_run_whichever_way_it_is_run() -> None:
    config = {"configurable": {"thread_id": 7}}
    with recording() as tape:
        assert Pregel("a").invoke({"ask": 1}, config) == {"said": 2}
        assert asyncio.run(Pregel("a").ainvoke({"ask": 1})) == {"said": 2}
        assert list(Pregel("a").stream({"ask": 1})) == [{"said": 1}, {"said": 2}]
    assert [(step[names.STEP_NAME], step[names.RUN_INPUT], step[names.RUN_OUTPUT]) for step in tape.steps] == [
        ("a", '{"ask":1}', '{"said":2}')
    ] * 3
    assert tape.steps[0][names.GEN_AI_CONVERSATION_ID] == "7"
    assert tape.steps[0][names.RUN_DEFINITION] == '{"nodes":["only"]}'


@pytest.mark.parametrize(("inner", "steps"), [(Pregel("b"), ["a", "b"]), (Pregel(), ["a"])])
def test_a_graph_without_a_name_is_a_part_of_the_one_around_it(inner: Pregel, steps: list[str]) -> None:
    with recording() as tape:
        Pregel("a", inner).invoke({})
    assert [step[names.STEP_NAME] for step in tape.steps] == steps


def test_a_run_of_the_users_own_is_the_run() -> None:
    with recording() as tape, agent_run("mine"):
        Pregel().invoke({})
    assert [step[names.STEP_NAME] for step in tape.steps] == ["mine"]


def test_what_an_agent_was_made_of_is_its_definition(factory: Any) -> None:
    agent = factory.create_agent("openai:gpt", [len], system_prompt="Be brief.", name="brief")
    with recording() as tape:
        agent.invoke({})
    assert tape.steps[0][names.RUN_DEFINITION] == '{"instructions":"Be brief.","model":"openai:gpt","tools":["len"]}'


def test_another_shape_is_said_and_left_alone(seams: Any) -> None:
    adapter.uninstall()
    seams.module("langgraph.pregel.main", Pregel=type("Pregel", (), {"invoke": lambda self, what: what}))
    seams.install(adapter)
    assert adapter.status().startswith("unsupported: wanted Pregel.invoke(self, input, config)")
