"""A replay of many runs that is told to end: whatever the signal met."""

import signal

import pytest

from spanreplay.cli.failing import QUERY_INTERRUPTED
from spanreplay.cli.fleet import _ended_by_sigterm


def test_a_query_that_the_signal_ends_is_the_end_that_was_asked_for() -> None:
    with _ended_by_sigterm() as stop:
        with pytest.raises(SystemExit) as told:
            signal.raise_signal(signal.SIGTERM)
        assert stop.meant_by(told.value) is told.value
        ended = stop.meant_by(RuntimeError(QUERY_INTERRUPTED))  # as DuckDB has it, whatever the handler raised
    assert isinstance(ended, SystemExit)
    assert ended.code == 128 + signal.SIGTERM


def test_an_error_that_is_no_interruption_is_raised() -> None:
    with _ended_by_sigterm() as stop, pytest.raises(RuntimeError, match="else"):
        stop.meant_by(RuntimeError("something else"))
    assert isinstance(stop.meant_by(RuntimeError(QUERY_INTERRUPTED)), KeyboardInterrupt)
