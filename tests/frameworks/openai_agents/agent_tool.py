"""An agent as a tool, streamed and not; one whose tool waits for an approval inside it."""

import asyncio
import json
import sys

from agents import Agent, Runner, RunState, function_tool
from models import model
from toolbox import get_weather, ran


@function_tool(needs_approval=True)
def order(item: str) -> str:
    """Order something."""
    ran("order")
    return f"ordered {item}"


def agents() -> Agent:
    shop = Agent(name="shop", instructions="You order things.", model=model(), tools=[order])
    weather = Agent(name="weather", instructions="You know the weather.", model=model("chat"), tools=[function_tool(get_weather)])
    tools = [
        weather.as_tool(tool_name="ask_weather", tool_description="Ask for the weather."),
        shop.as_tool(tool_name="ask_shop", tool_description="Ask the shop."),
    ]
    return Agent(name="helper", instructions="You help.", model=model(), tools=tools)


async def run() -> str:
    return str((await Runner.run(agents(), "What is the weather in Paris?")).final_output)


async def nested_approval() -> str:
    agent = agents()
    result = await Runner.run(agent, "Order an umbrella.")
    waiting = [item.name for item in result.interruptions]
    state = await RunState.from_json(agent, json.loads(json.dumps(result.to_state().to_json())))
    for item in state.get_interruptions():
        state.approve(item)
    return f"{waiting} {(await Runner.run(agent, state)).final_output}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run({"run": run, "nested_approval": nested_approval}[mode]())}), flush=True)
