"""A replay tells the recorded time."""

import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
import time_machine

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.clock import RecordedClock
from support.taped import recorded, replayed


@tool
def ask(prompt: str) -> str:
    return "answer"


def agent() -> list[str]:
    with agent_run("dated"):
        said = [ask(f"Today is {date.today()}."), ask(f"It is {datetime.now(UTC):%Y-%m-%d %H}.")]
        return [*said, time.strftime("%Y", time.gmtime())]


def test_a_prompt_with_the_date_is_equal_on_another_day() -> None:
    with time_machine.travel("2020-02-02 12:30:00Z", tick=True):
        tape = recorded(agent)
    now = time.time()
    result = replayed(tape, agent)
    assert (result.equal, result.value) == (True, ["answer", "answer", "2020"])
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
    for clock in (RecordedClock(()), RecordedClock([replace(run, started_ns=0)]), RecordedClock([replace(run, started_ns=2**63)])):
        clock.start()
        clock.reached(10**18)
        clock.reached(None)
        assert datetime.now(UTC).year >= 2026
        clock.stop()


def test_it_brings_no_pytest_into_the_agent() -> None:
    found = "'pytest' in sys.modules, 'time_machine' in sys.modules"
    told = f"import sys; from spanreplay.replay.reexecution import clock; clock.travelling(); print({found})"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
