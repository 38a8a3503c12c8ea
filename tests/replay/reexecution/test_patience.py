"""A wait is as long as it was to be where nothing works, and longer where this process works, or is kept from it."""

import pytest

from spanreplay.replay.reexecution import patience
from spanreplay.replay.reexecution.patience import Patience


class Time:
    """Stands for the module of that name."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.used = 10.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used


def waited(monkeypatch: pytest.MonkeyPatch, *, late: float = 0.0, share: float = 0.0) -> float:
    """Seconds after which a wait of two is over, whose every part takes so much longer, while a share of a processor is used."""
    clock = Time()
    monkeypatch.setattr(patience, "time", clock)
    wait = Patience(2.0)
    while True:
        passed = wait.part + late
        clock.now += passed
        clock.used += passed * share
        if wait.is_over():
            return clock.now - 1000.0


def test_where_nothing_works_it_is_as_long_as_it_was_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch) == pytest.approx(2.0, rel=0.01)
    assert waited(monkeypatch, share=0.01) == pytest.approx(2.0, rel=0.01)


def test_work_counts_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, share=1.0) == pytest.approx(2.0, rel=0.01)
    assert waited(monkeypatch, share=0.5) == pytest.approx(4.0, rel=0.05)


def test_it_is_never_more_than_five_times_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, share=0.06) == pytest.approx(10.0, rel=0.05)


def test_who_comes_late_to_look_has_waited_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, late=1.0) == pytest.approx(2.0 + 8 * 1.0, rel=0.01)
