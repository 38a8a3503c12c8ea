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


def test_what_may_be_written_beside_the_state_is_the_real_file_and_the_state_stays_a_copy(desk: Desk) -> None:
    words = [sys.executable, str(AGENT)]
    (desk.work / "logs" / "agent.log").write_text("earlier\n")
    assert desk.spanreplay("record", "--state", "memory.db", "--state", "notes.json", "--state", "logs", command=words).code == 0
    after = files(desk)
    replayed = desk.replay(words, "--json", "--allow-write", "memory.db", "--allow-write", "logs/agent.log", "--allow-write", ".")
    found = json.loads(replayed.out)["replay"]
    if "namespace" in found["isolation"] or "level 2" not in found["isolation"]:
        pytest.skip(found["isolation"])
    assert (replayed.code, found["differences"]) == (0, []), replayed
    assert files(desk) == after
    (desk.work / "apart").mkdir()
    writing = desk.work / "writing.py"
    writing.write_text(
        "import pathlib, sqlite3\n"
        "from spanreplay.instrumentation import tool\n"
        "@tool(effect='read')\n"
        "def think(about): return about\n"
        "db = sqlite3.connect('memory.db')\n"
        "db.execute('insert into seen values (7)')\n"
        "db.commit()\n"
        "with open('other.log', 'a') as log: log.write(think('x'))\n"
        "pathlib.Path('apart', 'y').write_text(think('y'))\n"
    )
    words = [sys.executable, str(writing)]
    assert desk.spanreplay("record", "--state", "memory.db", command=words).code == 0
    after = files(desk)
    (desk.work / "apart" / "y").unlink()
    replayed = desk.replay(words, "--json", "--allow-write", "other.log", "--allow-write", "apart")
    found = json.loads(replayed.out)["replay"]
    assert (replayed.code, found["differences"], found["refusals"]) == (0, [], []), replayed
    assert found["isolation"].endswith("; the recorded state is in place")
    assert (desk.work / "other.log").read_text() == "xx"
    changed = {name for name, digest in files(desk).items() if after.get(name) != digest}
    assert (changed, files(desk).keys()) == ({"other.log"}, after.keys())
