"""Skipped waits: days pass at once, in the order in which they would have passed, and work in threads is waited for."""

import asyncio
import threading
import time
from asyncio import base_events
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spanreplay.replay.reexecution.waits import skip_waits

HOUR = 3600.0


class Clock:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def skip(self, seconds: float) -> None:
        """Time has passed."""
        self.seconds += seconds


@pytest.fixture
def clock() -> Iterator[Clock]:
    """Waits are skipped while the test runs; threads that other tests have left count for nothing."""
    everybody = threading.enumerate
    left = set(everybody()) - {threading.current_thread()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "enumerate", lambda: [thread for thread in everybody() if thread not in left])
        for name in ("sleep", "monotonic", "monotonic_ns"):
            patch.setattr(time, name, getattr(time, name))
        patch.setattr(base_events.BaseEventLoop, "_run_once", base_events.BaseEventLoop._run_once)  # type: ignore[attr-defined]
        made = Clock()
        skip_waits(made)  # type: ignore[arg-type]
        yield made


def test_sleeping_takes_no_time_and_time_has_passed(clock: Clock) -> None:
    before = time.monotonic(), time.monotonic_ns()
    time.sleep(HOUR)
    assert clock.seconds == HOUR
    assert time.monotonic() - before[0] >= HOUR
    assert time.monotonic_ns() - before[1] >= HOUR * 1e9
    with pytest.raises(ValueError, match="non-negative"):
        time.sleep(-1)


def test_timers_come_in_their_order_and_time_out_what_they_would_have(clock: Clock) -> None:
    async def main() -> list[str]:
        found: list[str] = []

        async def after(seconds: float, name: str) -> None:
            await asyncio.sleep(seconds)
            found.append(name)

        async def late() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.sleep(3 * HOUR), 2 * HOUR)
            found.append("timed out")

        await asyncio.gather(after(3 * HOUR, "last"), after(HOUR, "first"), late(), asyncio.wait_for(after(1.5 * HOUR, "second"), 2 * HOUR))
        return found

    assert asyncio.run(main()) == ["first", "second", "timed out", "last"]
    assert 3 * HOUR - 1 < clock.seconds < 3 * HOUR + 1


def test_work_in_a_thread_is_waited_for_and_then_time_is_skipped_again(clock: Clock) -> None:
    go_on = threading.Event()

    def work() -> str:
        assert go_on.wait(30)
        return "done"

    async def main() -> str:
        job = asyncio.get_running_loop().run_in_executor(None, work)
        await asyncio.sleep(0.05)  # as long as it works this is a real wait, and no reason for a time-out
        assert clock.seconds == 0
        go_on.set()
        found = await asyncio.wait_for(job, HOUR)
        await asyncio.sleep(HOUR)
        return found

    assert asyncio.run(main()) == "done"
    assert HOUR - 1 < clock.seconds < HOUR + 1


def test_an_idle_pool_is_nobody(clock: Clock) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(int, "7").result() == 7
        time.sleep(HOUR)
    assert HOUR - 1 < clock.seconds <= HOUR
