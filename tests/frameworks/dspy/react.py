"""DSPy: ReAct, whose model writes the calls of tools into a text: a typed tool, wrong arguments, a tool that fails, callbacks."""

import asyncio
import json
import sys
from typing import Any

from agent import model  # isort: skip — it sets what litellm reads when it is imported
import dspy
from dspy.utils.callback import BaseCallback
from pydantic import BaseModel
from toolbox import get_alerts, ran


class Price(BaseModel):
    amount: int
    currency: str = "EUR"


def price(item: str, pieces: int) -> Price:
    """Look a price up."""
    ran("price")
    return Price(amount=len(item) * pieces)


async def aprice(item: str, pieces: int) -> Price:
    """Look a price up."""
    return price(item, pieces)


class Heard(BaseCallback):
    """What DSPy tells of tools: the same in a replay."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.told.append(f"{instance.name}")

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.told.append(f"{type(outputs).__name__} {type(exception).__name__}")


def run(mode: str) -> str:
    heard = Heard()
    tool = dspy.Tool(aprice, name="price") if mode == "async" else dspy.Tool(price)
    agent = dspy.ReAct("question -> answer", tools=[tool, get_alerts])
    with dspy.context(lm=model("litellm"), callbacks=[heard]):
        question = "What do two umbrellas cost?"
        done = asyncio.run(agent.acall(question=question)) if mode == "async" else agent(question=question)
    seen = [value if not isinstance(value, str) else value.splitlines()[-1] for key, value in done.trajectory.items() if "observ" in key]
    return f"{done.answer} {seen} {heard.told}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run(mode)}), flush=True)
