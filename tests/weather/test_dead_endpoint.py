"""A collector that is not there: the process ends as late as without recording, never later than the exporter's own timeout allows."""

import socket
import time
from collections.abc import Iterator
from typing import Final

import pytest

from support.size import FULL
from weather.station import STEPS, Station, agent, steps

TIMEOUT_S: Final = 1
"""``OTEL_EXPORTER_OTLP_TIMEOUT``: what one export may take, its retries included."""


@pytest.fixture(params=["refused", "silent"] if FULL else ["silent"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """A port that refuses connections, or one that takes them and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "silent":
            listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def seconds_to_end(station: Station) -> float:
    """How long the agent that has just ended took to do so after the last thing it printed."""
    return time.time() - (station.root / "out").stat().st_mtime


@pytest.mark.parametrize("by_record", [False, True] if FULL else [False])
def test_the_end_is_no_later_and_the_store_is_whole(station: Station, endpoint: str, by_record: bool) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": str(TIMEOUT_S)}
    command = agent("traveller", station.model.url, "plain", "before")
    bare = station.fork(command, variables)
    without = seconds_to_end(station)
    if by_record:  # which goes on after the agent's end: only the store is looked at
        done = station.record(command, variables)
    else:
        done = station.fork(command, {**variables, "START": str(station.store)})
        assert seconds_to_end(station) <= without + TIMEOUT_S + 5, "one more time-out, and some time on a loaded machine"
    assert (done.code, done.out) == (bare.code, bare.out), str(done)
    assert not done.complaints
    kept = station.kept()
    kept.assert_nothing_doubled()
    assert steps(kept.one()) == STEPS
    assert {run.grade for run in kept.runs} == {"exact"}
    assert not [u for run in kept.runs for u in run.untaped]
