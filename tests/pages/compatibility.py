"""Writes docs/compatibility.md from the recordings and routes that the tests read: ``PYTHONPATH=tests python -m pages.compatibility``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pages.routes import Route, routes
from recordings.reading import recordings
from spanreplay.replay.model import GRADE_ORDER, GRADE_WORDS

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "compatibility.md"
BY_RUNNING: Final = "by running"

_HEAD: Final = """# What traces of others come back as

Written by `PYTHONPATH=tests python -m pages.compatibility`, from what the tests read; a row is here only if its test ran.

**replays by meaning**: every step has its input and output, so it can answer a live call that asks for the same. **view only**: the order
and the identity of the steps are known, not what went in or came out. **cut short**: evidence that something is missing. (**replays
exactly** takes the exact exchange, which only spanreplay's own recording holds.)

## By framework and instrumentation

Each row is a small run of the real package: a model that calls two tools at once, one that fails, and answers. The recipe that records it
anew is in `tests/recordings/`.

| framework | instrumentation | content | read as | models | tools | other steps | a run comes back as | not there |
|---|---|---|---|---|---|---|---|---|
"""
_ROUTES: Final = """
## By back end and route

One agent run with messages of some thousand bytes, recorded by an instrumentation of the GenAI conventions, brought back along each route.

| route | read as | a run comes back as | lost on the way | so that it is not lost again |
|---|---|---|---|---|
"""
_BY_HAND: Final = """
## Read from samples written by hand

These dialects are tested with spans written by hand from the sources named, since the real program could not be run in a test.

| framework | from | read as | a run comes back as |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    told = [json.loads((folder / "expected.json").read_text(encoding="utf-8")) for folder in recordings()]
    by_running = [one for one in told if one["made"] == BY_RUNNING]
    by_hand = [one for one in told if one["made"] != BY_RUNNING]
    text = _HEAD + "".join(_row(_framework(one)) for one in sorted(by_running, key=_order))
    text += _ROUTES + "".join(_row(_route(route)) for route in routes())
    if by_hand:
        text += _BY_HAND + "".join(_row(_hand(one)) for one in sorted(by_hand, key=_order))
    return text


def _order(one: dict[str, Any]) -> tuple[str, ...]:
    return one["framework"].lower(), one["version"], one["instrumentation"], one["content"]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _framework(one: dict[str, Any]) -> list[str]:
    steps = [step for run in one["runs"] for step in run["steps"]]
    models = sum(step["kind"] == "model_call" for step in steps)
    tools = sum(step["kind"] == "tool_call" for step in steps)
    return [
        f"{one['framework']} {one['version']}",
        one["instrumentation"],
        one["content"],
        _dialects(one),
        str(models),
        str(tools),
        str(len(steps) - models - tools),
        _grade(run["grade"] for run in one["runs"]),
        ", ".join(_absent(steps)) or "—",
    ]


def _dialects(one: dict[str, Any]) -> str:
    return ", ".join(sorted({step["dialect"] for run in one["runs"] for step in run["steps"]}))


def _grade(grades: Iterator[Any]) -> str:
    worst = max((GRADE_ORDER.index(grade) for grade in grades), default=GRADE_ORDER.index("structure"))
    return GRADE_WORDS[GRADE_ORDER[worst]]


def _absent(steps: list[dict[str, Any]]) -> Iterator[str]:
    """What steps lack: call ids, inputs, outputs."""
    tools = [step for step in steps if step["kind"] == "tool_call"]
    content = [step for step in steps if step["kind"] in ("tool_call", "model_call")]
    for what, among, lack in (
        ("call ids", tools, [s for s in tools if s["call_id"] is None]),
        ("inputs", content, [s for s in content if s["input"] is None]),
        ("outputs", content, [s for s in content if s["output"] is None and s["outcome"] == "ok"]),
    ):
        if lack:
            yield f"{what} of {'all' if len(lack) == len(among) else len(lack)}"


def _route(route: Route) -> list[str]:
    return [
        route.name,
        route.format,
        _grade(iter(route.grades)),
        "; ".join(route.lost) or "nothing",
        "; ".join(dict.fromkeys(advice for advice in route.advice if advice)) or "—",
    ]


def _hand(one: dict[str, Any]) -> list[str]:
    source = one["made"].removeprefix("by hand from ")
    return [f"{one['framework']} {one['version']}", source, _dialects(one), _grade(run["grade"] for run in one["runs"])]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
