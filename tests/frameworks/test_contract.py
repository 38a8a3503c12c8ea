"""What every adapter has to do, seen with a real agent of its framework: the current release, and the oldest the adapter claims.

A framework is a folder here: ``agent.py`` (prints ``{"mode": …, "output": …}`` for each mode in its arguments), ``case.json``,
``requirements.txt`` and, where an older release is claimed, ``oldest.txt``. ``case.json`` may also say what the framework calls the agent
and the tools (``agent``, ``calls``), and which tools run in a process that only tells of them (``told_of``).

A scripted model server answers while it is recorded; when it is replayed there is none. ``SPANREPLAY_FRAMEWORKS`` names those to run, or
is ``all``. What passed is compared with ``passed.json``, of which docs/frameworks.md is made; ``SPANREPLAY_FRAMEWORKS_WRITE=1`` writes
that file. With ``all``, at the small size, an agent runs in one mode.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frameworks.running import HERE, Framework, runs_in
from spanreplay.replay import Run, Step, open_source
from spanreplay.replay.model import GRADE_ORDER
from spanreplay.spans.record import SpanRecord
from support.environments import environment
from support.size import FULL

WANTED = os.environ.get("SPANREPLAY_FRAMEWORKS", "")
SCRIPT: list[dict[str, Any]] = json.loads((HERE / "script.json").read_text(encoding="utf-8"))
ANSWER = SCRIPT[-1]["text"]

pytestmark = [pytest.mark.timeout(1200)]


def releases() -> list[Any]:
    """Framework and file of requirements; the oldest release at full size only."""
    found = []
    for case in sorted(HERE.glob("*/case.json")):
        name = case.parent.name
        for file in ("requirements.txt", "oldest.txt"):
            if (case.parent / file).exists():
                marks = []
                if WANTED != "all" and name not in WANTED.split(","):
                    marks = [pytest.mark.skip(reason="installs the framework: SPANREPLAY_FRAMEWORKS=all runs it")]
                elif file == "oldest.txt" and not FULL:
                    marks = [pytest.mark.skip(reason="runs at SPANREPLAY_TEST_SIZE=full")]
                found.append(pytest.param(name, file, marks=marks, id=f"{name}-{Path(file).stem}"))
    return found


@pytest.mark.parametrize(("name", "file"), releases())
def test_an_agent_is_recorded_and_replayed(name: str, file: str, tmp_path: Path) -> None:
    case = json.loads((HERE / name / "case.json").read_text(encoding="utf-8"))
    modes: list[str] = case["modes"] if FULL or name in WANTED.split(",") else case["modes"][-1:]
    turns = [_as_called(turn, case.get("calls", {})) for turn in SCRIPT if case["nested"] or not turn.get("nested")]
    script = [turn for _ in modes for turn in turns]
    python = environment(f"framework-{name}-{Path(file).stem}", HERE / name / file) / "bin" / "python"
    framework = Framework(name=name, python=python, folder=tmp_path)
    agent = [*framework.agent, *modes]

    off = framework.live(script, *agent)
    assert (off.code, [answer["output"] for answer in off.answers]) == (0, [ANSWER] * len(modes)), off.err
    assert len(off.requests) == len(script)

    recorded = framework.live(script, *framework.spanreplay("record", "--", *agent))
    assert recorded.code == 0, recorded.err
    assert recorded.answers == off.answers
    assert [sorted(a) for a in recorded.requests] == [sorted(a) for a in off.requests], "spanreplay changes what the model is asked"
    assert recorded.others == off.others
    tools = ["get_alerts", "get_time", "get_weather", "roll", "roll"]
    assert recorded.bodies == off.bodies == sorted(tools * len(modes))

    path = framework.exported()
    runs = runs_in(path)
    check_steps([step for run in runs for step in run.steps], len(modes), case, script)
    check_tree(runs, [record for record in open_source(str(path)).records if isinstance(record, SpanRecord)], len(modes), case)

    for target in ("last", path):
        replayed = framework.run(*framework.spanreplay("replay", target, "--json", "--", *agent))
        told = json.loads(replayed.out)["replay"]
        assert (replayed.code, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.err
        assert replayed.answers == off.answers
        assert replayed.bodies == []
    worst = max((step.grade for run in runs for step in run.steps), key=GRADE_ORDER.index)
    check_passed(name, file, {"modes": case["modes"], "nested": case["nested"], "grade": worst})


def _as_called(turn: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """A turn of the script, with the names and arguments that the framework's model calls its tools with."""
    return turn | ({"calls": [{**call, **names.get(call["name"], {})} for call in turn["calls"]]} if "calls" in turn else {})


