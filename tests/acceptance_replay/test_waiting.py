"""A worker that the replay stops leaves nobody waiting: the command ends, and the report says why."""

import sys
import tempfile
from pathlib import Path

import pytest

from acceptance.commands import Desk
from support.size import FULL

AGENT = Path(__file__).parent / "waiting.py"
STARTS = ("fork", "spawn", "forkserver") if FULL else ("fork",)
SHORT = {"TMPDIR": tempfile.gettempdir()}
"""The path of a socket, as the fork server has one, is short."""
ENDED = "a process of the command was stopped, and all of it is ended: the rest waited for it"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems start workers otherwise")


@pytest.mark.parametrize("start", STARTS)
def test_a_worker_that_differs_or_acts_ends_the_command(start: str, tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk", SHORT)
    recorded = desk.record([sys.executable, str(AGENT), start, "noon"])
    assert recorded.out == "n o o n\n", recorded
    differs = desk.replay([sys.executable, str(AGENT), start, "moon"])
    assert differs.code == 1, differs
    assert 'actual:   "moon"' in differs.out
    assert ENDED in differs.err
    for act in ("act", "act-in-c") if FULL else ("act",):
        (desk.work / act).touch()
        acts = desk.replay([sys.executable, str(AGENT), start, "noon"])
        (desk.work / act).unlink()
        assert acts.code == 4, acts
        assert "refused: tried to" in acts.out
        assert ENDED in acts.err
        assert not (desk.work / "written").exists()
