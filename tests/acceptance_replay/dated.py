"""An agent whose calls depend on the day, on chance, and on the order of a set. ``RECORD_AT`` is the time it thinks it is."""

import datetime as dt
import os
import random
import uuid

import time_machine

from spanreplay.instrumentation import agent_run, tool

if "RECORD_AT" in os.environ:
    time_machine.travel(os.environ["RECORD_AT"], tick=True).start()


@tool(effect="read")
def ask(prompt: str, key: str, pick: int, order: list[str]) -> float:
    """Draw a number, which a replay does not."""
    return random.random()


with agent_run("dated"):
    for _ in range(3):
        ask(f"Today is {dt.date.today()}.", str(uuid.uuid4()), random.randrange(10**6), list({"oak", "elm", "ash", "fir", "yew"}))
