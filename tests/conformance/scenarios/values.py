"""What tools return, which has to come back as it was: each in its type, and in its order."""

import enum
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pydantic

from conformance.driver import OPENAI, TOOL_OUTCOMES, TOOLS
from conformance.scenario import scenario
from conformance.scenarios.loops import says
from conformance.world import MODEL, World

_NEEDS = {OPENAI, TOOLS, TOOL_OUTCOMES}


def _come_back(world: World, *values: Any) -> str:
    """A tool returns each of the values; the program's output is what it was given, in types and characters."""

    @world.tool
    def fetch(number: int) -> Any:
        world.mark("fetch")
        return values[number]

    ask: list[Any] = [{"role": "user", "content": "Shall I fetch it?"}]
    said = world.openai().chat.completions.create(model=MODEL, messages=ask).choices[0].message.content
    return "\n".join([str(said), *(spelled(fetch(number)) for number in range(len(values)))])


def spelled(value: Any) -> str:
    """A value in ASCII, with its type."""
    shown = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    return f"{type(value).__module__}.{type(value).__qualname__} {shown!a}"


@scenario(model=says, requests=1, bodies=8, needs=_NEEDS)
def empty_values(world: World) -> str:
    """0, 0.0, False, None, "", [], {}, ()"""
    return _come_back(world, 0, 0.0, False, None, "", [], {}, ())


@scenario(model=says, requests=1, bodies=3, needs=_NEEDS)
def order_of_keys(world: World) -> str:
    """Dictionaries keep the order of their keys"""
    return _come_back(world, {"sent": True, "id": 7, "a": 1}, {"b": {"z": 1, "y": 2}, "a": 0}, [{"2": 1, "10": 2, "1": 3}])


@scenario(model=says, requests=1, bodies=4, needs=_NEEDS)
def keys_that_are_no_text(world: World) -> str:
    """Keys that are numbers, None, tuples"""
    return _come_back(world, {1: "a", 2: "b"}, {None: 0, True: 1}, {(1, 2): "here"}, {1.5: "x", "1.5": "y"})


@scenario(model=says, requests=1, bodies=5, needs=_NEEDS)
def tuples_and_sets(world: World) -> str:
    """Tuples, sets, frozen sets, also inside of lists"""
    return _come_back(world, (1, "a"), {1, 2, 3}, frozenset({"x"}), [(1, 2), (3,)], {"point": (0.5, 1.5)})


@scenario(model=says, requests=1, bodies=3, needs=_NEEDS)
def binary(world: World) -> str:
    """bytes and bytearray, all 256 of them"""
    return _come_back(world, bytes(range(256)), bytearray(b"\x00\xff"), {"image": b"\x89PNG"})


@scenario(model=says, requests=1, bodies=6, needs=_NEEDS)
def times(world: World) -> str:
    """datetime with a zone and without, date, time, timedelta"""
    east = timezone(timedelta(hours=5, minutes=45))
    moment = datetime(2026, 2, 28, 23, 59, 59, 999999, tzinfo=UTC)
    moments = (moment, moment.astimezone(east), moment.replace(tzinfo=None))
    return _come_back(world, *moments, date(2026, 2, 28), moment.timetz(), timedelta(days=-1, microseconds=1))


@dataclass
class Parcel:
    """A value of the program's own."""

    number: int
    weight: Decimal
    tags: list[str] = field(default_factory=list)
    inside: "Parcel | None" = None


class Order(pydantic.BaseModel):
    """A value of the program's own."""

    number: int
    placed: datetime
    total: Decimal
    lines: list[dict[str, int]]


class Colour(enum.Enum):
    """A value of the program's own."""

    RED = "red"


@scenario(model=says, requests=1, bodies=2, needs=_NEEDS)
def dataclasses(world: World) -> str:
    """Dataclasses of the program, one inside another"""
    small = Parcel(1, Decimal("0.10"), ["small"])
    return _come_back(world, small, [Parcel(2, Decimal(3), [], small)])


@scenario(model=says, requests=1, bodies=2, needs=_NEEDS)
def pydantic_models(world: World) -> str:
    """pydantic models of the program, also in a list"""
    order = Order(number=7, placed=datetime(2026, 1, 2, tzinfo=UTC), total=Decimal("19.90"), lines=[{"apple": 2}])
    return _come_back(world, order, [order])


@scenario(model=says, requests=1, bodies=4, needs=_NEEDS)
def decimals_uuids_enums(world: World) -> str:
    """Decimal, UUID, Enum, complex"""
    return _come_back(world, Decimal("0.10"), UUID(int=7), Colour.RED, complex(1, -2))


@scenario(model=says, requests=1, bodies=5, needs=_NEEDS)
def large_numbers(world: World) -> str:
    """Integers beyond 64 bits, floats to their last digit"""
    return _come_back(world, 2**64 + 1, -(10**40), 0.1 + 0.2, 5e-324, 1e308)


@scenario(model=says, requests=1, bodies=4, needs=_NEEDS)
def no_numbers(world: World) -> str:
    """NaN, infinity, minus zero"""
    return _come_back(world, math.nan, math.inf, [-math.inf], -0.0)


@scenario(model=says, requests=1, bodies=5, needs=_NEEDS)
def unicode_texts(world: World) -> str:
    """Emoji, combined and decomposed letters, NUL, line separators"""
    return _come_back(world, "👩‍👩‍👧 ß", "e\u0301 is not \u00e9", "a\x00b", "one\u2028two\r\nthree\x85", "\ufeffmark \U0010ffff")


@scenario(model=says, requests=1, bodies=2, needs=_NEEDS)
def lone_surrogates(world: World) -> str:
    """Half a character, as file names and cut texts have"""
    return _come_back(world, "cut \ud83d", {"name\udc80": "\udcff"})


@scenario(model=says, requests=1, bodies=2, needs=_NEEDS)
def nested_and_large(world: World) -> str:
    """Lists 50 deep; a text of 300 000 characters"""
    deep: Any = "bottom"
    for _ in range(50):
        deep = [{"in": deep}]
    return _come_back(world, deep, "word " * 60_000)


@scenario(model=says, requests=1, bodies=1, needs=_NEEDS)
def changed_after_it_was_returned(world: World) -> str:
    """The program changes the list that a tool returned; the recording has what was returned"""

    @world.tool
    def cart() -> list[str]:
        world.mark("cart")
        return ["apple"]

    items = cart()
    items.append("pear")
    ask: list[Any] = [{"role": "user", "content": f"What is {items}?"}]
    said = world.openai().chat.completions.create(model=MODEL, messages=ask).choices[0].message.content
    return f"{items} {said}"
