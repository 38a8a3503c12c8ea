"""Answers that come in pieces."""

import json
from typing import Any

import openai

from conformance.driver import ANTHROPIC, ASYNC, OPENAI, STREAMS, TOOLS
from conformance.model import Asked, Reply
from conformance.scenario import scenario
from conformance.scenarios.loops import OFFERED, QUESTION, tools
from conformance.world import CLAUDE, MODEL, World

ASK: Any = [{"role": "user", "content": "Tell a long story."}]


def story(asked: Asked) -> Reply:
    """Sixteen words, new each time."""
    return Reply(text=f"Once upon a time, {asked.fresh} said: " + " ".join(f"word-{n}" for n in range(10)))


def _text(chunk: Any) -> str | None:
    return chunk.choices[0].delta.content if chunk.choices else None


@scenario(model=story, requests=1, needs={OPENAI, STREAMS})
def stream(world: World) -> str:
    """OpenAI chat completions, piece by piece"""
    chunks = world.openai().chat.completions.create(model=MODEL, messages=ASK, stream=True)
    return json.dumps([(chunk.id, _text(chunk)) for chunk in chunks])


@scenario(model=story, requests=1, needs={OPENAI, STREAMS, ASYNC})
async def async_stream(world: World) -> str:
    """The same, asynchronous"""
    async with world.async_openai() as client:
        chunks = await client.chat.completions.create(model=MODEL, messages=ASK, stream=True)
        return json.dumps([(chunk.id, _text(chunk)) async for chunk in chunks])


@scenario(model=story, requests=1, needs={ANTHROPIC, STREAMS})
def anthropic_stream(world: World) -> str:
    """Anthropic messages, stream=True"""
    events = world.anthropic().messages.create(model=CLAUDE, max_tokens=500, messages=ASK, stream=True)
    return json.dumps([event.model_dump(mode="json", exclude_none=True) for event in events])


@scenario(model=story, requests=1, needs={ANTHROPIC, STREAMS})
def anthropic_stream_helper(world: World) -> str:
    """Anthropic's messages.stream(), its text and its final message"""
    with world.anthropic().messages.stream(model=CLAUDE, max_tokens=500, messages=ASK) as events:
        pieces = list(events.text_stream)
        message = events.get_final_message()
    return json.dumps([pieces, message.id, message.stop_reason])


@scenario(model=story, requests=1, needs={OPENAI, STREAMS})
def responses_stream(world: World) -> str:
    """OpenAI Responses API, event by event"""
    events = world.openai().responses.create(model=MODEL, input="Tell a long story.", stream=True)
    return json.dumps([event.model_dump(mode="json", exclude_none=True) for event in events])


def _streamed_tool(asked: Asked) -> Reply:
    return Reply(calls=[("weather", {"city": "Lisbon"})]) if asked.turn == 0 else story(asked)


@scenario(model=_streamed_tool, requests=2, bodies=1, needs={OPENAI, STREAMS, TOOLS})
def streamed_tool_call(world: World) -> str:
    """A tool call whose arguments come in pieces, then a streamed answer"""
    client, named = world.openai(), tools(world)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        text = ""
        calls: dict[int, dict[str, str]] = {}
        for chunk in client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED, stream=True):
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for part in delta.tool_calls or ():
                call = calls.setdefault(part.index, {"id": part.id or "", "name": "", "arguments": ""})
                assert part.function is not None
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
        if not calls:
            return json.dumps([messages, text])
        made = [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls.values()]
        messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
        for call in calls.values():
            result = named[call["name"]](**json.loads(call["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


@scenario(model=story, requests=2, needs={OPENAI, STREAMS})
def stream_left_early(world: World) -> str:
    """Two pieces are read and the stream is closed; another call after it"""
    client = world.openai()
    pieces: list[str | None] = []
    with client.chat.completions.create(model=MODEL, messages=ASK, stream=True) as chunks:
        for chunk in chunks:
            pieces.append(_text(chunk))
            if len(pieces) == 3:
                break
    after = client.chat.completions.create(model=MODEL, messages=[*ASK, {"role": "user", "content": f"After {pieces}?"}])
    return json.dumps([pieces, after.choices[0].message.content])


def _broken(asked: Asked) -> Reply:
    reply = story(asked)
    return Reply(text=reply.text, drop_after=4) if asked.body.get("stream") else reply


@scenario(model=_broken, requests=2, needs={OPENAI, STREAMS})
def stream_that_breaks(world: World) -> str:
    """The connection ends in the middle of a stream; the program catches it and asks again without one"""
    client = world.openai()
    pieces: list[str | None] = []
    raised = ""
    try:
        for chunk in client.chat.completions.create(model=MODEL, messages=ASK, stream=True):
            pieces.append(_text(chunk))  # noqa: PERF401 — what came before the failure stays
    except openai.APIConnectionError:
        raised = "the connection broke"
    after = client.chat.completions.create(model=MODEL, messages=ASK)
    return json.dumps([pieces, raised, after.choices[0].message.content])
