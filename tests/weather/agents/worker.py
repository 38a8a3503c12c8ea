"""An agent that makes many steps while something happens to its store: ``worker.py EVENT``, recording by hand where ``START`` names it.

It prints what it saw, and ends with an exit code of its own.
"""

import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

from spanreplay.instrumentation import agent_run, tool
from weather.agents.travel import LostLuggageError, met

BEFORE, AFTER = 5, 30


@tool(effect="write")
def work(number: int) -> str:
    """Content that is new each time, so that the store grows."""
    if number % 10 == 9:
        raise LostLuggageError(f"number {number}")
    return f"{number} " * 1000


def happen(event: str, store: Path) -> None:
    """What happens half-way."""
    if event == "folder-deleted":
        shutil.rmtree(store, ignore_errors=True)
    elif event == "journal-removed":
        for file in store.glob("journal/*.journal"):
            file.unlink()
    elif event == "disk-full":
        written = max((file.stat().st_size for file in store.glob("journal/*.journal")), default=0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (written + 10_000, resource.RLIM_INFINITY))
    elif event == "disk-full-and-free":
        happen("disk-full", store)
    elif event == "free":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def main() -> None:
    """Work, meet the event, work on."""
    event = sys.argv[1]
    if "START" in os.environ:
        from spanreplay import recording

        recording.start(store=os.environ["START"])
    store = Path(os.environ.get("START") or os.environ["SPANREPLAY_STORE"])
    seen: list[Any] = []
    with agent_run("worker") as run:
        for number in range(BEFORE + AFTER):
            if number == BEFORE:
                happen(event, store)
            if number == BEFORE + AFTER - 5 and event == "disk-full-and-free":
                happen("free", store)
            try:
                seen.append(work(number)[:20])
            except LostLuggageError as error:
                seen.append(met(error))
        run.output = len(seen)
    print(json.dumps(seen), flush=True)
    sys.exit(7)


if __name__ == "__main__":
    main()
