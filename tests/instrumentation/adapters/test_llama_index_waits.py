"""A tool that waits for an event: what it raises is kept whole, and holds the class of the event in a replay too."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import llama_index as adapter
from spanreplay.semconv import attributes as names
from support.taped import recording, replayed


class Event: ...


class Reply(Event): ...


@dataclass(frozen=True)
class AddWaiter:
    waiter_id: str
    event_type: Any


class WaitingForEvent(Exception):
    def __init__(self, add: AddWaiter) -> None:
        self.add = add


class FunctionTool:
    metadata = None

    def call(self, *args: Any, **kwargs: Any) -> Any: ...

    async def acall(self, *args: Any, **kwargs: Any) -> Any: ...


class Asking:
    def __init__(self, event: Any) -> None:
        self.event = event
        self.metadata = type("Metadata", (), {"get_name": lambda _: "ask", "description": "", "get_parameters_dict": lambda _: {}})()

    async def acall(self, *_: Any, **__: Any) -> Any:
        raise WaitingForEvent(AddWaiter("w", self.event))


class Agent:
    async def _call_tool(self, ctx: Any, tool: Any, tool_input: Any) -> Any:
        return await tool.acall(**tool_input)

    async def call_tool(self, ctx: Any, ev: Any) -> Any: ...


@pytest.fixture(autouse=True)
def _installed(seams: Any) -> None:
    seams.module("llama_index.core.agent.workflow.base_agent", BaseWorkflowAgent=Agent)
    seams.module("workflows.events", Event=Event)
    seams.install(adapter)


def waits_for(event: Any) -> Any:
    with pytest.raises(WaitingForEvent) as raised:
        asyncio.run(Agent()._call_tool(None, Asking(event), {"question": "?"}))
    return raised.value.add.event_type


def test_the_class_of_an_event_is_kept_by_its_name_and_found_again() -> None:
    with recording() as tape:
        assert waits_for(Reply) is Reply
    [step] = tape.steps
    assert (step[names.STEP_OUTCOME], step.get(names.STEP_LOSSY)) == ("interrupted", None)
    assert replayed(tape, waits_for, Reply).value is Reply


def test_of_two_classes_of_one_name_the_agent_gets_the_one_that_was_raised() -> None:
    twins = [type("Reply", (Event,), {"__module__": Reply.__module__, "__qualname__": "Reply"}) for _ in range(2)]
    with recording():
        assert [waits_for(each) for each in twins] == twins


def test_a_class_that_is_no_event_is_never_looked_up() -> None:
    with recording() as tape:
        assert waits_for(AddWaiter) is AddWaiter
    assert replayed(tape, waits_for, AddWaiter).value == repr(AddWaiter)
