"""The armed guard goes along into threads and executor work, and only there."""

from pathlib import Path
from typing import Any

import pytest

START = {
    "thread": "t = threading.Thread(target=write); t.start(); t.join()",
    "subclass": "t = Sub(); t.start(); t.join()",
    "timer": "t = threading.Timer(0, write); t.start(); t.join()",
    "raw": "_thread.start_new_thread(raw, ()); done.wait(30)",
    "nested": "t = threading.Thread(target=nest); t.start(); t.join()",
    "new pool": "pool = ThreadPoolExecutor(1); pool.submit(write).exception(); pool.shutdown()",
    "pool map": "pool = ThreadPoolExecutor(1); attempt(list, pool.map(lambda _: write(), [1])); pool.shutdown()",
    "old worker": "old.submit(write).exception()",
    "initializer": "pool = ThreadPoolExecutor(1, initializer=write); pool.submit(len, ''); pool.shutdown()",
    "ThreadPool": "pool = multiprocessing.pool.ThreadPool(1); attempt(pool.apply, write); pool.close()",
    "ThreadPool map": "pool = multiprocessing.pool.ThreadPool(1); attempt(pool.starmap, write, [()]); pool.close()",
    "ThreadPool imap": "pool = multiprocessing.pool.ThreadPool(1); attempt(list, pool.imap(lambda _: write(), [1])); pool.close()",
    "old ThreadPool": "attempt(old_pool.apply, write)",
    "empty context": "attempt(contextvars.Context().run, write)",
    "executor in own context": "old.submit(contextvars.Context().run, write).exception()",
}

PRELUDE = """
import _thread, contextvars, multiprocessing.pool, threading
from concurrent.futures import ThreadPoolExecutor

done = threading.Event()
def write(): (outside / "x").write_text("x")
def raw():
    try:
        write()
    finally:
        done.set()
def nest():
    t = threading.Thread(target=write); t.start(); t.join()
class Sub(threading.Thread):
    def run(self): write()
threading.excepthook = lambda args: None
"""


@pytest.fixture(scope="module")
def started(run: Any) -> Any:
    cases = "".join(f"\ndef case_{number}(old, old_pool):\n    {body}\n" for number, body in enumerate(START.values()))
    return run(
        f"""{PRELUDE}{cases}
def main():
    old = ThreadPoolExecutor(1)
    old.submit(len, "").result()
    old_pool = multiprocessing.pool.ThreadPool(1)
    said = []
    for number in range({len(START)}):
        before = guard.attempts
        with guard.armed():
            globals()[f"case_{{number}}"](old, old_pool)
        said.append(guard.attempts - before)
    old.shutdown()
    old_pool.close()
    return said
""",
        mode="off",
    )


@pytest.mark.parametrize("name", START)
def test_guard_follows_into_threads(started: Any, name: str) -> None:
    assert started.result[list(START).index(name)] == 1


def test_no_thread_wrote_outside(started: Any) -> None:
    assert {Path(refusal["target"]) for refusal in started.refusals} == {started.outside / "x"}
    assert list(started.outside.iterdir()) == []


def test_shared_worker_serves_unwatched_code_unwatched(run: Any) -> None:
    ran = run(
        PRELUDE
        + """
def main():
    pool = ThreadPoolExecutor(1)
    with guard.armed():
        pool.submit(len, "").result()  # the worker starts in the armed context
    pool.submit(write).result()
    free = threading.Thread(target=(outside / "y").write_text, args=("y",)); free.start(); free.join()
    with guard.armed():
        said = type(pool.submit(write).exception()).__name__
    return said
""",
        mode="off",
    )
    assert ran.result == "OutsideActionRefused"
    assert sorted(path.name for path in ran.outside.iterdir()) == ["x", "y"]


def test_worker_threads_of_other_loops_stay_free(run: Any) -> None:
    ran = run(
        PRELUDE
        + """
import types
def work(): write()
work.__module__ = "trio._core._thread_cache"
def main():
    with guard.armed():
        worker = threading.Thread(target=work); worker.start(); worker.join()
""",
        mode="off",
    )
    assert ran.attempts == 0
    assert (ran.outside / "x").exists()


def test_results_and_names_pass_unchanged(run: Any) -> None:
    ran = run(
        PRELUDE
        + """
import functools, inspect
def tool(a, b=2): return [a, b, threading.current_thread().name]
def main():
    seen = []
    original = ThreadPoolExecutor.submit
    with guard.armed(), ThreadPoolExecutor(1, thread_name_prefix="p") as pool:
        first = pool.submit(tool, 1, b=3).result()
        second = pool.submit(functools.partial(tool, 5)).result()
        third = type(pool.submit(int, "x").exception()).__name__
        try:
            pool.submit()
        except TypeError as error:
            fourth = "submit" in str(error)
        names = [ThreadPoolExecutor.submit.__name__, threading.Thread.start.__qualname__]
    return [first, second, third, fourth, names]
"""
    )
    assert ran.result == [[1, 3, "p_0"], [5, 2, "p_0"], "ValueError", True, ["submit", "Thread.start"]]


def test_wrapper_taken_off_by_somebody_is_put_back_and_never_doubled(run: Any) -> None:
    ran = run(
        PRELUDE
        + """
import functools
def depth(function):
    count = 0
    while function is not None:
        count += getattr(function, "__code__", None) is not None and function.__module__ != "x" and "carry" in function.__code__.co_filename
        function = getattr(function, "__wrapped__", None)
    return count
def main():
    before = threading.Thread.start
    with guard.armed(): pass
    threading.Thread.start = before
    with guard.armed():
        t = threading.Thread(target=write); t.start(); t.join()
    inner = threading.Thread.start
    @functools.wraps(inner)
    def theirs(self): return inner(self)
    threading.Thread.start = theirs
    with guard.armed():
        t = threading.Thread(target=write); t.start(); t.join()
    return depth(threading.Thread.start)
""",
        mode="off",
    )
    assert ran.result == 1
    assert ran.attempts == 2
