"""The tools of the agents here: plain functions, decorated. Each body leaves a line, so that one that runs in a replay is seen."""

import os
from pathlib import Path
from typing import Any

from spanreplay.instrumentation import tool

WEATHER: dict[str, dict[str, Any]] = {
    "Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"},
    "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"},
}


def _ran(name: str) -> None:
    with Path(os.environ["TOOL_BODIES"]).open("a") as file:
        file.write(f"{name}\n")


@tool(effect="read")
def get_weather(city: str) -> dict[str, Any]:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    _ran("get_weather")
    return WEATHER[city]


@tool(effect="read")
def get_alerts(city: str) -> dict[str, Any]:
    """Get the weather alerts of a city.

    Args:
        city: its name.
    """
    _ran("get_alerts")
    raise RuntimeError("alert service unavailable")
