"""The tools of the agents here: plain functions, as a framework's user writes them.

Each body leaves a line in the file that ``TOOL_BODIES`` names, so that one that runs in a replay is seen.
"""

import asyncio
import itertools
import os
from pathlib import Path

_rolls = itertools.count(1)


def ran(name: str) -> None:
    """The body of a tool runs."""
    with Path(os.environ["TOOL_BODIES"]).open("a") as file:
        file.write(f"{name}\n")


def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    ran("get_weather")
    return f"{city}: 21 °C and sunny"


def get_time(city: str) -> str:
    """Get the local time of a city.

    Args:
        city: its name.
    """
    ran("get_time")
    return f"{city}: 12:00"


def roll() -> str:
    """Roll a die. No two calls give the same."""
    ran("roll")
    return f"rolled {next(_rolls)}"


def get_alerts(city: str) -> str:
    """Get the weather alerts of a city. It always fails.

    Args:
        city: its name.
    """
    ran("get_alerts")
    raise RuntimeError(f"alert service of {city} unavailable")


async def wait_for_ever() -> str:
    """Wait for ever."""
    ran("wait_for_ever")
    await asyncio.Event().wait()
    return "never"
