"""spanreplay passes the suite, nothing passes it by doing nothing, and the suite judges as it says."""

from pathlib import Path

import pytest

from conformance.driver import Difference
from conformance.judging import Phase, Verdict, judge
from conformance.running import run
from conformance.scenario import GROUPS, Scenario, scenarios
from support.size import FULL

DRIVERS = Path(__file__).parent / "drivers"
KNOWN = scenarios()
WANTED = [s for group in GROUPS for s in [s for s in KNOWN.values() if s.group == group][:: 1 if FULL else 8]]
GAPS: dict[str, str] = {}
"""What spanreplay does not pass, and why: strict, so that a gap which is closed is taken out here."""
slow = pytest.mark.skipif(not FULL, reason="runs with SPANREPLAY_TEST_SIZE=full, and in make conformance")


def failed(driver: str) -> dict[str, str]:
    found = run(DRIVERS / f"{driver}.py", WANTED, one_hash_seed=not FULL).verdicts
    assert set(found) == {s.name for s in WANTED}
    return {name: verdict.detail for name, verdict in found.items() if verdict.status == "fail"}


def test_spanreplay_passes_in_a_process() -> None:
    found = failed("spanreplay_in_process")
    assert set(found) == set(GAPS) & {s.name for s in WANTED}, found


@slow
@pytest.mark.timeout(3600)
def test_spanreplay_passes_as_a_command() -> None:
    found = failed("spanreplay_command")
    assert set(found) == set(GAPS) & {s.name for s in WANTED}, found


@slow
@pytest.mark.timeout(3600)
def test_no_scenario_passes_where_nothing_is_recorded() -> None:
    assert set(failed("nothing")) == {s.name for s in WANTED}


SAME, CHANGED, OUTSIDE = KNOWN["tool-loop"], KNOWN["temperature"], KNOWN["undeclared-file"]


def recorded(scenario: Scenario) -> Phase:
    bodies, acts = ["a tool"] * scenario.bodies, ["wrote a file"] * scenario.effects
    return Phase(value="output", requests=scenario.requests, bodies=bodies, acts=acts)


@pytest.mark.parametrize(
    ("replayed", "said"),
    [
        (Phase(value="output"), ""),
        (Phase(ended=False), "it did not end"),
        (Phase(value="0utput"), "another output: 'output' came back as '0utput'"),
        (Phase(value="output", requests=2), "2 live model requests"),
        (Phase(value="output", bodies=["pay", "pay"]), "tool bodies ran: 2 pay"),
        (Phase(value="output", acts=["wrote x"]), "acted outside: wrote x"),
        (Phase(error="KeyError: 1"), "stopped: KeyError: 1"),
        (Phase(value="output", differences=[Difference(text="a\nb")]), "told a difference where there is none: a"),
    ],
)
def test_what_has_to_be_the_same(replayed: Phase, said: str) -> None:
    assert judge(SAME, recorded(SAME), replayed) == Verdict(status="fail" if said else "pass", detail=said)


@pytest.mark.parametrize(
    ("replayed", "passes", "said"),
    [
        (Phase(value="output"), False, "the change was not noticed"),
        (Phase(error="Differs: 0.3"), True, ""),
        (Phase(value="output", differences=[Difference(text="it differs")]), True, ""),
        (Phase(error="Differs", differences=[Difference(text="it differs", step=1, field="temperature")]), True, "step 1, temperature"),
        (Phase(error="Differs", differences=[Difference(text="it differs", step=2)]), False, "said to be at step 2, and is at 1"),
        (
            Phase(error="Differs", differences=[Difference(text="it differs", field="top_p")]),
            False,
            "said to be in top_p, and is in temperature",
        ),
        (Phase(error="Differs", requests=1), False, "1 live model request"),
    ],
)
def test_what_has_to_be_noticed(replayed: Phase, passes: bool, said: str) -> None:
    found = judge(CHANGED, recorded(CHANGED), replayed, control=Phase(value="output"))
    assert found == Verdict(status="pass" if passes else "fail", detail=said)


def test_a_change_is_not_noticed_by_a_recorder_that_stops_always() -> None:
    stopped = Phase(error="Differs: all")
    assert judge(CHANGED, recorded(CHANGED), stopped, control=stopped).detail == "unchanged already: stopped: Differs: all"


def test_what_runs_live_in_the_unchanged_program_is_judged_elsewhere() -> None:
    noticed = Phase(error="Differs: 0.3")
    assert judge(CHANGED, recorded(CHANGED), noticed, control=Phase(value="output", bodies=["weather"])).status == "pass"
    ended = judge(CHANGED, recorded(CHANGED), noticed, control=Phase(ended=False))
    assert ended.detail == "unchanged already: it did not end"


def test_what_has_to_be_contained() -> None:
    assert judge(OUTSIDE, recorded(OUTSIDE), Phase(error="Refused")).status == "pass"
    assert judge(OUTSIDE, recorded(OUTSIDE), Phase(value="output", acts=["wrote x"])).detail == "acted outside: wrote x"


def test_a_recording_that_changes_the_program_is_no_recording() -> None:
    assert judge(SAME, Phase(error="TypeError: no"), Phase(value="output")).detail == "while recording: TypeError: no"
    spoiled = judge(SAME, Phase(value="output", requests=3, bodies=["weather"]), Phase(value="output"))
    assert spoiled.detail == "while recording: wanted 3 model requests, 2 tool bodies, 0 acts, saw 3, 1, 0"
