"""A model without HTTP is a step like any other: what it was asked and said, which calls it asked for, and the same objects in a replay."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spanreplay.boundary import boundary
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import framework
from spanreplay.instrumentation.framework import Offered
from spanreplay.instrumentation.local_models import Asked, Said, agenerate, agenerate_stream, generate, generate_stream
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed


@dataclass
class Reply:
    text: str
    calls: int = 0


ASKED = Asked(
    model="echo",
    messages=[{"role": "user", "parts": [{"type": "text", "content": "Say it."}]}],
    system=[{"type": "text", "content": "Be short."}],
    tools=[{"type": "function", "name": "look", "parameters": {}}],
    settings={"temperature": 0},
)
ran: list[str] = []


def here() -> Scope:
    scope = boundary.here()
    assert scope is not None
    return scope


def read(reply: Reply) -> Said:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    return Said(parts=[{"type": "text", "content": reply.text}, *[call] * reply.calls], input_tokens=3, output_tokens=2)


def read_all(pieces: Sequence[str]) -> Said:
    return read(Reply("".join(pieces)))


def test_an_answer_comes_back_as_it_was_and_the_call_it_asks_for_knows_it() -> None:
    def body() -> Reply:
        ran.append("body")
        return Reply("it", 1)

    def agent() -> Reply:
        reply = generate(here(), lambda: ASKED, body, read)
        call = framework.tool_call(here(), Offered(name="look"), {}, layer="acme")
        assert call is not None
        boundary.call(here(), call, lambda: None)
        return reply

    ran.clear()
    tape = recorded(agent)
    model, tool = tape.steps
    assert json.loads(model[names.GEN_AI_INPUT_MESSAGES])[0]["parts"][0]["content"] == "Say it."
    assert json.loads(model[names.GEN_AI_OUTPUT_MESSAGES])[0]["finish_reason"] == "tool_call"
    assert (model[names.GEN_AI_USAGE_INPUT_TOKENS], model[names.GEN_AI_USAGE_OUTPUT_TOKENS]) == (3, 2)
    assert (tool[names.STEP_REQUESTED_BY], tool[names.GEN_AI_TOOL_CALL_ID]) == (tape.starts[0].span_id, "c1")
    again = replayed(tape, agent)
    assert (again.equal, again.value, ran) == (True, Reply("it", 1), ["body"])
    (run,) = [each for each in tape.runs() if each.steps]
    assert run.grade == "exact"


def test_another_question_is_a_difference() -> None:
    def agent(question: str) -> Reply:
        asked = Asked(model="echo", messages=[{"role": "user", "parts": [{"type": "text", "content": question}]}])
        return generate(here(), lambda: asked, lambda: Reply("it"), read)

    again = replayed(recorded(agent, "one"), agent, "another")
    assert [difference.kind for difference in again.differences] == ["input"]


def test_pieces_come_back_one_by_one_and_an_asynchronous_model_too() -> None:
    def pieces() -> Iterator[str]:
        yield from ("i", "t")

    async def apieces() -> AsyncIterator[str]:
        for piece in pieces():
            yield piece

    async def reply() -> Reply:
        return Reply("later")

    async def agent() -> Any:
        whole = list(generate_stream(here(), lambda: ASKED, pieces, read_all))
        left = next(iter(generate_stream(here(), lambda: ASKED, pieces, read_all)))
        later = [piece async for piece in agenerate_stream(here(), lambda: ASKED, apieces, read_all)]
        return [whole, left, later, await agenerate(here(), lambda: ASKED, reply, read)]

    tape = recorded(agent)
    assert tape.outcomes == ["ok", "abandoned", "ok", "ok"]
    again = replayed(tape, agent)
    assert (again.equal, again.value) == (True, [["i", "t"], "i", ["i", "t"], Reply("later")])


def test_what_cannot_be_described_goes_straight_through() -> None:
    def odd() -> Asked:
        raise KeyError("no messages")

    given: list[Reply] = []
    tape = recorded(lambda: given.append(generate(here(), odd, lambda: Reply("it"), read)))
    assert (tape.steps, given) == ([], [Reply("it")])

    def unreadable(_: Reply) -> Said:
        raise KeyError("no parts")

    assert recorded(lambda: generate(here(), lambda: ASKED, lambda: Reply("it"), unreadable)).outcomes == ["ok"]
