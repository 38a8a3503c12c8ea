"""A replay of many runs that is told to end: whatever the signal met."""

import os
import signal
import threading

import duckdb
import pytest

from spanreplay.cli.fleet import _ended_by_sigterm


def test_a_query_that_the_signal_ends_is_the_end_that_was_asked_for() -> None:
    ended: BaseException | None = None
    with _ended_by_sigterm() as stop:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        try:
            duckdb.connect().execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b").fetchall()
        except (RuntimeError, SystemExit) as error:
            ended = stop.meant_by(error)
    assert isinstance(ended, SystemExit)
    assert ended.code == 128 + signal.SIGTERM


def test_an_error_that_is_no_interruption_is_raised() -> None:
    with _ended_by_sigterm() as stop, pytest.raises(RuntimeError, match="else"):
        stop.meant_by(RuntimeError("something else"))
    assert isinstance(stop.meant_by(RuntimeError("Query interrupted")), KeyboardInterrupt)
