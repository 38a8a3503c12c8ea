"""Processes that are born and die: every step is kept, in its run, under its parent; what never ended says so."""

import json
from collections import Counter
from typing import Any

import pytest

from spanreplay.semconv import attributes as names
from support.size import FULL
from weather.station import Kept, Station, agent

PLACES = [
    *("main", "thread", "pool 1", "pool 2", "fork", "fork", "spawn", "forkserver", "process pool"),
    *("child inherited", "child clean", "before the kill", "before the exit"),
]


def notes(kept: Kept) -> dict[str, list[Any]]:
    """Spans of the tool ``note`` by what they say."""
    found: dict[str, list[Any]] = {}
    for span in kept.spans:
        if span.attributes.get(names.STEP_NAME) == "note":
            found.setdefault(json.loads(str(span.attributes[names.GEN_AI_TOOL_CALL_ARGUMENTS]))["where"], []).append(span)
    return found


def test_the_whole_family_is_one_run(station: Station) -> None:
    command = agent("family")
    bare = station.run(command)
    assert bare.code == 0, str(bare)
    done = station.record(command)
    assert (done.code, done.out) == (0, bare.out), str(done)
    assert not done.complaints
    kept = station.kept()
    kept.assert_nothing_doubled()
    run = kept.one()
    assert Counter(s.name for s in run.steps) == {"note": len(PLACES), "delegate": 2, "die": 2}
    places = notes(kept)
    assert sorted(place for place, spans in places.items() for _ in spans) == sorted(PLACES)
    (root,) = (s for s in kept.spans if s.attributes.get(names.STEP_NAME) == "family")
    delegates = {
        json.loads(str(s.attributes[names.GEN_AI_TOOL_CALL_ARGUMENTS]))["to"]: s for s in kept.spans if s.name.endswith(" delegate")
    }
    for place, spans in places.items():
        parent = delegates[place.removeprefix("child ")] if place.startswith("child ") else root
        assert {(span.trace_id, span.parent_span_id) for span in spans} == {(root.trace_id, parent.span_id)}, place
    processes = {place: {s.attributes[names.PROCESS_ID] for s in spans} for place, spans in places.items()}
    assert len(processes["fork"]) == 2
    assert len(set().union(*processes.values())) == 10
    unfinished = {s.outcome for s in run.steps if s.name == "die"}
    assert (unfinished, run.grade, run.outcome) == ({"unknown"}, "incomplete", "ok")
    assert {s.grade for s in run.steps if s.name != "die"} == {"exact"}


@pytest.mark.skipif(not FULL, reason="at full size only")
def test_a_recording_by_hand_goes_on_in_children_that_share_its_memory(station: Station) -> None:
    done = station.run(agent("family"), {"START": str(station.store)})
    assert done.code == 0, str(done)
    assert not done.complaints
    kept = station.kept()
    kept.assert_nothing_doubled()
    found = notes(kept)
    assert {place for place in PLACES if not place.startswith("child ") and place not in ("spawn", "forkserver")} <= set(found)
    assert {s.attributes[names.RUN_ID] for spans in found.values() for s in spans} == {kept.one().run_id}


@pytest.mark.parametrize("effect", ["write", "read"] if FULL else ["write"])
def test_a_process_killed_in_the_middle_of_a_tool(station: Station, effect: str) -> None:
    done = station.record(agent("mortal", effect))
    assert done.code == 137, str(done)
    then = (station.work / "journal-then").read_bytes()
    assert b"tool_call:act#0" in then, "the intent is written before the body runs"
    run = station.kept().one()
    assert [(s.name, s.outcome, s.grade) for s in run.steps] == [("look", "ok", "exact"), ("act", "unknown", "incomplete")]
    assert (run.grade, run.outcome) == ("incomplete", "unknown")
    assert run.steps[1].input == {"arguments": {"amount": 42}}
    assert station.kept().command().exit_code == 137
    acted = effect == "write"
    assert ("effect-unknown" in {reason.code for reason in run.steps[1].reasons}) == acted
    listed = station.spanreplay("runs")
    assert ("step 2, act (effect write), began and has no end: it may have acted" in listed.err) == acted
    shown = station.spanreplay("show")
    assert "cut short" in shown.out
    assert "started, and no end was recorded" in shown.out
    assert ("it may have acted" in shown.out) == acted
    replayed = station.spanreplay("replay", "last", "--", *agent("mortal", effect))
    assert replayed.code == 125, str(replayed)
    assert "act" in replayed.out + replayed.err
    assert "incomplete" in replayed.out + replayed.err or "no end was recorded" in replayed.out + replayed.err


@pytest.mark.parametrize("kind", ["threads", "async"])
@pytest.mark.parametrize("by_record", [False, True] if FULL else [False])
def test_a_web_server_with_twenty_runs_at_once(station: Station, kind: str, by_record: bool) -> None:
    command = agent("host", kind)
    done = station.record(command) if by_record else station.fork(command, {"START": str(station.store)})
    assert (done.code, done.complaints) == (0, []), str(done)
    answers = [json.loads(answer) for answer in json.loads(done.out)]
    assert answers == [[f"guest-{guest} {course}" for course in range(3)] for guest in range(20)]
    kept = station.kept()
    kept.assert_nothing_doubled(paths=False)
    assert sorted(str(run.input) for run in kept.agents) == sorted(f"guest-{guest}" for guest in range(20))
    for run in kept.agents:
        assert run.output == [f"{run.input} {course}" for course in range(3)]
        assert sorted(str(step.output["result"]) for step in run.steps) == run.output
        assert run.grade == "exact"
    paths = {run.run_id: [step.path for step in run.steps] for run in kept.agents}
    assert len({tuple(sorted(map(str, of_one))) for of_one in paths.values()}) == 1, "every request has the same shape"
