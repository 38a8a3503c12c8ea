"""The ledger: every entry counts, across processes and cut lines; the result comes from it alone."""

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.ledger import Difference, DifferenceKind, Ledger, Totals, cut_short, expected_runs, read_ledgers
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.uncalled import enter_unreached
from spanreplay.replay.reexecution.verdict import verdict
from support.handmade import run, step


def difference(kind: DifferenceKind = "input", step: int | None = 1) -> Difference:
    return Difference(kind=kind, run_id="r", step=step, name="tool_call t", field="arguments.x", recorded="1", actual="\ud800")


def test_ledgers_of_several_processes_add_up(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ledger = Ledger(tmp_path / f"{name}.ledger")
        ledger.enter("started", isolation="level 1")
        ledger.enter("used", run="r", step=1 if name == "a" else 2, by="input")
        ledger.enter("covered", run="r", steps=[5])
        ledger.enter("telemetry", count=2)
        ledger.enter("of a newer version", x=1)
        ledger.differ(difference())
    totals = read_ledgers(tmp_path)
    assert (totals.processes, totals.used, totals.covered, totals.telemetry_dropped, totals.by_input) == (
        2,
        {"r": {1, 2}},
        {"r": {5}},
        4,
        2,
    )
    assert totals.differences == [difference(), difference()]


def test_what_only_another_instrumentation_told_of_is_asked_of_no_replay_of_our_own_run() -> None:
    theirs = step(2, None, "{}", dialect="openinference", kind="model_call", process=None, seq_start=None, seq_end=None)
    mixed = run(step(1, "model_call:m#0", "{}"), theirs, path="agent:a#0")
    ledger = Ledger()
    ledger.enter("used", run="r", step=1)
    ledger.enter("run", run="r")
    enter_unreached([mixed], ledger)
    told = verdict(ledger.totals, [mixed])
    assert (told.differences, told.told_by_others, told.unreached) == ((), 1, ())
    assert not RecordedRun(mixed).by_meaning
    assert [s.seq for s in RecordedRun(mixed).steps] == [1]


@pytest.mark.parametrize("cut", [2, 10, 40])
def test_a_cut_last_line_is_left_out(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "a.ledger"
    ledger = Ledger(file)
    ledger.enter("started")
    ledger.differ(difference())
    file.write_bytes(file.read_bytes()[:-cut])
    totals = read_ledgers(tmp_path)
    assert totals.processes == 1
    assert totals.differences == []


def test_a_process_that_is_gone_at_once_loses_nothing(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        Ledger(tmp_path / "a.ledger").differ(difference())
        os._exit(0)
    os.waitpid(child, 0)
    assert read_ledgers(tmp_path).differences == [difference()]


def test_entries_of_many_threads_are_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger")

    def work(name: str) -> None:
        for number in range(50):
            ledger.enter("used", run=name, step=number)

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for line in (tmp_path / "a.ledger").read_text().splitlines():
        json.loads(line)
    assert read_ledgers(tmp_path).used == ledger.totals.used == {str(n): set(range(50)) for n in range(4)}


def test_an_entry_made_while_an_entry_is_made_does_not_wait_for_ever() -> None:
    ledger = Ledger()
    with ledger._lock:  # as the guard does, from the garbage collector
        ledger.enter("refused", action="write")
    assert len(ledger.totals.refusals) == 1


@pytest.mark.parametrize(
    ("processes", "kinds", "refused", "code"),
    [
        (1, [], 0, 0),
        (1, ["input"], 0, 1),
        (1, ["output", "unreached"], 0, 1),
        (1, ["not_replayable"], 0, 125),
        (0, [], 0, 125),
        (1, [], 1, 4),
        (1, ["input"], 1, 4),
        (0, [], 1, 4),
    ],
)
def test_exit_codes_come_from_the_ledger_alone(processes: int, kinds: list[DifferenceKind], refused: int, code: int) -> None:
    totals = Totals(processes=processes, differences=[difference(k) for k in kinds], refusals=[{}] * refused)
    found = verdict(totals, [])
    assert found.exit_code == code
    assert found.equal == (not kinds and not refused)
    json.dumps(found.to_json())


def one_step(run_id: str, process: str = "p", **changes: Any) -> Run:
    return run(step(1, "tool_call:t#0", "1", process=process), run_id=run_id, path="agent:a#0", **changes)


def test_where_one_run_was_asked_for_the_others_need_not_come() -> None:
    commands = run(step(1, "io:x#0", "1", process="p"), step(2, "io:x#0", "1", process="q"), run_id="c", is_command=True)
    runs = [commands, one_step("a"), one_step("b")]
    assert expected_runs(runs, Totals()) == runs
    assert [r.run_id for r in expected_runs(runs, Totals(), ["a"])] == ["a"]
    came = Totals(runs_matched={"b", "c"}, used={"c": {2}})
    assert [(r.run_id, [s.seq for s in r.steps]) for r in expected_runs(runs, came, ["a"])] == [("c", [2]), ("a", [1]), ("b", [1])]


@pytest.mark.parametrize(
    ("recorded", "cut"),
    [
        (one_step("a"), []),
        (one_step("a", grade="incomplete", ended_ns=None), [("a", 1)]),
        (one_step("a", dropped=2), [("a", 1)]),
        (run(run_id="a", grade="incomplete"), [("a", 0)]),
        (run(run_id="a", grade="incomplete", is_command=True), []),
        (run(step(1, "io:x#0", "1"), step(2, "io:x#1", "1", outcome="unknown"), step(3, "io:x#2", "1"), grade="incomplete"), [("r", 2)]),
    ],
)
def test_a_record_that_is_cut_short_cannot_be_judged_equal(recorded: Run, cut: list[tuple[str, int]]) -> None:
    assert cut_short([recorded]) == cut
    assert verdict(Totals(processes=1), [recorded]).exit_code == (125 if cut else 0)
    assert verdict(Totals(processes=1, differences=[difference()]), [recorded]).exit_code == 1
    assert verdict(Totals(processes=1, refusals=[{}]), [recorded]).exit_code == 4


def test_differences_are_told_in_the_order_of_the_record() -> None:
    totals = Totals(processes=1, differences=[difference("never_recorded", None), difference(step=7), difference(step=2)])
    assert [d.step for d in verdict(totals, []).differences] == [2, 7, None]


def test_a_difference_in_one_line() -> None:
    made = difference()
    assert made.summary() == "step 1, tool_call t: arguments.x differs: recorded 1, actual \ud800"
    assert Difference(**asdict(made)) == made
