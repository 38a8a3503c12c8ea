"""An agent whose calls depend on the day, on chance, on secrets, on the order of a set and on names of files.

``RECORD_AT`` is the time it thinks it is.
"""

import datetime as dt
import os
import random
import secrets
import tempfile
import uuid

import time_machine

from spanreplay.instrumentation import agent_run, tool

if "RECORD_AT" in os.environ:
    time_machine.travel(os.environ["RECORD_AT"], tick=True).start()


@tool(effect="read")
def ask(prompt: str, key: str, secret: str, pick: int, order: list[str], folder: str) -> float:
    """Draw a number and a secret, which a replay does not."""
    return random.random() + secrets.randbelow(2)


with agent_run("dated"):
    for _ in range(3):
        trees = list({"oak", "elm", "ash", "fir", "yew"})
        ask(f"Today is {dt.date.today()}.", str(uuid.uuid4()), secrets.token_hex(9), random.randrange(10**6), trees, tempfile.mkdtemp())
