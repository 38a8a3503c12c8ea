"""Pydantic AI: arguments, results of tools and the output of the run are objects, and are the same objects' types in a replay."""

import json
from dataclasses import dataclass
from datetime import date

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import ran


class Place(BaseModel):
    city: str
    country: str = "France"


class Forecast(BaseModel):
    place: Place
    day: date
    degrees: list[int]


@dataclass
class Train:
    to: Place
    minutes: int


class Trip(BaseModel):
    place: Place
    minutes: int


def get_agent() -> Agent[None, Trip]:
    class Platform(BaseModel):  # of this function only: no replay finds it by its name
        number: int

    agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="planner", output_type=Trip)

    @agent.tool_plain
    def forecast(place: Place, day: date) -> Forecast:
        ran("forecast")
        return Forecast(place=place, day=day, degrees=[17, 21])

    @agent.tool_plain
    def trains(to: Place, most: int = 2) -> list[Train]:
        ran("trains")
        return [Train(to, 130), Train(to, 95)][:most]

    @agent.tool_plain
    def platform(train: int) -> Platform:
        ran("platform")
        return Platform(number=train)

    @agent.tool_plain
    def map_of(city: str) -> ToolReturn:
        ran("map_of")
        return ToolReturn(return_value={"map": city}, content=[f"The map of {city} is attached."], metadata={"scale": 1000})

    return agent


result = get_agent().run_sync("Plan a trip.")
given = {
    part.tool_name: [part.content, getattr(part, "metadata", None)]
    for message in result.all_messages()
    for part in message.parts
    if part.part_kind == "tool-return" and part.tool_name != "final_result"
}
print(json.dumps({"mode": "output", "output": repr(result.output)}))
print(json.dumps({"mode": "messages", "output": {name: repr(value) for name, value in given.items()}}))
