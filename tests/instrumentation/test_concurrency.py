"""Many tasks make one identical call at once: every one gets its own answer back, however they are started and scheduled.

The cases are those of ``concurrent_agents.py``. What needs packages or another Python than this one runs in environments of its own at the
full size, which is the size that is claimed: 200 tasks and 100 replays.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from instrumentation import concurrent_agents
from spanreplay.instrumentation import tool
from support.environments import environment
from support.newer_python import newer_python
from support.size import FULL
from support.taped import recorded, replayed, told

FILE: Final = Path(__file__).parent / "concurrent_agents.py"
HERE: Final = (
    "nested",
    "sub_agents",
    "equal_sub_agents",
    "callbacks_of_timers",
    "ends_of_tasks",
    "locks",
    "queue_of_different_items",
    "queue_with_scopes",
    "asyncio_queue_with_scopes",
    "tasks_for_items",
    "anyio_on_asyncio",
    "order_on_asyncio",
    "order_in_threads",
)
"""Those that the tests of the shims do not have, with what is installed here."""
ELSEWHERE: Final = (
    "create_task",
    "gather",
    "task_group",
    "to_thread",
    "thread_pool",
    *HERE,
    "anyio_threads_on_asyncio",
    "anyio_on_trio",
    "anyio_threads_on_trio",
    "trio_nursery",
    "trio_threads",
    "on_uvloop",
    "nested_loops",
    "order_on_uvloop",
    "order_on_trio",
)
EAGER: Final = ("eager_tasks", "eager_anyio", "on_uvloop", "trio_nursery", "nested")
REPLAYS: Final = 100
THREADS: Final = ("anyio_threads_on_asyncio", "anyio_threads_on_trio")
"""Threads of a pool of 40 wait for their turn, and keep others from starting: the order is relaxed, which takes time."""


def check(found: dict[str, int], case: str) -> None:
    """Nothing was another task's, and nothing was found otherwise than by its place."""
    assert (found["wrong"], found["differ"]) == (0, 0), found
    assert found["calls"] > 0
    if case != "queue_of_different_items":
        assert found["by_input"] == 0, found


@pytest.mark.parametrize("case", HERE)
def test_every_task_gets_its_own_back(case: str) -> None:
    many, chance = concurrent_agents.MANY, concurrent_agents.chance
    try:
        check(concurrent_agents.main(case, 28, 1), case)
    finally:
        concurrent_agents.MANY, concurrent_agents.chance = many, chance


def run(python: str, case: str, replays: int) -> None:
    """In another interpreter."""
    words: Sequence[str] = [python, str(FILE), case, str(concurrent_agents.MANY), str(replays)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    check(found, case)


@pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", ELSEWHERE)
def test_at_the_claimed_size(case: str) -> None:
    made = environment("concurrency", FILE.with_name("concurrency.txt"))
    run(str(made / "bin" / "python"), case, 10 if case in THREADS else REPLAYS)


@pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", EAGER)
def test_eager_tasks_of_a_newer_python(case: str) -> None:
    python = sys.executable if sys.version_info >= (3, 12) else newer_python()
    if python is None:
        pytest.skip("eager tasks came with Python 3.12, and there is none here")
    run(str(environment("concurrency-newer", FILE.with_name("concurrency.txt"), python=python) / "bin" / "python"), case, REPLAYS)


def test_where_several_equal_calls_could_answer_the_report_asks_for_a_scope() -> None:
    """A worker that takes from a queue does fewer or more items in the replay than it did in the record."""

    @tool(effect="read")
    def look() -> int:
        return next(concurrent_agents.answers)

    def agent(shares: tuple[int, int]) -> None:
        def worker(share: int) -> None:
            for _ in range(share):
                look()

        for share in shares:
            thread = threading.Thread(target=worker, args=(share,))
            thread.start()
            thread.join()

    result = replayed(recorded(agent, (1, 3)), agent, (3, 1))
    assert told(result) == []
    assert (result.verdict.matched_by_input, result.verdict.matched_by_chance) == (3, 2)
    assert (
        "by chance: several recorded at once ask the same, have other answers, and nothing tells which is which; around each item"
        in str(result)
    )
