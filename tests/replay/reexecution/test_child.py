"""A replayed process that was stopped ends, whoever waits for what the stop did not reach."""

import os
import threading
from pathlib import Path

import pytest

from spanreplay.replay.reexecution import child


def test_a_stopped_process_ends_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = threading.Event()
    codes: list[int] = []
    said: list[bytes] = []

    def leave(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(child, "GRACE_S", 0)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(os, "write", lambda descriptor, text: said.append(text))
    child._end_soon(tmp_path, "alone")
    assert ended.wait(10)
    assert codes == [1]
    assert said == [b"spanreplay: stopped, and ended: the agent went on for 0 s\n"]
    assert [file.name for file in tmp_path.iterdir()] == [f"{os.getpid()}.alone"]
