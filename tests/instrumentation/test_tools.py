"""``@tool`` keeps what it decorates as it was: kind, signature, binding; and keeps the call as it was asked."""

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.call import Call
from spanreplay.instrumentation import tool
from spanreplay.semconv import attributes as names
from support.taped import recorded, recording, replayed


@dataclass
class Point:
    x: int
    y: int


def plain(a: int, b: int = 2, *rest: int, key: str = "k", **more: int) -> list[Any]:
    """Add things up."""
    return [a, b, rest, key, more]


class Shop:
    factor = 3

    @tool(effect="read")
    def price(self, item: int) -> int:
        return item * self.factor

    @tool(effect="read")
    @classmethod
    def by_class(cls, item: int) -> int:
        return item * cls.factor

    @classmethod
    @tool(effect="read")
    def by_class_inside(cls, item: int) -> int:
        return item * cls.factor

    @tool(effect="read")
    @staticmethod
    def still(item: int) -> int:
        return item

    @tool(effect="read")
    @staticmethod
    async def still_async(item: int) -> int:
        return item


class Callee:
    """Can be called."""

    async def __call__(self, x: int) -> int:
        return x + 1


def test_the_wrapper_looks_like_the_function() -> None:
    wrapped = tool(plain)
    assert (wrapped.__name__, wrapped.__doc__, inspect.signature(wrapped)) == ("plain", "Add things up.", inspect.signature(plain))
    assert wrapped(1, 5, 6, key="x", z=9) == plain(1, 5, 6, key="x", z=9)


async def _coroutine(x: int) -> int:
    return x


def _generator(x: int) -> Generator[int, None, None]:
    yield x


async def _agenerator(x: int) -> Any:
    yield x


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (_coroutine, inspect.iscoroutinefunction),
        (_generator, inspect.isgeneratorfunction),
        (_agenerator, inspect.isasyncgenfunction),
        (functools.partial(_coroutine, 1), inspect.iscoroutinefunction),
        (functools.partial(_agenerator, 1), inspect.isasyncgenfunction),
        (Callee(), inspect.iscoroutinefunction),
        (plain, inspect.isfunction),
    ],
)
def test_the_kind_of_function_is_kept(function: Any, kind: Callable[[Any], bool]) -> None:
    assert kind(tool(function))


def test_methods_class_methods_and_static_methods_are_bound_and_recorded_without_self() -> None:
    def agent() -> list[int]:
        shop = Shop()
        return [
            shop.price(2),
            Shop.by_class(2),
            shop.by_class(2),
            Shop.by_class_inside(2),
            shop.still(2),
            Shop.still(2),
            asyncio.run(shop.still_async(2)),
        ]

    plain_result = agent()
    tape = recorded(agent)
    assert plain_result == [6, 6, 6, 6, 2, 2, 2]
    assert {s[names.GEN_AI_TOOL_CALL_ARGUMENTS] for s in tape.steps} == {'{"item":2}'}
    result = replayed(tape, agent)
    assert result.equal
    assert result.value == plain_result


@pytest.mark.parametrize(
    ("function", "name", "call"),
    [
        (functools.partial(plain, 1), "plain", lambda f: f(5)),
        (Callee(), "Callee", lambda f: asyncio.run(f(x=1))),
        (lambda x: x, "<lambda>", lambda f: f(1)),
        (len, "len", lambda f: f([1, 2])),
    ],
)
def test_partials_callable_objects_and_builtins_are_tools_too(function: Any, name: str, call: Callable[[Any], Any]) -> None:
    wrapped = tool(function)
    expected = call(wrapped)
    tape = recorded(lambda: call(wrapped))
    assert tape.steps[0][names.STEP_NAME] == name
    assert tape.outcomes == ["ok"]
    assert replayed(tape, lambda: call(wrapped)).value == expected


def test_arguments_are_kept_by_name_however_they_are_given() -> None:
    wrapped = tool(plain)
    tape = recorded(lambda: [wrapped(1), wrapped(b=3, a=1), wrapped(1, 2, 3, key="x", z=1)])
    assert [json.loads(s[names.GEN_AI_TOOL_CALL_ARGUMENTS]) for s in tape.steps] == [
        {"a": 1},
        {"a": 1, "b": 3},
        {"a": 1, "b": 2, "rest": [3], "key": "x", "more": {"z": 1}},
    ]


def test_arguments_that_do_not_fit_are_kept_and_fail_as_ever() -> None:
    wrapped: Any = tool(plain)
    with recording() as tape, pytest.raises(TypeError, match="missing 1 required positional argument"):
        wrapped()
    assert tape.outcomes == ["error"]


def test_the_declared_type_of_the_result_is_restored() -> None:
    @tool(effect="read")
    def find() -> Point:
        return Point(1, 2)

    assert replayed(recorded(find), find).value == Point(1, 2)


def test_what_a_model_asked_for_is_tied_to_the_call_that_it_caused() -> None:
    @tool
    def look(x: int) -> int:
        return x

    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        step = boundary.begin(scope, Call(kind="model_call", name="m"))
        assert step is not None
        ask_for(step, [("c1", "look", {"x": 1}), ("c2", "look", {"x": 2}), ("c3", "look", {"x": 1})])
        step.succeed("asked")
        for x in (2, 1, 1, 1):
            look(x)
    calls = tape.steps[1:]
    assert [c.get(names.GEN_AI_TOOL_CALL_ID) for c in calls] == ["c2", "c1", "c3", None]
    assert [c.get(names.STEP_REQUESTED_BY) for c in calls] == [step.span_id] * 3 + [None]


@pytest.mark.parametrize(
    ("key", "made", "failures"),
    [
        ("refund-{order}-{times}", "refund-7-1", 0),
        (lambda order, times=1: f"k{order}", "k7", 0),
        ("{missing}", None, 1),
        (lambda order: 1 / 0, None, 1),
    ],
)
def test_an_idempotency_key_is_filled_and_a_broken_one_costs_only_itself(key: Any, made: str | None, failures: int) -> None:
    @tool(effect="irreversible", idempotency_key=key)
    def refund(order: int, times: int = 1) -> int:
        return order

    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        assert refund(7) == 7
        assert scope.session.failures == failures
    assert tape.steps[0].get(names.STEP_IDEMPOTENCY_KEY) == made


def test_versions_of_a_tool_do_not_change_with_addresses_in_memory() -> None:
    def make() -> Any:
        def f(x: int, default: Any = object()) -> int:
            """Do."""
            return x

        return tool(
            f,
        )

    first, second = make(), make()
    digests = [f.__spanreplay_tool__.attributes[names.TOOL_SCHEMA_DIGEST] for f in (first, second)]
    assert digests[0] == digests[1]


def test_an_effect_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="read, write, irreversible, unknown; found 'maybe'"):
        tool(effect="maybe")  # type: ignore[call-overload]


def test_off_a_broken_key_and_a_broken_signature_are_not_looked_at() -> None:
    @tool(idempotency_key="{missing}")
    def f(x: int) -> int:
        return x

    assert f(1) == 1
