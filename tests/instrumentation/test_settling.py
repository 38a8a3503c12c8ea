"""Calls that an event loop begins side by side wait for the disk once, each before its body runs."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call, Effect, StepStarted
from spanreplay.boundary.settling import Settling
from support.taped import Tape, recording


class Disk(Tape):
    """Tells what came when: ``begun``, ``begun, waited for``, ``settled``."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def started(self, step: StepStarted) -> None:
        self.seen.append("begun, waited for" if step.intent else "begun")
        super().started(step)

    def settle(self) -> None:
        self.seen.append("settled")


async def act(seen: list[str], effect: Effect) -> None:
    async def body() -> None:
        seen.append("body")

    scope = boundary.here()
    assert scope is not None
    await boundary.acall(scope, Call(kind="tool_call", name="act", effect=effect), body)


def seen_in(run: Callable[[list[str]], Coroutine[Any, Any, None]]) -> tuple[list[str], Disk]:
    disk = Disk()
    with recording(disk):
        asyncio.run(run(disk.seen))
    return disk.seen, disk


def test_calls_side_by_side_wait_once() -> None:
    async def run(seen: list[str]) -> None:
        await asyncio.gather(*(act(seen, "unknown") for _ in range(3)))
        await act(seen, "write")

    seen, disk = seen_in(run)
    assert seen == ["begun"] * 3 + ["settled"] + ["body"] * 3 + ["begun", "settled", "body"]
    assert disk.outcomes == ["ok"] * 4


def test_one_that_reads_does_not_wait() -> None:
    seen, _ = seen_in(lambda seen: act(seen, "read"))
    assert seen == ["begun", "body"]


def test_one_that_is_cancelled_while_it_waits_never_runs_and_the_others_do() -> None:
    async def run(seen: list[str]) -> None:
        tasks = [asyncio.create_task(act(seen, "unknown")) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.wait(tasks)

    seen, disk = seen_in(run)
    assert seen == ["begun", "begun", "settled", "body"]
    assert disk.outcomes == ["cancelled", "ok"]


def test_a_call_without_a_loop_waits_before_it_begins() -> None:
    disk = Disk()
    with recording(disk):
        scope = boundary.here()
        assert scope is not None
        boundary.call(scope, Call(kind="tool_call", name="act", effect="write"), lambda: disk.seen.append("body"))
    assert disk.seen == ["begun, waited for", "body"]


def test_in_another_kind_of_loop_it_settles_at_once() -> None:
    settled: list[int] = []
    waiting = Settling(lambda: settled.append(1)).wait()
    with pytest.raises(StopIteration):
        waiting.send(None)
    assert settled == [1]
