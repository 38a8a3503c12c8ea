"""An agent under other people's weather: ``traveller.py URL SETUP before|after``, recording by hand where ``START`` names a store.

It prints what it saw, and dies of an exception of its own.
"""

import json
import os
import sys

from weather.agents.providers import SETUPS
from weather.agents.travel import LostLuggageError, travel


def main() -> None:
    """Set up, travel, print, fail."""
    url, setup, when = sys.argv[1:]
    if when == "before":
        SETUPS[setup]()
    if "START" in os.environ:
        from spanreplay import recording

        recording.start(store=os.environ["START"])
    if when == "after":
        SETUPS[setup]()
    print(json.dumps(travel(url)), flush=True)
    raise LostLuggageError("nobody met me")


if __name__ == "__main__":
    main()
