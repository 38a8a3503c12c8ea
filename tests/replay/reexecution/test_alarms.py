"""An alarm that ended a loop when it was recorded ends it at the same call of a replay, however fast that is."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spanreplay.boundary.errors import ControlSignal
from spanreplay.instrumentation import agent_run, tool
from support.taped import Tape, recorded, replayed, told

LONG_S = 60.0
recording = True
asked = ""

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms here")


@tool(effect="read")
def poll(what: object) -> str:
    return "pending"


def limit(number: int, frame: object) -> None:
    raise TimeoutError("that took too long")


@pytest.fixture(autouse=True)
def _alarms_as_they_were() -> Iterator[None]:
    handler, (left, each) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, left, each)


def goes_on(name: str) -> int:
    """Calls without end; while it is recorded the alarm comes after three."""
    number = 0
    while True:
        poll(f"{name} {number}{asked}")
        number += 1
        if recording and number == 3:
            signal.raise_signal(signal.SIGALRM)


def in_time(act: Callable[[], Any]) -> Any:
    before = signal.signal(signal.SIGALRM, limit)
    signal.setitimer(signal.ITIMER_REAL, LONG_S)
    try:
        return act()
    except TimeoutError as error:
        return poll(str(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def once() -> str:
    return str(in_time(lambda: goes_on("once")))


def one_after_the_other() -> list[str]:
    return [str(in_time(lambda: poll("in time"))), *(str(in_time(lambda name=name: goes_on(name))) for name in ("a", "b"))]  # type: ignore[misc]


def by_whole_seconds() -> str:
    before = signal.signal(signal.SIGALRM, limit)
    signal.alarm(int(LONG_S))
    try:
        return f"{goes_on('seconds')}"
    except TimeoutError:
        return poll("late")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


FORMS = [once, one_after_the_other, by_whole_seconds]


def agent(form: Callable[[], Any]) -> Callable[[], None]:
    def main() -> None:
        with agent_run("agent") as run:
            run.output = form()

    return main


def record(form: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Tape:
    monkeypatch.setattr(f"{__name__}.recording", True)
    tape = recorded(agent(form))
    monkeypatch.setattr(f"{__name__}.recording", False)
    return tape


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_an_alarm_that_came_between_calls_comes_there_again(form: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(form, monkeypatch)
    result = replayed(tape, agent(form))
    assert told(result) == []
    assert (result.verdict.matched, result.verdict.recorded) == (len(tape.paths) - 1,) * 2


def test_a_call_that_differs_before_the_alarm_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(once, monkeypatch)
    monkeypatch.setattr(f"{__name__}.asked", "!")
    assert [(kind, field) for kind, _, _, field in told(replayed(tape, agent(once)))] == [("input", "arguments.what")]


def test_a_call_more_without_an_alarm_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def another() -> object:
        return in_time(lambda: [poll(number) for number in range(3 if recording else 4)])

    tape = record(another, monkeypatch)
    assert [kind for kind, *_ in told(replayed(tape, agent(another)))] == ["never_recorded"]


def test_an_alarm_that_did_not_come_does_not_come_because_a_replay_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_the_end() -> object:
        def act() -> list[str]:
            made = [poll(1)]
            if not recording:
                signal.raise_signal(signal.SIGALRM)
            return [*made, poll(2)]

        return in_time(act)

    tape = record(in_the_end, monkeypatch)
    assert told(replayed(tape, agent(in_the_end))) == []


def test_what_other_threads_call_brings_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside() -> object:
        def look() -> None:
            with contextlib.suppress(ControlSignal):
                poll("first" if recording else "other")

        def act() -> None:
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            if recording:
                signal.raise_signal(signal.SIGALRM)

        return in_time(act)

    tape = record(beside, monkeypatch)
    assert [kind for kind, *_ in told(replayed(tape, agent(beside)))] == ["input"]


def test_the_program_sees_its_own_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> None:
        before = signal.signal(signal.SIGALRM, limit)
        assert signal.getsignal(signal.SIGALRM) is limit
        assert signal.signal(signal.SIGALRM, signal.SIG_IGN) is limit
        assert signal.signal(signal.SIGALRM, before) is signal.SIG_IGN

    record(looks, monkeypatch)
