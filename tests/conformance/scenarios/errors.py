"""What fails, is caught by the program, and has to fail alike."""

import asyncio
import json
from typing import Any

import openai

from conformance.driver import ANTHROPIC, ASYNC, CONCURRENT, OPENAI, TOOL_OUTCOMES, TOOLS
from conformance.model import Asked, Reply
from conformance.scenario import scenario
from conformance.scenarios.loops import says
from conformance.world import CLAUDE, MODEL, World

ASK: Any = [{"role": "user", "content": "Say something new."}]


class OutOfStock(Exception):
    """An exception of the program's own, with more than a message."""

    def __init__(self, item: str, left: int) -> None:
        super().__init__(f"{item}: {left} left")
        self.item = item
        self.left = left


@scenario(model=says, requests=1, bodies=1, needs={OPENAI, TOOLS, TOOL_OUTCOMES})
def tool_raises(world: World) -> str:
    """A tool raises an exception of the program's own, with attributes, which is caught by its class"""

    @world.acting_tool
    def order(item: str) -> str:
        world.mark("order")
        raise OutOfStock(item, 3)

    try:
        told = order("apples")
    except OutOfStock as error:
        told = f"{error} {error.item} {error.left} {error.args}"
    said = world.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": told}])
    return f"{told} {said.choices[0].message.content}"


@scenario(model=says, requests=1, bodies=3, needs={OPENAI, TOOLS, TOOL_OUTCOMES})
def tool_raises_builtin(world: World) -> str:
    """A tool raises KeyError, ValueError with two arguments, OSError with its number"""
    failures = [KeyError("city"), ValueError("wrong", 7), FileNotFoundError(2, "No such file", "a.txt")]

    @world.tool
    def fail(number: int) -> str:
        world.mark("fail")
        raise failures[number]

    told = []
    for number in range(3):
        try:
            fail(number)
        except (KeyError, ValueError, OSError) as error:
            kind = next(known.__name__ for known in (FileNotFoundError, OSError, KeyError, ValueError) if isinstance(error, known))
            told.append(f"{kind} {error} {error.args} {getattr(error, 'errno', None)} {getattr(error, 'filename', None)}")
    said = world.openai().chat.completions.create(model=MODEL, messages=ASK)
    return json.dumps([told, said.choices[0].message.content])


def _busy_once(asked: Asked) -> Reply:
    if asked.number == 0:
        return Reply(status=429, error={"error": {"message": "slow down", "code": "rate_limit"}}, headers={"retry-after-ms": "5"})
    return says(asked)


@scenario(model=_busy_once, requests=2, needs={OPENAI})
def busy_then_retried(world: World) -> str:
    """The model answers 429, and the SDK asks again"""
    said = world.openai(max_retries=2).chat.completions.create(model=MODEL, messages=ASK)
    return str(said.choices[0].message.content)


@scenario(model=_busy_once, requests=2, needs={ANTHROPIC})
def anthropic_busy_then_retried(world: World) -> str:
    """The same with Anthropic"""
    said: Any = world.anthropic(max_retries=2).messages.create(model=CLAUDE, max_tokens=50, messages=ASK)
    return str(said.content[0].text)


def _fails_once(asked: Asked) -> Reply:
    if asked.number == 0:
        error = {"message": f"server {asked.fresh} is tired", "code": "tired", "type": "server_error"}
        return Reply(status=500, error={"error": error})
    return says(asked)


@scenario(model=_fails_once, requests=2, needs={OPENAI})
def server_error_caught(world: World) -> str:
    """The model answers 500; the program reads status, code, body and request id, and asks again"""
    client = world.openai()
    try:
        told = str(client.chat.completions.create(model=MODEL, messages=ASK))
    except openai.InternalServerError as error:
        told = json.dumps([error.status_code, error.code, error.body, error.request_id, error.response.json()])
    return f"{told} {client.chat.completions.create(model=MODEL, messages=ASK).choices[0].message.content}"


def _garbled_once(asked: Asked) -> Reply:
    return Reply(raw=b'{"id": "c", "choices": [') if asked.number == 0 else says(asked)


@scenario(model=_garbled_once, requests=2, needs={OPENAI})
def garbled_answer(world: World) -> str:
    """The model's answer is no JSON; the program catches what the SDK raises, and asks again"""
    client = world.openai()
    try:
        told = str(client.chat.completions.create(model=MODEL, messages=ASK))
    except ValueError:
        told = "that was no JSON"
    return f"{told} {client.chat.completions.create(model=MODEL, messages=ASK).choices[0].message.content}"


def _hangs_once(asked: Asked) -> Reply:
    return Reply(hold=True) if asked.number == 0 else says(asked)


@scenario(model=_hangs_once, requests=2, needs={OPENAI})
def model_timeout(world: World) -> str:
    """The model does not answer in time; the program catches it and asks again"""
    client = world.openai()
    try:
        told = str(client.chat.completions.create(model=MODEL, messages=ASK, timeout=0.2))
    except openai.APITimeoutError as error:
        told = f"timeout: {error}"
    return f"{told} {client.chat.completions.create(model=MODEL, messages=ASK).choices[0].message.content}"


@scenario(model=says, requests=1, bodies=1, needs={OPENAI, TOOLS, TOOL_OUTCOMES, ASYNC})
async def tool_timeout(world: World) -> str:
    """asyncio.timeout around a tool that takes too long"""

    @world.tool
    async def search(query: str) -> str:
        world.mark("search")
        await asyncio.sleep(30)
        return "found"

    try:
        async with asyncio.timeout(0.05):
            told = await search("weather")
    except TimeoutError:
        told = "timeout"
    async with world.async_openai() as client:
        said = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": told}])
        return f"{told} {said.choices[0].message.content}"


def _one_is_slow(asked: Asked) -> Reply:
    return Reply(hold=True) if asked.last == "slow" else says(asked)


@scenario(model=_one_is_slow, requests=3, needs={OPENAI, ASYNC, CONCURRENT})
async def cancelled(world: World) -> str:
    """Two model calls race, and the loser is cancelled"""
    async with world.async_openai() as client:

        async def ask(text: str) -> str:
            said = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}])
            return str(said.choices[0].message.content)

        racing = [asyncio.create_task(ask("slow"), name="slow"), asyncio.create_task(ask("quick"), name="quick")]
        done, pending = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        ended = await asyncio.gather(*racing, return_exceptions=True)
        won = sorted(task.get_name() for task in done)
        return json.dumps([won, [type(end).__name__ for end in ended], [t.result() for t in done], await ask(f"{won} won")])


@scenario(model=says, requests=2, needs={OPENAI})
def program_fails_after_all(world: World) -> str:
    """A failure of the program's own between two model calls, caught"""
    client = world.openai()
    first = client.chat.completions.create(model=MODEL, messages=ASK).choices[0].message.content
    try:
        told = str(json.loads(str(first)))
    except ValueError as error:
        told = str(error)
    messages: list[Any] = [*ASK, {"role": "assistant", "content": first}, {"role": "user", "content": told}]
    return f"{first} {client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content}"
