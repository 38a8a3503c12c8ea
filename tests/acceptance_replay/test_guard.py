"""``replay -- CMD`` acts on nothing outside, says what was attempted, and lets alone what is none."""

import json
import re
from pathlib import Path

import pytest

from acceptance.commands import Desk
from acceptance_replay.conftest import Outside, agent


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("connects", "connect to 127.0.0.1:{port}"),
        ("connects_in_a_thread", "connect to 127.0.0.1:{port}"),
        ("connects_and_swallows", "connect to 127.0.0.1:{port}"),
        ("starts_a_process", "start the process"),
        ("writes", "{folder}/written"),
    ],
)
def test_an_action_on_the_outside_is_refused_and_named(desk: Desk, outside: Outside, extra: str, said: str) -> None:
    done = desk.replay(agent(extra))
    assert done.code == 4, str(done)
    assert "refused: tried to " in done.out
    assert said.format(port=outside.port, folder=outside.folder) in done.out
    assert "agent.py:" in done.out
    assert outside.files() == []
    assert outside.connections == []


def test_what_is_free_is_no_attempt_and_telemetry_is_dropped_and_counted(desk: Desk, outside: Outside) -> None:
    (desk.work / "fresh_module.py").write_text("X = 1\n")
    done = desk.spanreplay("replay", "last", "--json", command=agent("does_what_is_free"))
    assert done.code == 0, str(done)
    document, _ = json.JSONDecoder().raw_decode(done.out[done.out.index('{\n  "schema"') :])
    replay = document["replay"]
    assert replay["refusals"] == []
    assert replay["telemetry_dropped"] >= 2
    by_none = tuple(f"matched_by_{how}" for how in ("input", "meaning", "chance", "renaming", "tolerance", "place"))
    none = dict.fromkeys((*by_none, "covered", "told_by_others", "order_relaxed"), 0)
    assert replay["steps"] == {"recorded": 2, "matched": 2, **none, "passed": {}, "unreached": []}
    assert outside.connections == []
    people = desk.replay(agent("does_what_is_free"))
    assert re.search(r"telemetry was not sent \(\d+ connections\)", people.out)


def test_a_path_that_is_allowed_may_be_written(desk: Desk, outside: Outside) -> None:
    done = desk.replay(agent("writes"), "--allow-write", Path(outside.folder) / "written")
    assert done.code == 0, str(done)
    assert outside.files() == ["written"]
    (outside.folder / "written").unlink()
