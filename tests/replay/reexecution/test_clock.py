"""A replay tells the recorded time."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from types import BuiltinFunctionType
from typing import Any, TypeVar

import pytest
import time_machine

from spanreplay.boundary.clock_reads import ClockReads
from spanreplay.boundary.scope import current_scope, process
from spanreplay.instrumentation import agent_run, shims, tool
from spanreplay.instrumentation.shims import clock
from spanreplay.instrumentation.shims.clock import travelling
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.engine import Replayer, ReplayResult
from support.forking import Scene
from support.taped import recorded, replayed, told

T = TypeVar("T", str, int)


@tool
def ask(prompt: str) -> str:
    return "answer"


def watched(agent: Callable[[], list[T]]) -> list[T]:
    """What an agent gives whose reads of the clock are kept."""
    scope = current_scope()
    assert scope is not None
    clock.install(scope.session)
    try:
        return agent()
    finally:
        clock.uninstall()


def agent() -> list[str]:
    with agent_run("dated"):
        said = [ask(f"Today is {date.today()}."), ask(f"It is {datetime.now(UTC):%Y-%m-%d %H}.")]
        return [*said, time.strftime("%Y", time.gmtime()), time.ctime()[-4:], time.asctime()[-4:]]


def test_a_prompt_with_the_date_is_equal_on_another_day() -> None:
    with time_machine.travel("2020-02-02 12:30:00Z", tick=True):
        tape = recorded(agent)
    now = time.time()
    result = replayed(tape, agent)
    assert (result.equal, result.value) == (True, ["answer", "answer", "2020", "2020", "2020"])
    assert isinstance(time.ctime, BuiltinFunctionType)
    assert 0 <= time.time() - now < 3600, "the clock is real again"


def test_local_time_is_that_of_the_agents_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    def local() -> str:
        with agent_run("local"):
            ask(f"It is {datetime.now():%H:%M}.")
            return f"{datetime.now():%d %H} {time.strftime('%H')} {time.tzname[0]}"

    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        with time_machine.travel(datetime(2020, 2, 2, 20, 30, tzinfo=UTC).timestamp(), tick=True):
            tape = recorded(local)
        result = replayed(tape, local)
        assert (result.equal, result.value) == (True, "03 05 05 JST")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_clock_goes_on_with_the_steps_and_never_back() -> None:
    seen: list[float] = []

    def slow() -> None:
        with agent_run("slow"):
            ask("one")
            seen.append(time.time())
            ask("two")
            seen.append(time.time())

    with time_machine.travel("2020-02-02 12:30:00Z", tick=True):
        tape = recorded(slow)
    (run,) = (run for run in tape.runs() if run.steps)
    first, second = run.steps
    hour = 3600 * 10**9
    seen.clear()
    later = replace(run, steps=(replace(first, ended_ns=first.started_ns + 5 * hour), replace(second, ended_ns=first.started_ns + hour)))
    assert replayed([later], slow).equal
    after_first, after_second = (round((at - run.started_ns / 1e9) / 3600, 2) for at in seen)
    assert (after_first, after_second) == (5.0, 5.0)


def test_a_record_without_times_leaves_the_clock_alone() -> None:
    run: Any = recorded(agent).runs()[-1]
    for at in (RecordedClock(()), RecordedClock([replace(run, started_ns=0)]), RecordedClock([replace(run, started_ns=2**63)])):
        at.start()
        at.reached(10**18)
        at.reached(None)
        assert datetime.now(UTC).year >= 2026
        at.stop()


def test_what_a_program_read_is_told_again_to_the_nanosecond() -> None:
    async def part(number: int) -> str:
        await asyncio.sleep(0)
        return ask(f"{number}: {time.time_ns()}")

    async def parts() -> list[str]:
        return [ask(f"{datetime.now(UTC).isoformat()} {time.time()}"), *await asyncio.gather(*map(part, range(4)))]

    def agent() -> list[str]:
        with agent_run("exact") as run:
            texts = [time.ctime(), time.asctime(), time.ctime(None), time.ctime(0), time.asctime(time.gmtime(0))]
            run.output = [*asyncio.run(parts()), f"{time.time_ns()}", datetime.now().isoformat(), f"{date.today()}", *texts]
            return list(run.output)

    values: list[list[str]] = []
    tape = recorded(lambda: values.append(watched(agent)))
    for _ in range(3):
        result = replayed(tape, agent)
        assert (told(result), result.value) == ([], values[0])


def test_a_fork_tells_the_real_time_and_keeps_what_it_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool(effect="read")
    def look(text: str) -> str:
        return text.partition(" ")[0]

    def agent() -> list[int]:
        with agent_run("twice") as run:
            times = []
            for number in range(3):
                times.append(time.time_ns())
                look(f"{number} {times[-1]} {datetime.now(UTC).isoformat()}" if number else "0 as recorded")
            run.output = [*times, time.time_ns()]
            return list(run.output)

    with time_machine.travel("2020-02-02 12:30:00Z", tick=True):
        scene = Scene(agent, monkeypatch)
    result = scene.fork(at=2)
    years = [datetime.fromtimestamp(ns / 1e9, UTC).year for ns in result.value]
    assert years == [2020, 2020, *[datetime.now(UTC).year] * 2]
    again = replayed([scene.made(result)], agent)
    assert (told(again), again.value) == ([], result.value)


@pytest.mark.parametrize("path", [None, "agent:more#7"])
def test_reads_that_the_record_lacks_go_on_from_those_that_it_has(path: str | None) -> None:
    def agent(more: int) -> list[int]:
        with agent_run("more"):
            ask("it")
            return [time.time_ns() for _ in range(more)]

    run: Any = recorded(agent, 0).runs()[-1]
    hour = 3600 * 10**9
    times = [run.started_ns + 2 * hour, run.started_ns + 2 * hour + 17]
    reads = ClockReads()
    function = "test_reads_that_the_record_lacks_go_on_from_those_that_it_has.<locals>.agent"
    for ns in times:
        reads.add((path or run.path, "", f"test_clock.py:{function}"), ns)
    result = replayed([replace(run, clock_reads=(reads.take(), "not of ours"))], lambda: agent(4))
    assert result.equal
    assert result.value[:2] == times
    assert times[1] <= result.value[2] <= result.value[3] < times[1] + hour


def test_replays_in_threads_of_one_process_are_each_told_their_own_times() -> None:
    def agent(meet: Callable[[], object] = int) -> list[int]:
        times: list[int] = []
        with agent_run("threads"):
            for number in range(4):
                meet()
                times.append(time.time_ns())
                ask(f"{number} {times[-1]}")
        return times

    def replay(number: int) -> None:
        results[number] = Replayer(tapes[number].runs(), guard=False).replay(agent, together.wait)

    wanted: list[list[int]] = []
    tapes = [recorded(lambda: wanted.append(watched(agent))) for _ in range(3)]
    together, results = threading.Barrier(3, timeout=60), dict[int, ReplayResult]()
    active = process.active
    threads = [threading.Thread(target=replay, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process.active = active
    shims.uninstall()
    assert [results[number].value for number in range(3)] == wanted
    assert all(results[number].equal for number in range(3))
    assert not travelling().traveller_stack
