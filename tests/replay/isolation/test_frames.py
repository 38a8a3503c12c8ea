"""Where each thread is, without a collection of garbage meanwhile."""

import gc
import sys
import threading
from types import FrameType

import pytest

from spanreplay.replay.isolation.frames import current_frames


def test_nothing_is_collected_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    real = sys._current_frames

    def watched() -> dict[int, FrameType]:
        asked.append(gc.isenabled())
        return real()

    monkeypatch.setattr(sys, "_current_frames", watched)
    assert threading.get_ident() in current_frames()
    assert asked == [False]
    assert gc.isenabled()


def test_whoever_has_switched_collections_off_has_them_off_afterwards() -> None:
    gc.disable()
    try:
        current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collections_go_on_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[int, FrameType]:
        raise MemoryError

    monkeypatch.setattr(sys, "_current_frames", broken)
    with pytest.raises(MemoryError):
        current_frames()
    assert gc.isenabled()
