"""What a program must not depend on, decided by chance: for ``--check-determinism``.

In life it differs from one execution to the next, and from one machine to another: when each call comes back, which of the tasks that wait
for something goes on first, when threads take turns and how long their jobs take, the day, where in memory a thing is, by which sets of
things are ordered, and, where the record does not hold it, the order of sets of texts. What a program is promised stays: tasks begin in the
order they were made, and whoever waits for the same thing goes on in the order they came.
"""

import asyncio
import random
import sys
import threading
import time
from asyncio import base_events
from typing import Any, Final

from spanreplay.boundary.call import Answer
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.instrumentation.shims.clock import travelling
from spanreplay.instrumentation.shims.threads import Job
from spanreplay.replay.reexecution.stepping import Inner

_LONGEST_S: Final = 0.003
_SWITCHES_S: Final = (1e-5, 1e-4, 0.005, 0.02)
_DAYS: Final = 400
_SMALLEST: Final = sys.getsizeof(b"")
_LARGEST: Final = 512
"""Above, each thing has memory of its own from the system."""
_STEP: Final = 16
_BLOCKS: Final = 200
_taken: Final[list[bytes]] = []


class Shuffled:
    """A :class:`spanreplay.boundary.session.CallInterceptor` around another one: calls in threads take a while, by chance.

    Making one shuffles the whole process.
    """

    def __init__(self, inner: Inner, seed: int) -> None:
        self._inner = inner
        self._chance = random.Random(seed)  # noqa: S311 — nothing is kept secret by it
        sys.setswitchinterval(self._chance.choice(_SWITCHES_S))
        _another_day(self._chance.randint(-_DAYS, _DAYS))
        _shuffle_loops(random.Random(seed))  # noqa: S311
        _delay_jobs(random.Random(seed))  # noqa: S311
        _shuffle_memory(random.Random(seed))  # noqa: S311

    def intercept(self, step: LiveStep) -> Answer | None:
        """Answer a call."""
        if threading.current_thread() is not threading.main_thread() and asyncio._get_running_loop() is None:
            time.sleep(self._chance.random() * _LONGEST_S)
        return self._inner.intercept(step)

    def ended(self, step: LiveStep) -> None:
        """A step has ended."""
        self._inner.ended(step)

    def release(self) -> None:
        """Nobody waits any more."""
        self._inner.release()


def _another_day(days: int) -> None:
    """The machine's clock, under the recorded one, which a copy of the process has already."""
    if travelling().escape_hatch.is_travelling():
        return
    travelling().travel(time.time() + days * 86_400, tick=True).start()


def _delay_jobs(chance: random.Random) -> None:
    """Jobs of threads take a while more, by chance."""
    work = Job.__call__

    def slowly(self: Job, *args: Any, **kwargs: Any) -> Any:
        try:
            return work(self, *args, **kwargs)
        finally:
            time.sleep(chance.random() * _LONGEST_S)

    Job.__call__ = slowly  # type: ignore[method-assign]


def _shuffle_memory(chance: random.Random) -> None:
    """Things that are made from here on are at other addresses: some blocks of each size stay taken, with free ones between."""
    for size in range(_SMALLEST, _LARGEST, _STEP):
        blocks = [bytes(size - _SMALLEST) for _ in range(chance.randint(_BLOCKS // 2, _BLOCKS))]
        chance.shuffle(blocks)
        _taken.extend(blocks[: len(blocks) // 2])


def _shuffle_loops(chance: random.Random) -> None:
    """Tasks that wait for different things, and can all go on, do so in another order."""
    turn = base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def run_once(loop: Any) -> None:
        ready = loop._ready
        places = [i for i, handle in enumerate(ready) if _is_wakeup(handle)]
        if len(places) > 1:
            _shuffle(ready, places, chance)
        turn(loop)

    base_events.BaseEventLoop._run_once = run_once  # type: ignore[attr-defined]


def _shuffle(ready: Any, places: list[int], chance: random.Random) -> None:
    handles = [ready[i] for i in places]
    by_cause: dict[int, list[Any]] = {}
    for handle in handles:
        by_cause.setdefault(id(handle._args[0]) if handle._args else 0, []).append(handle)
    order = [cause for cause, waiting in by_cause.items() for _ in waiting]
    chance.shuffle(order)
    for place, cause in zip(places, order, strict=True):
        ready[place] = by_cause[cause].pop(0)


def _is_wakeup(handle: Any) -> bool:
    """Whether a handle of a loop lets a task go on that waited for a future: C's wrapper, or a method of Python's task."""
    callback = getattr(handle, "_callback", None)
    name = type(callback).__name__ + getattr(callback, "__name__", "")
    return "akeup" in name
