"""What a program reads of the clock is kept with its steps, in order, by who reads it."""

import asyncio
import datetime as dt
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType
from typing import Any

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.boundary.clock_reads import MOST_OF_ONE, ClockReads, decoded, taken
from spanreplay.boundary.scope import current_scope
from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.shims import clock
from spanreplay.semconv import attributes as names
from support.taped import Tape, recording

readers = st.tuples(st.text(max_size=5), st.text(max_size=5), st.text(min_size=1, max_size=5))


@tool(effect="read")
def ask(text: str) -> str:
    return f"{time.time()} {text}"


@contextmanager
def watched() -> Iterator[Tape]:
    """What is recorded in this block is so with what it reads of the clock."""
    with recording() as tape:
        scope = current_scope()
        assert scope is not None
        clock.install(scope.session)
        try:
            yield tape
        finally:
            clock.uninstall()


def reads(tape: Tape) -> list[tuple[str, str, int]]:
    """(scope, function, how many), of all steps."""
    texts = [step[name] for step in tape.steps for name in (names.STEP_CLOCK, names.RUN_CLOCK) if name in step]
    return [(scope, function, len(times)) for text in texts for (_, scope, function), times in decoded(text)]


@given(st.lists(st.tuples(readers, st.integers(min_value=0, max_value=2**62))))
def test_what_is_kept_is_read_again(made: list[tuple[tuple[str, str, str], int]]) -> None:
    kept = ClockReads()
    for reader, ns in made:
        kept.add(reader, ns)
    assert bool(kept) == bool(made)
    found = dict(decoded(kept.take()))
    assert found == {reader: [ns for other, ns in made if other == reader] for reader, _ in made}
    assert not kept


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=6), max_leaves=20))
def test_what_others_wrote_there_is_left_out(value: Any) -> None:
    list(decoded(json.dumps([value])))
    list(decoded(str(value)))


def test_a_loop_that_waits_for_a_time_is_not_kept_for_ever() -> None:
    kept = ClockReads()
    for ns in range(MOST_OF_ONE + 10):
        kept.add(("", "", "loop"), ns)
    ((_, times),) = decoded(kept.take())
    assert times == list(range(MOST_OF_ONE))


def test_each_reader_has_its_own_reads() -> None:
    async def part() -> None:
        dt.datetime.now(dt.UTC)
        await asyncio.sleep(0)
        ask("part")

    async def parts() -> None:
        time.time_ns()
        await asyncio.gather(part(), part())

    with watched() as tape, agent_run("dated"):
        dt.date.today()
        time.time()
        ask("first")
        logging.getLogger("quiet").warning("the standard library reads the clock too")
        asyncio.run(parts())
        time.strftime("%Y")
    me = "test_clock_reads.py:test_each_reader_has_its_own_reads"
    inner = f"{me}.<locals>.part"
    assert {(function, number) for _, function, number in reads(tape)} == {(me, 2), (inner, 1), (f"{me}.<locals>.parts", 1), (me, 1)}
    assert len({scope for scope, function, _ in reads(tape) if function == inner}) == 2
    assert names.RUN_CLOCK in tape.steps[0], "read after the last step"


def test_the_times_are_real_and_the_builtins_stay_what_they_are() -> None:
    before = time.time_ns()
    with watched() as tape, agent_run("dated"):
        told = [time.time_ns(), int(time.time() * 1e9), int(dt.datetime.now().timestamp() * 1e9)]
        assert isinstance(time.time, BuiltinFunctionType)
        ask("it")
    assert all(abs(one - before) < 60e9 for one in told)
    (text,) = (step[names.STEP_CLOCK] for step in tape.steps if names.STEP_CLOCK in step)
    ((_, kept),) = decoded(text)
    assert kept[0] == told[0]
    assert abs(kept[1] - told[1]) < 1000


def test_a_program_that_reads_and_reads_is_watched_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "MOST", 5)
    with watched() as tape, agent_run("waits"):
        for _ in range(10):
            time.time()
        assert not clock.travelling().escape_hatch.is_travelling()
        ask("it")
    assert [number for *_, number in reads(tape)] == [5]


def test_a_program_that_tells_itself_a_time_is_left_alone() -> None:
    with time_machine.travel("2020-02-02", tick=False), watched() as tape, agent_run("frozen"):
        assert dt.date.today().year == 2020
        ask("it")
    assert reads(tape) == []
    with watched() as tape, agent_run("freezes"):
        with time_machine.travel("2020-02-02", tick=False):
            assert dt.date.today().year == 2020
            ask("it")
    assert reads(tape) == []
    began = [dt.datetime.fromtimestamp(step.start_ns / 1e9, dt.UTC).year for step in tape.starts]
    assert began == [dt.datetime.now(dt.UTC).year, 2020], "the program's own time is that of its steps"


def test_threads_lose_nothing() -> None:
    def read() -> None:
        for _ in range(200):
            time.time()

    with watched() as tape, agent_run("threads"):
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            ask("it")
        for thread in threads:
            thread.join()
    by_scope: dict[str, int] = {}
    for scope, _, number in reads(tape):
        by_scope[scope] = by_scope.get(scope, 0) + number
    assert sorted(by_scope.values()) == [200] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_copy_of_the_process_does_not_keep_it_twice() -> None:
    with watched() as tape, agent_run("forks"):
        time.time()
        pid = os.fork()
        if pid == 0:
            ask("in the copy")
            os._exit(len(reads(tape)))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        ask("it")
    assert len(reads(tape)) == 1


def test_it_brings_no_pytest_into_the_agent() -> None:
    found = "'pytest' in sys.modules, 'time_machine' in sys.modules"
    told = f"import sys; from spanreplay.instrumentation.shims import clock; clock.travelling(); print({found})"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_what_a_coarse_clock_said_again_is_kept_again() -> None:
    reads, reader = ClockReads(), ("", "", "agent.py:main")
    texts = []
    for _ in range(3):
        reads.add(reader, 5)
        texts.append(reads.take())
    assert len(set(texts)) == 3
    assert [list(decoded(text)) for text in texts] == [[(reader, [5])]] * 3


class Shared(deque[Any]):
    """Another thread takes everything between the look at the length and the first item."""

    def __len__(self) -> int:
        return super().__len__() + 1


def test_what_another_thread_has_taken_meanwhile_is_no_fault() -> None:
    assert list(taken(Shared([1, 2]))) == [1, 2]
    assert list(taken(Shared())) == []
