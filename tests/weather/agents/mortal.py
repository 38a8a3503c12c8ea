"""An agent that is killed in the middle of a tool: ``mortal.py EFFECT`` copies its own journal, as it is then, to ``journal-then``."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from spanreplay.instrumentation import agent_run, tool

EFFECT: Any = sys.argv[1]


@tool(effect="read")
def look() -> str:
    """A call that ends."""
    return "seen"


@tool(effect=EFFECT)
def act(amount: int) -> None:
    """A call in the middle of which the process dies."""
    journals = Path(os.environ["SPANREPLAY_STORE"]) / "journal"
    Path("journal-then").write_bytes(b"".join(file.read_bytes() for file in journals.glob("*.journal")))
    os.kill(os.getpid(), signal.SIGKILL)


with agent_run("mortal"):
    look()
    act(42)
