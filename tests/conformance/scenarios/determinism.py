"""What is new each time the program runs, and gets into what it asks: the same program is no change.

``secrets`` and ``os.urandom`` are not among it: a recording from which secrets can be made again would be no gain.
"""

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from conformance.driver import HASH_SEED, OPENAI, TOOLS
from conformance.scenario import scenario
from conformance.scenarios.loops import says
from conformance.world import MODEL, World


def _said(world: World, text: str) -> str:
    messages: list[Any] = [{"role": "system", "content": text}, {"role": "user", "content": "Go on."}]
    return str(world.openai().chat.completions.create(model=MODEL, messages=messages).choices[0].message.content)


@scenario(model=says, requests=1, needs={OPENAI})
def clock(world: World) -> str:
    """The time, to the microsecond, in the prompt"""
    now = f"It is {datetime.now(UTC).isoformat()}, or {time.time_ns()}."
    return f"{now} {_said(world, now)}"


@scenario(model=says, requests=1, bodies=1, needs={OPENAI, TOOLS})
def uuids(world: World) -> str:
    """A uuid in a tool's arguments and in the prompt"""

    @world.acting_tool
    def book(key: str) -> str:
        world.mark("book")
        return f"booked {key}"

    told = book(str(uuid.uuid4()))
    return f"{told} {_said(world, f'{told} {uuid.uuid4()}')}"


@scenario(model=says, requests=1, needs={OPENAI})
def random_numbers(world: World) -> str:
    """random.choice, random.random, random.shuffle"""
    deck = list(range(52))
    random.shuffle(deck)
    chosen = f"{random.choice(deck)} {random.random()} {deck[:5]}"
    return f"{chosen} {_said(world, chosen)}"


@scenario(model=says, requests=1, needs={OPENAI, HASH_SEED})
def order_of_a_set(world: World) -> str:
    """A set of words in the prompt"""
    words = ", ".join({"apple", "pear", "plum", "fig", "lime", "kiwi", "date", "melon"})
    return f"{words} {_said(world, words)}"