def check_passed(name: str, file: str, told: dict[str, Any]) -> None:
    """What has been seen is what the documentation says."""
    path = HERE / name / "passed.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    pins = [line.strip() for line in (HERE / name / file).read_text(encoding="utf-8").splitlines()]
    now = {**known, Path(file).stem: {"pins": [pin for pin in pins if pin and not pin.startswith("#")], **told}}
    if os.environ.get("SPANREPLAY_FRAMEWORKS_WRITE"):
        path.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    assert now == known or os.environ.get("SPANREPLAY_FRAMEWORKS_WRITE"), f"{path.name} is not up to date: {now}"


def check_steps(steps: list[Step], times: int, case: dict[str, Any], script: list[dict[str, Any]]) -> None:
    """Each call is one step, with all that is known of it."""
    assert sum(step.kind == "model_call" for step in steps) == len(script)
    calls = [step for step in steps if step.kind == "tool_call"]
    asked = [call for turn in script for call in turn.get("calls", ())]
    assert Counter(step.name for step in calls) == Counter(call["name"] for call in asked)
    for step in calls:
        told_of = step.name in case.get("told_of", ())
        assert step.grade in (("structure",) if told_of else ("exact", "semantic")), step.reasons
        assert step.call_id in {call["id"] for call in asked if call["name"] == step.name}, step
        assert step.input["arguments"] == next(call["arguments"] for call in asked if call["id"] == step.call_id), step
        assert step.requested_by is not None, step
        assert told_of or "schema" in json.dumps(dict(step.versions)), step.versions
        assert step.output is not None or step.error is not None, step
        if step.name.endswith("get_alerts"):
            assert step.error is not None or "unavailable" in json.dumps(step.output), step
        if step.name.endswith("roll"):
            assert "rolled" in json.dumps(step.output)
    rolls = [json.dumps(step.output) for step in calls if step.name.endswith("roll")]
    assert len(set(rolls)) == 2 * times, "a call got another call's result"


def check_tree(runs: list[Run], records: list[SpanRecord], times: int, case: dict[str, Any]) -> None:
    """Runs are the agent's, what the nested agent does lies inside it, and spans have the names of the GenAI conventions."""
    agents = [run for run in runs if run.steps]  # the command around them has none of its own
    assert [run.agent_name for run in agents] == [case.get("agent", "weather")] * times
    for run in agents:
        by_seq = {step.seq: step for step in run.steps}
        inside = [step for step in run.steps if step.parent_seq is not None and step.kind == "model_call"]
        around = {ancestor.name for step in inside for ancestor in _ancestors(step, by_seq) if ancestor.kind == "agent"}
        assert around == ({"specialist"} if case["nested"] else set())
    shown = Counter(record.name.split(" ")[0] for record in records if "gen_ai.operation.name" in record.attributes)
    assert set(shown) in ({"invoke_agent", model, "execute_tool"} for model in ("chat", "generate_content")), shown


def _ancestors(step: Step, by_seq: dict[int, Step]) -> Iterator[Step]:
    parent = step.parent_seq
    while parent is not None:
        yield by_seq[parent]
        parent = by_seq[parent].parent_seq
