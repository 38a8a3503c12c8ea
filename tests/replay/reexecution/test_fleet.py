"""Many re-executions: workers that die take one with them, and what differs is summed up by its cause."""

import sys
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.reexecution import fleet
from spanreplay.replay.reexecution.causes import NONE
from spanreplay.replay.reexecution.fleet import Job, Result, executed
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.summary import causes, document
from spanreplay.replay.reports.fleet import render_result, render_summary

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["argv"] == ["die"]:
        sys.exit(3)
    print(json.dumps({"exit_code": 0, "said": asked["argv"][0]}), flush=True)
"""


def job(folder: Path, number: int, word: str, failed: str | None = None) -> Job:
    recording = folder / f"{number}.json"
    recording.write_text("{}")
    return Job(
        number=number,
        agents=(),
        runs=("r",),
        named=("r",),
        focus=(),
        recording=recording,
        argv=(word,),
        cwd=None,
        options={},
        failed=failed,
    )


def test_a_worker_that_dies_takes_one_re_execution_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_WORKER", (sys.executable, "-c", ECHO))
    most = 0

    def jobs() -> Any:
        nonlocal most
        for number, word in enumerate(["a", "die", "b", "c", "d", "e"]):
            yield job(tmp_path, number, word, "no command" if word == "c" else None)
            most = max(most, len([*tmp_path.iterdir()]))

    results = sorted(executed(jobs(), 1), key=lambda result: result.number)
    assert [(r.exit_code, r.said, r.failed) for r in results] == [
        (0, "a", None),
        (125, "", "the worker died: exit code 3"),
        (0, "b", None),
        (125, "", "no command"),
        (0, "d", None),
        (0, "e", None),
    ]
    assert most <= 2, "what waits does not grow with the number of runs"
    assert list(tmp_path.iterdir()) == []


def differs(number: int, field: str, **more: Any) -> Result:
    facts = {"kind": "input", "run_id": "r", "step": 2, "name": "model_call m", "field": field, "recorded": '"a"', "actual": '"\x1b"'}
    first = Difference(**{**facts, **more})
    seen = {name: getattr(first, name) for name in Difference.__slots__}
    return Result(number=number, runs=(f"{number}" * 32,), agents=("support",), exit_code=1, verdict={"differences": [seen]})


def test_what_differs_is_one_line_a_cause() -> None:
    prompt = "the prompt support 7 has changed"
    results = [
        differs(3, "messages[4].content", cause=NONE),
        differs(1, "messages[0].content", cause=prompt),
        differs(0, "messages[2].content", cause=NONE),
        Result(number=2, runs=("2" * 32,), exit_code=4, verdict={"refusals": [{"action": "connect", "text": "tried to connect"}]}),
        Result(number=4, runs=("4" * 32,), exit_code=125, failed="the worker died"),
        Result(number=5, runs=("5" * 32,), exit_code=0, verdict={"steps": {"matched": 3}}),
    ]
    assert [(c.what, c.result, c.runs, c.example.number) for c in causes(results)] == [
        ("model_call m: messages[*].content differs", "different", 2, 0),
        (f"model_call m: messages[*].content differs ({prompt})", "different", 1, 1),
        ("tried an action on the outside: connect", "refused", 1, 2),
        ("the worker died", "cannot judge", 1, 4),
    ]
    made = document(results)
    assert (made["exit_code"], made["counts"]) == (4, {"equal": 1, "different": 3, "refused": 1, "cannot judge": 1})
    assert [row["runs"][0][0] for row in made["results"]] == list("012345")
    text = render_summary(results, colour=False)
    assert text.startswith("1 of 6 equal, 3 different, 1 refused, 1 cannot judge\n")
    assert "2 different: model_call m: messages[*].content differs" in text
    assert "\x1b" not in text
    assert render_result(results[5], colour=False) == "equal         555555555555  -  3 steps"
