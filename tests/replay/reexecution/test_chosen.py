"""What somebody has chosen that a call gives: made what its call site declares, or refused."""

import asyncio
import dataclasses
import enum
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution import chosen
from spanreplay.replay.reexecution.policy import Decision, PolicyError
from support.forking import Scene


@dataclasses.dataclass
class Inner:
    """A dataclass."""

    v: int


@dataclasses.dataclass
class Outer:
    """One in another."""

    inner: list[Inner]
    name: str = "none"


class Model(BaseModel):
    """A pydantic model."""

    v: int


class Keys(TypedDict):
    """A dict with known keys."""

    v: float


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


class Point(NamedTuple):
    """A class that only the fallback does not know."""

    x: int


@tool(effect="write")
def numbers(n: int) -> Iterator[int]:
    """Yields."""
    yield from range(n)


@tool(effect="write")
async def inners(n: int) -> AsyncIterator[Inner]:
    """Yields later."""
    for number in range(n):
        yield Inner(number)


@tool(effect="write")
def outer(n: int) -> Outer:
    """Gives a dataclass."""
    return Outer([Inner(n)])


@tool(effect="write")
async def model(n: int) -> Model:
    """Gives a model."""
    return Model(v=n)


@tool(effect="write")
def undeclared(what):  # type: ignore[no-untyped-def]
    """Gives this or that."""
    return {"tuple": (1, 2), "dataclass": Outer([Inner(1)]), "model": Model(v=1), "dict": {"v": 1}}[what]


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


CALLS: list[tuple[Callable[[], Any], str, Any, str]] = [
    (lambda: list(numbers(3)), "[7, 8]", [7, 8], '"seven"'),
    (lambda: asyncio.run(_all(inners(2))), '[{"v": 7}]', [Inner(7)], '[{"w": 7}]'),
    (lambda: outer(1), '{"inner": [{"v": 2}]}', Outer([Inner(2)]), '{"inner": 5}'),
    (lambda: asyncio.run(model(1)), '{"v": 9}', Model(v=9), "[]"),
]


@pytest.mark.parametrize(("call", "given", "wanted", "misfit"), CALLS)
def test_the_agent_gets_what_life_gives(
    call: Callable[[], Any], given: str, wanted: Any, misfit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent() -> Any:
        with agent_run("choosing", input="go"):
            return call()

    made = Scene(agent, monkeypatch)
    result = made.fork(at=1, changes={"result": json.loads(given)})
    assert (result.value, result.verdict.exit_code) == (wanted, 0)
    assert [call["given"] for call in result.verdict.live] == ["set"]
    kept = made.made(result)
    replayed = made.replayer()
    replayed.runs = [kept]
    assert replayed.replay(agent).value == wanted
    if made.run.steps[0].typed_items is not None and not isinstance(json.loads(misfit), list):  # known before anything runs
        with pytest.raises(PolicyError, match="list of what it yields"):
            made.fork(at=1, changes={"result": json.loads(misfit)})
    else:
        refused = made.fork(at=1, changes={"result": json.loads(misfit)})
        assert (refused.value, refused.verdict.exit_code) == (None, 4)
        assert "is none" in refused.verdict.refusals[0]["text"]
    crashed = Scene(agent, monkeypatch)
    crashed.crash(1)
    decided = crashed.mixed(finish=True, decisions=(Decision.read(f"1=done:{given}"),))
    assert decided.value == wanted
    assert [call["given"] for call in decided.verdict.live] == ["decided"]


@pytest.mark.parametrize(
    ("what", "given", "wanted"),
    [
        ("tuple", [3, 4], (3, 4)),
        ("dataclass", {"inner": [{"v": 2}]}, Outer([Inner(2)])),
        ("model", {"v": 9}, Model(v=9)),
        ("dict", {"w": 9}, {"w": 9}),
        ("dataclass", "another thing", "another thing"),
    ],
)
def test_a_tool_that_declares_nothing_gives_what_it_gave_in_life(
    what: str, given: Any, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent() -> Any:
        with agent_run("choosing", input="go"):
            return undeclared(what)

    result = Scene(agent, monkeypatch).fork(at=1, changes={"result": given})
    assert (result.value, type(result.value), result.verdict.exit_code) == (wanted, type(wanted), 0)


@pytest.mark.parametrize(
    ("declared", "value", "wanted"),
    [
        (Outer, {"inner": [{"v": 1}], "name": "x"}, Outer([Inner(1)], "x")),
        (Inner | None, None, None),
        (dict[str, Inner], {"a": {"v": 1}}, {"a": Inner(1)}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[float, ...], [1], (1.0,)),
        (frozenset[int], [1], frozenset({1})),
        (Keys, {"v": 1}, {"v": 1.0}),
        (Colour, "red", Colour.RED),
        (Literal["a", 2], 2, 2),
        (Any, {"x": 1}, {"x": 1}),
    ],
)
def test_without_pydantic_too(declared: Any, value: Any, wanted: Any) -> None:
    found = chosen._fitting(value, declared)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Inner, {}),
        (Inner, {"v": "1"}),
        (Inner, [1]),
        (int, True),
        (str, 1),
        (list[int], ["a"]),
        (tuple[int, int], [1]),
        (Point, 1),
        (bytes, ""),
    ],
)
def test_what_does_not_fit_is_refused(declared: Any, value: Any) -> None:
    with pytest.raises(chosen._DoesNotFitError):
        chosen._fitting(value, declared)
