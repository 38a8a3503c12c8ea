"""What else the agents of a framework do — stream, wait for an approval, hand over, give up — recorded and replayed.

A case is two files in a framework's folder. ``<case>.py`` prints ``{"mode": …, "output": …}`` for each mode in its arguments.
``<case>.json`` says what happens:

- ``turns``: what the model answers, in order.
- ``own_turns``: number of model calls that the program answers itself, in its HTTP client; none by default.
- ``modes``: the program's arguments; none by default.
- ``steps``: every step but the model calls, as ``<kind> <name> <outcome>``, in any order.
- ``grade``: what runs may have beside ``exact``.
- ``oldest``: false where the oldest claimed release has no such thing; else what is otherwise there, by the names above.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frameworks.running import HERE, Framework, runs_in
from frameworks.test_contract import WANTED
from support.environments import environment
from support.size import FULL

pytestmark = [pytest.mark.timeout(1200)]


def cases() -> list[Any]:
    """Framework, case and file of requirements; at the small size only of frameworks asked for by name, in their current release."""
    found = []
    for case in sorted(HERE.glob("*/*.json")):
        name = case.parent.name
        if case.name == "case.json" or not case.with_suffix(".py").exists():
            continue
        for file in ("requirements.txt", "oldest.txt"):
            if not (case.parent / file).exists() or (file == "oldest.txt" and _read(case).get("oldest") is False):
                continue
            marks = []
            if WANTED != "all" and name not in WANTED.split(","):
                marks = [pytest.mark.skip(reason="installs the framework: SPANREPLAY_FRAMEWORKS=all runs it")]
            elif not FULL and (file == "oldest.txt" or WANTED == "all"):
                marks = [pytest.mark.skip(reason="runs at SPANREPLAY_TEST_SIZE=full")]
            found.append(pytest.param(name, case.stem, file, marks=marks, id=f"{name}-{case.stem}-{Path(file).stem}"))
    return found


def _read(case: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(case.read_text(encoding="utf-8"))
    return said


@pytest.mark.parametrize(("name", "case", "file"), cases())
def test_a_case_is_recorded_and_replayed(name: str, case: str, file: str, tmp_path: Path) -> None:
    told = _read(HERE / name / f"{case}.json")
    if file == "oldest.txt":
        told |= told.get("oldest", {})
    turns, modes = told["turns"], told.get("modes", [])
    python = environment(f"framework-{name}-{Path(file).stem}", HERE / name / file) / "bin" / "python"
    framework = Framework(name=name, python=python, folder=tmp_path, program=f"{case}.py")
    program = [*framework.agent, *modes]

    off = framework.live(turns, *program)
    assert off.code == 0, off.err
    assert off.answers
    if modes:
        assert [answer["mode"] for answer in off.answers] == modes
    assert len(off.requests) == len(turns), "the script has turns that nobody asks for, or too few"

    recorded = framework.live(turns, *framework.spanreplay("record", "--", *program))
    assert (recorded.code, recorded.answers) == (0, off.answers), recorded.err
    assert _characters(recorded.requests) == _characters(off.requests), "spanreplay changes what the model is asked"
    assert (recorded.bodies, recorded.others) == (off.bodies, off.others)

    path = framework.exported()
    runs = runs_in(path)
    assert {run.grade for run in runs} <= {"exact", told.get("grade", "exact")}, [run.grade_reasons for run in runs]
    steps = [step for run in runs for step in run.steps]
    assert sum(step.kind == "model_call" for step in steps) == len(turns) + told.get("own_turns", 0)
    others = [step for step in steps if step.kind != "model_call"]
    assert Counter(f"{step.kind} {step.name} {step.outcome}" for step in others) == Counter(told["steps"])

    for target in ("last", path):
        replayed = framework.run(*framework.spanreplay("replay", target, "--json", "--", *program))
        found = json.loads(replayed.out)["replay"]
        assert (replayed.code, found["equal"], found["differences"], found["refusals"]) == (0, True, [], []), replayed.err
        assert replayed.answers == off.answers
        assert replayed.bodies == []


def _characters(requests: list[str]) -> list[list[str]]:
    """What the model was asked, where neither the order of its requests nor that of the results in one says anything."""
    return sorted(sorted(asked) for asked in requests)
