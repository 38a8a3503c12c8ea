"""Processes of every kind are replayed under the guard of their parent, and each call in them gets its own answer back.

Which worker of a pool does a job is another one each time; the jobs and their calls are all alike.
"""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from acceptance.commands import Desk
from acceptance_replay.family import KINDS
from support.size import FULL

AGENT = Path(__file__).parent / "family.py"
REPLAYS = 20 if FULL else 1
SHORT = {"TMPDIR": tempfile.gettempdir()}
"""The path of a socket, as the fork server has one, is short."""
FEW = ("copies", "in-agents", "process-spawn", "pool-fork")
"""At the small size."""


def test_every_call_in_every_process_gets_its_own_answer(tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk", SHORT)
    words = [sys.executable, str(AGENT), *(KINDS if FULL else FEW)]
    recorded = desk.record(words)
    assert recorded.code == 0, recorded
    assert "a replay refuses it" not in recorded.err
    results = [json.loads(line) for line in recorded.lines]
    assert len(results) == len(words) - 2
    for _ in range(REPLAYS):
        replayed = desk.replay(words)
        assert replayed.code == 0, replayed
        assert [json.loads(line) for line in replayed.lines] == results
        assert "0 differences" in replayed.out


@pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
@pytest.mark.parametrize("kind", KINDS)
def test_at_level_1_too_but_for_the_fork_server(kind: str, tmp_path: Path) -> None:
    desk = Desk.laid_out(tmp_path / "desk", SHORT)
    words = [sys.executable, str(AGENT), kind]
    assert desk.record(words).code == 0
    replayed = desk.replay(words, "--isolate", "hook")
    assert replayed.code == (4 if kind.endswith("forkserver") else 0), replayed
