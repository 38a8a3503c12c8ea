"""Commands of several processes, runs asked for by their id, and processes that were gone before their run had ended."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acceptance.commands import Desk
from support.size import FULL, first_of

AGENT = Path(__file__).parent / "one_of_several.py"
NESTING = Path(__file__).parent / "nesting.py"


def one(how: str, question: str) -> list[str]:
    return [sys.executable, str(AGENT), how, question]


def several(how: str, *questions: str, between: str = "; ") -> list[str]:
    return ["sh", "-c", between.join(shlex.join(one(how, q)) for q in questions)]


@pytest.fixture(scope="module")
def desk_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Desk]:
    made: dict[str, Desk] = {}

    def desk(how: str) -> Desk:
        if how not in made:
            made[how] = Desk.laid_out(tmp_path_factory.mktemp(how))
            done = made[how].record(several(how, "1", "2"))
            assert done.code == 0, str(done)
        return made[how]

    return desk


def found(desk: Desk, command: list[str], target: str = "last") -> tuple[int, list[tuple[Any, ...]]]:
    """The exit code, and kind, step and actual value of each difference."""
    done = desk.replay(command, "--json", target=target)
    replay = json.loads(done.out)["replay"]
    assert replay["exit_code"] == done.code
    return done.code, [(d["kind"], d["step"], d["actual"]) for d in replay["differences"]]


@pytest.mark.parametrize("how", first_of("untold", "told", "bare"))
def test_each_process_is_answered_by_its_own(desk_of: Callable[[str], Desk], how: str) -> None:
    desk = desk_of(how)
    if FULL:
        assert found(desk, several(how, "1", "2")) == (0, [])
    assert found(desk, several(how, "2", "1")) == (0, [])
    assert found(desk, ["sh", "-c", f"{shlex.join(one(how, '1'))} & {shlex.join(one(how, '2'))}; wait"]) == (0, [])
    code, differences = found(desk, several(how, "1", "2", "2"))
    assert (code, [d[0] for d in differences]) == (1, ["never_recorded"])
    code, differences = found(desk, several(how, "1", "3"))
    assert (code, [(d[0], d[2]) for d in differences]) == (1, [("input", '"3"')])
    if FULL:
        code, differences = found(desk, one(how, "2"))
        assert (code, {d[0] for d in differences}) == (1, {"unreached"})


@pytest.mark.parametrize("how", first_of("told", "untold"))
def test_a_run_asked_for_by_its_id_is_the_one_that_is_compared(desk_of: Callable[[str], Desk], how: str) -> None:
    desk = desk_of(how)
    runs = json.loads(desk.spanreplay("runs", "--json").out)["runs"]
    ids = {json.loads(desk.spanreplay("replay", r["run_id"], "--json").out)["runs"][0]["output"]: r["run_id"] for r in runs}
    for question in "12" if FULL else "2":
        run_id = ids[f"{question}!"][:12]
        assert found(desk, one(how, question), run_id) == (0, [])
        assert found(desk, several(how, "1", "2"), run_id) == (0, [])
        code, differences = found(desk, one(how, "9"), run_id)
        assert (code, [(d[0], d[2]) for d in differences]) == (1, [("input", '"9"')])
    file = desk.root / "both.json"
    assert desk.spanreplay("export", "last", "-o", file).code == 0
    assert found(desk, one(how, "2"), f"{file}#{ids['2!']}") == (0, [])
    assert found(desk, several(how, "1", "2"), str(file)) == (0, [])
    assert found(desk, one(how, "2"), str(file))[0] == 1
    other = desk.replay(one(how, "1"), target=ids["2!"])
    assert other.code == 1, str(other)
    assert f"recorded in run {ids['2!'][:12]}, to which the command did not come" in other.out


def test_a_run_whose_record_has_no_end_cannot_be_judged_equal(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk")
    assert desk.record(one("gone", "1")).code == 0
    for how in ("gone", "untold"):
        done = desk.replay(one(how, "1"))
        assert done.code == 125, str(done)
        assert "is cut short at step 1" in done.err
    assert desk.replay(one("gone", "2")).code == 1
    assert desk.record(one("gone-after", "1")).code == 0  # that run had ended
    assert desk.replay(one("gone-after", "1")).code == 0


def test_what_a_refusal_keeps_from_being_reached_is_no_difference(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk")
    assert desk.record(one("acts", "1")).code == 0
    done = desk.replay(one("acts", "1"), "--json")
    assert done.code == 4, str(done)
    replay = json.loads(done.out)["replay"]
    assert (len(replay["refusals"]), replay["differences"]) == (1, [])
    assert [u["step"] for u in replay["steps"]["unreached"]] == [2]


def test_calls_of_programs_that_were_started_in_steps_of_others_are_those_of_the_program(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk")
    command = [sys.executable, str(NESTING), "0", "w"]
    recorded = desk.record(command)
    assert recorded.code == 0, str(recorded)
    for _ in range(10 if FULL else 2):
        assert found(desk, command) == (0, [])
    code, differences = found(desk, [sys.executable, str(NESTING), "0", "v"])
    assert (code, [kind for kind, _, _ in differences]) == (1, ["input"])
