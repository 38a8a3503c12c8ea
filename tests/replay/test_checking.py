"""What a check gives, and what becomes of it."""

from pathlib import Path
from typing import Any

import pytest

from fixtures.runs.spans import chat
from spanreplay.replay.checking import Check, NoCheck, judge, load_check
from spanreplay.replay.rebuilding.runs import build_runs


def check(function: Any, *, of_steps: bool = False) -> Check:
    return Check(name="it", function=function, of_steps=of_steps)


@pytest.mark.parametrize(
    ("given", "at_least", "ended", "score"),
    [
        (None, None, "passed", None),
        (True, None, "passed", None),
        (False, None, "failed", None),
        (0.5, None, "passed", 0.5),
        (0.5, 0.8, "failed", 0.5),
        (1, 0.8, "passed", 1.0),
        ({"score": 0.9, "passed": False, "detail": "no"}, 0.8, "failed", 0.9),
        ({}, None, "passed", None),
        (float("nan"), None, "error", None),
        ("yes", None, "error", None),
        (True, 0.8, "passed", None),
        (None, 0.8, "passed", None),
        ([], None, "error", None),
        (4, None, "passed", 4.0),
        (4, 0.8, "error", None),
        (-1, 0.8, "error", None),
    ],
)
def test_what_a_check_gives(given: object, at_least: float | None, ended: str, score: float | None) -> None:
    (run,) = build_runs([chat(1)])
    found = judge(check(lambda _: given), run, at_least=at_least)
    assert (found.ended, found.score) == (ended, score), found.detail


def test_what_a_check_raises_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "helping.py").write_text("LIMIT = 0\n")
    file = tmp_path / "checks.py"
    file.write_text(
        "from helping import LIMIT\n\ndef few(steps):\n    assert len(steps) <= LIMIT\n\n"
        "def said(run):\n    assert run.steps == (), 'too many'\n\ndef broken(run):\n    return run.nothing\n"
    )
    (run,) = build_runs([chat(1)])
    few = judge(load_check(f"{file}:few"), run)
    assert (few.ended, few.detail, few.where) == ("failed", "assert len(steps) <= LIMIT", f"{file}:4")
    assert judge(load_check(f"{file}:said"), run).detail == "too many"
    broken = judge(load_check(f"{file}:broken"), run)
    assert (broken.ended, broken.where) == ("error", f"{file}:10")
    bare = judge(check(lambda run: False), run)
    assert (bare.detail, str(bare.where).startswith(f"{__file__}:")) == ("the check gave False", True)
    case = few.case()
    assert (case.group, case.ended, case.where, case.properties["run"]) == ("few", "failed", f"{file}:4", run.run_id)


@pytest.mark.parametrize("raised", [SystemExit(0), GeneratorExit(), BaseExceptionGroup("both", [SystemExit(0)])])
def test_a_check_that_exits_has_judged_nothing(raised: BaseException, tmp_path: Path) -> None:
    def leaves(run: object) -> None:
        raise raised

    (run,) = build_runs([chat(1)])
    found = judge(check(leaves), run)
    assert (found.ended, found.detail.startswith(type(raised).__name__)) == ("error", True)
    file = tmp_path / "leaving.py"
    file.write_text("raise SystemExit(0)\n")
    with pytest.raises(NoCheck, match="fails: SystemExit"):
        load_check(f"{file}:f")


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("checks.py", "wanted FILE.py:FUNCTION"),
        ("os:system", "wanted FILE.py"),
        ("none.py:f", "there is no file"),
        ("{}:g", "no function g"),
    ],
)
def test_a_check_that_is_none(tmp_path: Path, reference: str, says: str) -> None:
    file = tmp_path / "c.py"
    file.write_text("f = 1\n")
    with pytest.raises(NoCheck, match=says):
        load_check(reference.format(file))
    file.write_text("1 / 0\n")
    with pytest.raises(NoCheck, match="ZeroDivisionError"):
        load_check(f"{file}:f")
