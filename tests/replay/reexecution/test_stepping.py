"""Wherever an agent is stopped, or the comparison begins, what lies outside does not count; with tasks, threads and sub-agents."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanreplay.boundary.scope import process
from spanreplay.boundary.session import RunContext, entered
from spanreplay.instrumentation import shims
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.answering import prepared
from spanreplay.replay.reexecution.engine import stopped_by_replay
from spanreplay.replay.reexecution.ledger import Difference, Ledger
from spanreplay.replay.reexecution.options import STRICT
from spanreplay.replay.reexecution.stepping import WHOLE, Stepper, Stepping, window
from spanreplay.replay.reexecution.uncalled import enter_unreached
from support.size import FULL
from support.small_agents import Parallel, Plan, Small, Sub, Tool, plans
from support.taped import recorded, run


def runs_of(plan: Plan) -> list[Run]:
    tape = recorded(Small(plan, random.Random(1)).run)
    return [one for one in tape.runs() if one.steps]


def stepped(runs: list[Run], plan: Plan, stepping: Stepping, said: list[str] | None = None, *, go_on: bool = True) -> tuple[Ledger, bool]:
    """What replaying with a stepper entered, and whether the agent was stopped."""
    ledger = Ledger()
    made = prepared(runs, ledger, options=STRICT)

    def debug(what: str, leave: Callable[[], NoReturn]) -> None:
        if said is not None:
            said.append(what)
        if not go_on:
            leave()

    session = made.session
    session.interceptors = (
        Stepper(made.interceptor, stepping, runs, focus=[runs[0].run_id], ledger=ledger, on_enough=lambda: None, debug=debug),
    )
    session.foresees = None
    active = process.active
    shims.install()
    stopped = False
    try:
        with entered(session.root(RunContext(run_id="replay", name="replay", fallback=True))):
            try:
                run(Small(plan, random.Random(2)).run)
            except BaseException as error:
                if not stopped_by_replay(error):
                    raise
                stopped = True
    finally:
        process.active = active
        shims.uninstall()
    return ledger, stopped


def judged(runs: list[Run], ledger: Ledger, stepping: Stepping) -> list[tuple[str, int | None]]:
    part = window(runs, ledger.totals, stepping, [runs[0].run_id])
    enter_unreached(part, ledger)
    return [(d.kind, d.step) for d in ledger.totals.differences]


SIMPLE: Plan = (
    Tool(1, "a", 1),
    Parallel(2, ((Tool(3, "a", 1), Tool(4, "b", 2)), (Tool(5, "a", 1),)), "gather"),
    Sub(6, "s", (Tool(7, "b", 1),)),
    Parallel(8, ((Tool(9, "a", 3),), (Tool(10, "a", 3),)), "threads"),
)


@given(plan=plans(depth=1), data=st.data())
@settings(max_examples=60 if FULL else 8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_agent_stopped_anywhere_is_equal_up_to_there(plan: Plan, data: st.DataObject) -> None:
    runs = runs_of(plan)
    until = data.draw(st.integers(1, len(runs[0].steps)))
    stepping = Stepping(until=until)
    ledger, _ = stepped(runs, plan, stepping)
    assert judged(runs, ledger, stepping) == []
    assert sum(len(steps) for steps in ledger.totals.used.values()) <= until


def test_every_step_can_be_the_last() -> None:
    runs = runs_of(SIMPLE)
    last = len(runs[0].steps)
    for until in range(1, last + 1):
        stepping = Stepping(until=until)
        ledger, stopped = stepped(runs, SIMPLE, stepping)
        assert (judged(runs, ledger, stepping), stopped, ledger.totals.enough) == ([], until < last, until if until < last else None)


def test_a_difference_up_to_there_counts_and_a_later_one_is_not_met() -> None:
    runs = runs_of(SIMPLE)
    other = (*SIMPLE[:2], Sub(6, "s", (Tool(7, "b", 2),)), SIMPLE[3])
    number = next(s.seq for s in runs[0].steps if s.kind == "tool_call" and s.name == "b" and s.parent_seq is not None)
    for until, found in ((number - 1, []), (number, [("input", number)])):
        stepping = Stepping(until=until)
        ledger, _ = stepped(runs, other, stepping)
        assert judged(runs, ledger, stepping) == found


def test_the_debugger_is_opened_once_and_may_end_it() -> None:
    runs = runs_of(SIMPLE)
    said: list[str] = []
    ledger, stopped = stepped(runs, SIMPLE, Stepping(break_at=2), said)
    assert (said, stopped, judged(runs, ledger, Stepping(break_at=2))) == (["before step 2, model_call m, is answered"], False, [])
    ledger, stopped = stepped(runs, SIMPLE, Stepping(break_at=2), go_on=False)
    assert (stopped, ledger.totals.enough, judged(runs, ledger, Stepping(break_at=2))) == (True, 1, [])


def test_the_debugger_is_opened_where_the_step_differs() -> None:
    runs = runs_of(SIMPLE)
    said: list[str] = []
    with suppress(BaseException):
        stepped(runs, (Tool(1, "a", 2), *SIMPLE[1:]), Stepping(break_at=1), said)
    assert len(said) == 1
    assert said[0].startswith("at step 1, which differs: step 1, tool_call a: arguments.x differs")


def test_the_window_takes_what_lies_outside_out_of_the_totals() -> None:
    runs = runs_of(SIMPLE)
    (first, *_) = runs
    ledger = Ledger()
    ledger.totals.used = {first.run_id: {1, 2, 3}, "other": {1}}
    for kind, step in (("input", None), ("input", 1), ("output", 2), ("never_recorded", None)):
        ledger.differ(Difference(kind=kind, run_id=first.run_id, step=step, name="it"))  # type: ignore[arg-type]
    part = window(runs, ledger.totals, Stepping(since=2, until=2), [first.run_id])
    assert [s.seq for s in part[0].steps] == [2]
    assert ledger.totals.used == {first.run_id: {2}, "other": {1}}
    assert [(d.kind, d.step) for d in ledger.totals.differences] == [("output", 2), ("never_recorded", None)]
    assert not WHOLE
    assert Stepping.from_json(Stepping(since=2, until=3, break_at=2).to_json()) == Stepping(since=2, until=3, break_at=2)


def test_what_was_told_before_the_window_is_told_in_it() -> None:
    runs = runs_of(SIMPLE)
    ledger = Ledger()
    for step, same_as in ((1, None), (2, 1), (3, 1)):
        ledger.differ(Difference(kind="input", run_id=runs[0].run_id, step=step, name="it", field="x", same_as=same_as))
    window(runs, ledger.totals, Stepping(since=2), [runs[0].run_id])
    assert [(d.step, d.same_as) for d in ledger.totals.differences] == [(2, None), (3, 2)]


@pytest.mark.parametrize(("stopped", "left"), [(2, [("r", 2), ("came", 1)]), (None, [("r", 2), ("came", 3), ("never", 3)])])
def test_other_runs_are_judged_as_far_as_they_came(stopped: int | None, left: list[tuple[str, int]]) -> None:
    (first, *_) = runs_of(SIMPLE)
    runs = [replace(first, run_id=name, steps=first.steps[:3]) for name in ("r", "came", "never")]
    ledger = Ledger()
    ledger.totals.enough, ledger.totals.used = stopped, {"r": {1, 2}, "came": {2}}
    part = window(runs, ledger.totals, Stepping(until=2), ["r"])
    assert [(run.run_id, len(run.steps)) for run in part] == left


@pytest.mark.parametrize("stepping", [Stepping(since=2), Stepping(until=1), Stepping(break_at=3)])
def test_less_than_the_whole_run_is_something(stepping: Stepping) -> None:
    assert stepping
