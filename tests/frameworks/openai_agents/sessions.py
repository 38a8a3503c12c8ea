"""Conversations of several runs: kept in a file, in memory, and by a class of the user's own."""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, Runner, SQLiteSession
from models import model
from toolbox import ran


class Mine:
    """The protocol of a session and nothing else."""

    session_id = "mine"
    session_settings = None

    def __init__(self) -> None:
        self._items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        ran("get_items")
        return list(self._items[-limit:] if limit else self._items)

    async def add_items(self, items: list[Any]) -> None:
        ran("add_items")
        self._items += items

    async def pop_item(self) -> Any:
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        self._items.clear()


async def main(mode: str) -> str:
    kinds: dict[str, Any] = {"file": lambda: SQLiteSession("a", f"{mode}.db"), "memory": lambda: SQLiteSession("a"), "mine": Mine}
    agent = Agent(name="friend", instructions="You remember.", model=model())
    session = kinds[mode]()
    await session.clear_session()
    await Runner.run(agent, "My name is Ana.", session=session)
    again = session if mode != "file" else kinds[mode]()
    done = await Runner.run(agent, "Who am I?", session=again)
    popped = await again.pop_item()
    left = len(await again.get_items())
    return f"{done.final_output} {popped['role']} {left}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode))}), flush=True)
