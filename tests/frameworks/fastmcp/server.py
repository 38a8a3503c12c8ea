"""The tools as a server of fastmcp, which speaks over stdio where it is run."""

import itertools

import toolbox
from fastmcp import FastMCP
from toolbox import get_alerts, get_time, get_weather, roll

station = FastMCP("weather-station", version="1.2")
for function in (get_weather, get_time, get_alerts):
    station.tool(function, annotations={"readOnlyHint": True})
station.tool(roll)

if __name__ == "__main__":
    toolbox._rolls = itertools.count(101)  # no roll of this process is one of the agent's
    station.run("stdio", show_banner=False)
