"""Several calls at once. The answers come in another order, and after other waits, when the program runs again."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

from conformance.driver import ASYNC, CONCURRENT, OPENAI, THREADS, TOOL_OUTCOMES, TOOLS
from conformance.model import Asked, Reply
from conformance.scenario import scenario
from conformance.world import MODEL, World

CALLERS = 8


def number(asked: Asked) -> Reply:
    """Another answer to everybody, each after its own wait."""
    return Reply(text=f"number {asked.fresh}", wait=int(asked.fresh[:2], 16) / 256 * 0.04)


def _messages(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def ask(client: openai.AsyncOpenAI, text: str) -> str:
    """One model call."""
    said = await client.chat.completions.create(model=MODEL, messages=_messages(text))
    return str(said.choices[0].message.content)


def ask_now(client: openai.OpenAI, text: str) -> str:
    """One model call."""
    return str(client.chat.completions.create(model=MODEL, messages=_messages(text)).choices[0].message.content)


@scenario(model=number, requests=CALLERS, bodies=CALLERS, needs={OPENAI, ASYNC, CONCURRENT, TOOLS})
async def different_calls_at_once(world: World) -> str:
    """gather, 8 callers, each asks something else and then calls a tool"""

    @world.tool
    async def look_up(caller: int) -> str:
        world.mark("look_up")
        await asyncio.sleep(world.pause(caller + 20))
        return f"found {caller}"

    async with world.async_openai() as client:

        async def caller(which: int) -> list[str]:
            await asyncio.sleep(world.pause(which))
            return [await ask(client, f"Question {which}?"), await look_up(which)]

        return json.dumps(await asyncio.gather(*(caller(which) for which in range(CALLERS))))


@scenario(model=number, requests=CALLERS, needs={OPENAI, ASYNC, CONCURRENT})
async def same_call_at_once(world: World) -> str:
    """gather, 8 callers, all ask the same: each gets its own answer back"""
    async with world.async_openai() as client:

        async def caller(which: int) -> str:
            await asyncio.sleep(world.pause(which))
            return await ask(client, "Pick a number.")

        return json.dumps(await asyncio.gather(*(caller(which) for which in range(CALLERS))))


@scenario(model=number, requests=CALLERS, needs={OPENAI, ASYNC, CONCURRENT})
async def same_call_in_a_task_group(world: World) -> str:
    """The same in a TaskGroup"""
    async with world.async_openai() as client:

        async def caller(which: int) -> str:
            await asyncio.sleep(world.pause(which))
            return await ask(client, "Pick a number.")

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(caller(which)) for which in range(CALLERS)]
        return json.dumps([task.result() for task in tasks])


@scenario(model=number, requests=1, bodies=CALLERS, needs={OPENAI, ASYNC, CONCURRENT, TOOLS, TOOL_OUTCOMES})
async def same_tool_at_once(world: World) -> str:
    """gather, 8 callers, one tool with the same arguments, whose results differ"""
    numbers = iter(range(CALLERS))

    @world.tool
    async def draw(deck: str) -> int:
        world.mark("draw")
        drawn = next(numbers)
        await asyncio.sleep(world.pause(drawn + 10))
        return drawn

    async def caller(which: int) -> int:
        await asyncio.sleep(world.pause(which))
        return int(await draw("deck"))

    drawn = await asyncio.gather(*(caller(which) for which in range(CALLERS)))
    async with world.async_openai() as client:
        return json.dumps([drawn, await ask(client, f"Who won? {drawn}")])


@scenario(model=number, requests=CALLERS, needs={OPENAI, CONCURRENT, THREADS})
def different_calls_in_a_pool(world: World) -> str:
    """ThreadPoolExecutor, 4 workers, 8 different calls"""
    client = world.openai()

    def caller(which: int) -> str:
        time.sleep(world.pause(which))
        return ask_now(client, f"Question {which}?")

    with ThreadPoolExecutor(4) as pool:
        return json.dumps(list(pool.map(caller, range(CALLERS))))


@scenario(model=number, requests=CALLERS, needs={OPENAI, CONCURRENT, THREADS})
def same_call_in_a_pool(world: World) -> str:
    """ThreadPoolExecutor, 4 workers, 8 times the same call"""
    client = world.openai()

    def caller(which: int) -> str:
        time.sleep(world.pause(which))
        return ask_now(client, "Pick a number.")

    with ThreadPoolExecutor(4) as pool:
        return json.dumps([future.result() for future in [pool.submit(caller, which) for which in range(CALLERS)]])


@scenario(model=number, requests=CALLERS, needs={OPENAI, ASYNC, CONCURRENT, THREADS})
async def same_call_by_to_thread(world: World) -> str:
    """asyncio.to_thread, 8 times the same synchronous call"""
    client = world.openai()

    def caller(which: int) -> str:
        time.sleep(world.pause(which))
        return ask_now(client, "Pick a number.")

    return json.dumps(await asyncio.gather(*(asyncio.to_thread(caller, which) for which in range(CALLERS))))


@scenario(model=number, requests=4, bodies=4, needs={OPENAI, CONCURRENT, THREADS, TOOLS})
def plain_threads(world: World) -> str:
    """threading.Thread, 4 of them, each the same call and a tool"""
    client = world.openai()
    told: dict[int, list[str]] = {}

    @world.tool
    def look_up(thing: str) -> str:
        world.mark("look_up")
        return f"found {thing}"

    def work(which: int) -> None:
        time.sleep(world.pause(which))
        told[which] = [ask_now(client, "Pick a number."), look_up(f"thing {which}")]

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return json.dumps(sorted(told.items()))


@scenario(model=number, requests=16, bodies=8, needs={OPENAI, ASYNC, CONCURRENT, TOOLS})
async def agents_in_agents(world: World) -> str:
    """4 sub-agents at once, equal prompts; each asks, calls a tool and asks twice at once"""
    draws = iter(range(100))

    @world.tool
    async def draw(deck: str) -> int:
        world.mark("draw")
        await asyncio.sleep(world.pause(9))
        return next(draws)

    async with world.async_openai() as client:

        async def detail() -> list[Any]:
            return [await ask(client, "Add a detail."), await draw("deck")]

        async def agent(which: int) -> list[Any]:
            await asyncio.sleep(world.pause(which))
            topic = await ask(client, "Pick a topic.")
            details = await asyncio.gather(detail(), detail())
            return [topic, details, await ask(client, "Sum it up.")]

        return json.dumps(await asyncio.gather(*(agent(which) for which in range(4))))


@scenario(model=number, requests=CALLERS + 1, needs={OPENAI, ASYNC, CONCURRENT})
async def order_of_answers(world: World) -> str:
    """as_completed: what is asked next depends on who was answered first"""
    async with world.async_openai() as client:

        async def caller(which: int) -> str:
            return f"{which}: {await ask(client, f'Question {which}?')}"

        told = [await done for done in asyncio.as_completed([caller(which) for which in range(CALLERS)])]
        return json.dumps([told, await ask(client, "\n".join(told))])
