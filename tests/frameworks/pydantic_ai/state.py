"""Pydantic AI: what tools change in ``ctx.deps``, a dataclass and a dictionary, is seen by what comes after them, also in a replay."""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import ran


class Item(BaseModel):
    name: str
    pieces: int = 1


class Service:
    """A client: it cannot be kept, and stays what it is."""

    def price(self, item: str) -> int:
        return len(item)


@dataclass
class Cart:
    service: Service
    items: list[Item] = field(default_factory=list)
    total: int = 0


async def run(mode: str) -> str:
    deps: Any = Cart(Service()) if mode == "dataclass" else {"service": Service(), "items": [], "total": 0}
    read = (lambda name: deps[name]) if mode == "dict" else (lambda name: getattr(deps, name))
    agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="shop", deps_type=type(deps))

    @agent.instructions
    def told(ctx: RunContext[Any]) -> str:
        return f"In the cart: {[item.name for item in read('items')]}, {read('total')} EUR."

    @agent.tool(sequential=True)
    def add(ctx: RunContext[Any], item: str) -> str:
        """Put an item into the cart."""
        ran("add")
        held = read("items")
        held.append(Item(name=item))
        total = read("total") + read("service").price(item)
        if mode == "dict":
            ctx.deps["total"] = total
        else:
            ctx.deps.total = total
        return f"{len(held)} in the cart"

    done = await agent.run("An umbrella and a hat.", deps=deps)
    return f"{done.output} {[(type(item).__name__, item.name) for item in read('items')]} {read('total')}"


async def main() -> None:
    for mode in sys.argv[1:]:
        print(json.dumps({"mode": mode, "output": await run(mode)}), flush=True)


asyncio.run(main())
