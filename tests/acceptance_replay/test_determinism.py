"""What differs in every execution is the same in a replay."""

import json
import sys
from pathlib import Path

from acceptance.commands import Desk

AGENT = [sys.executable, str(Path(__file__).parent / "dated.py")]


def test_the_day_uuids_chance_and_the_order_of_sets(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path)
    assert desk.record(["env", "RECORD_AT=2021-03-04 10:00", *AGENT]).code == 0
    done = desk.replay(AGENT, "--json")
    replay = json.loads(done.out)["replay"]
    assert (done.code, replay["differences"], replay["steps"]["matched"]) == (0, [], 3), str(done)
    (run,) = json.loads(done.out)["runs"]
    assert [step["input"]["arguments"]["prompt"] for step in run["steps"]] == ["Today is 2021-03-04."] * 3
    assert len({step["input"]["arguments"]["key"] for step in run["steps"]}) == 3
