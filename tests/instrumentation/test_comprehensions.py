"""What is named after a function is named alike by every Python, whether or not its comprehensions are functions of their own."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, count

import pytest

from spanreplay.boundary.comprehensions import plain
from spanreplay.boundary.scope import current_scope
from spanreplay.instrumentation import tool
from spanreplay.instrumentation.shims import clock
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.taped import recording, replayed, told

PLACE = "agent.<locals>"
INNER = f"{PLACE}.<listcomp>"
"""As before Python 3.12."""


@pytest.mark.parametrize(
    ("name", "everywhere"),
    [
        ("agent", "agent"),
        ("agent.<locals>.<listcomp>", "agent"),
        ("agent.<locals>.<setcomp>.<dictcomp>", "agent"),
        ("Agent.<listcomp>", "Agent"),
        ("<listcomp>", "<module>"),
        ("<listcomp>.<setcomp>", "<module>"),
        ("<listcomp>.<lambda>", "<lambda>"),
        ("agent.<locals>.<listcomp>.<lambda>", "agent.<locals>.<lambda>"),
        ("agent.<locals>.<genexpr>.<listcomp>", "agent.<locals>.<genexpr>"),
        ("agent.<locals>.<genexpr>.<lambda>", "agent.<locals>.<lambda>"),
        ("a.<locals>.<listcomp>.<lambda>.<locals>.<dictcomp>.<lambda>", "a.<locals>.<lambda>.<locals>.<lambda>"),
        ("decomp>ile", "decomp>ile"),
        ("~agent.<locals>.<listcomp>.<lambda>#0/io:x#1", "~agent.<locals>.<lambda>#0/io:x#1"),
    ],
)
def test_a_comprehension_is_part_of_the_function_around_it(name: str, everywhere: str) -> None:
    assert plain(name) == everywhere
    assert plain(everywhere) == everywhere


def names_here() -> list[str]:
    """As this Python has them."""

    def names() -> Iterator[str]:
        yield from [(lambda: 0).__qualname__ for _ in "1"]
        yield from {(lambda: 0).__qualname__ for _ in "1"}
        yield next((lambda: 0).__qualname__ for _ in "1")
        yield from chain(*[[(lambda: 0).__qualname__ for _ in "1"] for _ in "1"])

    return list(names())


def test_a_function_in_a_comprehension_has_one_name_in_every_python() -> None:
    assert {plain(name) for name in names_here()} == {"names_here.<locals>.names.<locals>.<lambda>"}


def code_here() -> list[str]:
    """What runs, as this Python names it."""
    here = sys._getframe
    return [
        here().f_code.co_qualname,
        *[here().f_code.co_qualname for _ in "1"],
        *{0: here().f_code.co_qualname for _ in "1"}.values(),
        *chain(*[[here().f_code.co_qualname for _ in "1"] for _ in "1"]),
    ]


def test_a_comprehension_has_the_name_of_the_function_around_it_in_every_python() -> None:
    assert {plain(name) for name in code_here()} == {"code_here"}


def agent() -> list[object]:
    answers = count()

    @tool(effect="read")
    def ask() -> int:
        return next(answers)

    times = [time.time_ns() for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(lambda: [ask(), ask()]) for _ in range(4)]
        return [*times, *[one.result(timeout=60) for one in asked]]


def watched() -> list[object]:
    """What the agent gives while its reads of the clock are kept."""
    scope = current_scope()
    assert scope is not None
    clock.install(scope.session)
    try:
        return agent()
    finally:
        clock.uninstall()


def test_a_run_that_another_python_recorded_is_replayed_by_place() -> None:
    with recording() as tape:
        answered = watched()
    assert not [text for step in tape.steps for text in step.values() if "comp>" in str(text)]
    assert {path.partition("/")[0] for path in tape.paths} == {f"~{PLACE}.<lambda>#{n}" for n in range(4)}
    result = replayed(build_runs([named_before(span) for span in tape.records()]), agent)
    assert told(result) == []
    assert result.value == answered
    assert (result.verdict.matched_by_input, result.verdict.matched_by_chance) == (0, 0)


def named_before(span: SpanRecord) -> SpanRecord:
    """The span as it was recorded while comprehensions had names in records."""
    made = dict(span.attributes)
    made[a.STEP_PATH] = str(made[a.STEP_PATH]).replace(f"{PLACE}.<lambda>", f"{INNER}.<lambda>")
    for name in (a.STEP_CLOCK, a.STEP_ORDER):
        if name in made:
            made[name] = str(made[name]).replace(":agent", f":{PLACE}.<listcomp>").replace(f"{PLACE}.<lambda>", f"{INNER}.<lambda>")
    assert made != dict(span.attributes)
    return replace(span, attributes=made)
