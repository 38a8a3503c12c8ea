"""What a command changed of the state that is kept with it is no loss, in whichever of its runs that happened."""

from spanreplay.replay.reexecution.missing_state import is_kept, missing_state
from support.handmade import run

STATE = {
    "schema": 1,
    "paths": [
        {"path": "/w/memory.db", "asked": "memory.db", "kind": "file", "folders": [], "files": [], "left_out": [], "redacted": 0},
        {"path": "/w/logs", "asked": "logs", "kind": "folder", "folders": [], "files": [], "left_out": [], "redacted": 0},
    ],
}
OPENED = {"what": "database opened", "target": "memory.db"}
WRITTEN = {"what": "file written", "target": "logs/l.txt"}
OTHER = {"what": "file written", "target": "other.txt"}


def test_the_state_is_kept_with_the_command_and_holds_for_its_agents() -> None:
    command = run(run_id="c", definition={"cwd": "/w"}, state=STATE)
    agent = run(run_id="a", untaped=(OPENED, WRITTEN, OTHER))
    assert [is_kept([agent, command], item) for item in agent.untaped] == [True, True, False]
    assert not is_kept([agent], OPENED)
    (line,) = missing_state([agent, command], "level 2; the recorded state is in place")
    assert "other.txt" in line
    assert "memory.db" not in line
    assert "l.txt" not in line
