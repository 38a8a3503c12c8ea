"""A replayed process that was stopped ends, whoever waits for what the stop did not reach."""

import os
import threading

import pytest

from spanreplay.replay.reexecution import child


def test_a_stopped_process_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    codes: list[int] = []
    said: list[bytes] = []

    def leave(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(child, "_GRACE_S", 0)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(os, "write", lambda descriptor, text: said.append(text))
    child._end_soon()
    assert ended.wait(10)
    assert codes == [1]
    assert said == [b"spanreplay: stopped, and ended: the agent went on for 0 s\n"]
