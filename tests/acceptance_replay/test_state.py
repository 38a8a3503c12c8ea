"""A command that starts from state is replayed from that state, and the real files are what they were before the replay."""

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from acceptance.commands import Desk

AGENT = Path(__file__).parent / "remembering.py"


def files(desk: Desk) -> dict[str, str]:
    """Digest of every file where the command runs."""
    return {str(f.relative_to(desk.work)): sha256(f.read_bytes()).hexdigest() for f in desk.work.rglob("*") if f.is_file()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk.laid_out(tmp_path / "desk")
    (made.work / "logs").mkdir()
    return made


def test_the_unchanged_program_finds_the_state_of_then_and_changes_a_copy(desk: Desk) -> None:
    words = [sys.executable, str(AGENT), "absolute"]
    (desk.work / "logs" / "agent.log").write_text("earlier\n")
    recorded = desk.spanreplay("record", "--state", "memory.db", "--state", "logs", "--state", "notes.json", command=words)
    assert recorded.code == 0, recorded
    assert "not recorded" not in recorded.err
    after = files(desk)
    assert set(after) == {"memory.db", "notes.json", "logs/agent.log"}
    replayed = desk.replay(words, "--json")
    found = json.loads(replayed.out)["replay"]
    if "cannot be put back" in found["isolation"] or "namespace" in found["isolation"] or "level 2" not in found["isolation"]:
        pytest.skip(found["isolation"])
    assert (replayed.code, found["differences"], found["refusals"]) == (0, [], []), replayed
    assert found["isolation"].endswith("; the recorded state is in place")
    assert files(desk) == after


def test_a_difference_that_may_come_from_missing_state_says_so(desk: Desk) -> None:
    words = [sys.executable, str(AGENT)]
    assert desk.record(words).code == 0
    done = desk.replay(words, "--allow-write", ".", "--isolate", "hook")
    assert done.code == 1, done
    assert "a difference may come from missing state: what memory.db, logs/agent.log, notes.json.new held before the run is not" in done.out
