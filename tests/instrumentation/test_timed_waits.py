"""What had not come when a program looked has not come yet in its replay, where answers take no time; what had is waited for."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, tool
from support.taped import Tape, recorded, replayed, told

SOON_S = 0.001
LATER_S = 0.03
recording = True
gate = threading.Event()


@tool(effect="read")
def look(what: object) -> str:
    return "answer"


@tool(effect="read")
async def alook(what: object) -> str:
    return "answer"


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(f"{__name__}.recording", True)
    gate.clear()
    yield
    gate.set()


def record(agent: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Tape:
    tape = recorded(main(agent))
    gate.clear()
    monkeypatch.setattr(f"{__name__}.recording", False)
    return tape


def main(agent: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with agent_run("agent") as made:
            made.output = agent()
        return made.output

    return run


def held() -> str:
    """Takes until the gate opens when it is recorded, and no time in a replay."""
    if recording:
        gate.wait()
    return "done"


def until(comes: Callable[[], object]) -> int:
    """How often something has not come yet, with a call each time."""
    number = 0
    while not comes():
        number += 1
        look(number)
        if number == 3:
            gate.set()
    return number


def answered(ask: Callable[[], object]) -> Callable[[], bool]:
    def comes() -> bool:
        try:
            ask()
        except (TimeoutError, queue.Empty):
            return False
        return True

    return comes


def of_future(ask: Callable[["Future[str]"], Callable[[], object]]) -> Callable[[], int]:
    def agent() -> int:
        with ThreadPoolExecutor(1) as pool:
            return until(ask(pool.submit(held)))

    return agent


def in_thread(ask: Callable[[threading.Thread, threading.Event, "queue.Queue[str]"], Callable[[], object]]) -> Callable[[], int]:
    def agent() -> int:
        event, items = threading.Event(), queue.Queue[str]()

        def work() -> None:
            items.put(held())
            event.set()

        thread = threading.Thread(target=work)
        thread.start()
        number = until(ask(thread, event, items))
        thread.join()
        return number

    return agent


FORMS = {
    "result": of_future(lambda future: answered(lambda: future.result(timeout=SOON_S))),
    "exception": of_future(lambda future: answered(lambda: future.exception(SOON_S))),
    "done": of_future(lambda future: lambda: future.done()),
    "wait": in_thread(lambda thread, event, items: lambda: event.wait(SOON_S)),
    "is_set": in_thread(lambda thread, event, items: lambda: event.is_set()),
    "is_alive": in_thread(lambda thread, event, items: lambda: not thread.is_alive()),
    "get": in_thread(lambda thread, event, items: answered(lambda: items.get(timeout=SOON_S))),
    "get_nowait": in_thread(lambda thread, event, items: answered(lambda: items.get_nowait())),
    "empty": in_thread(lambda thread, event, items: lambda: not items.empty()),
}


@pytest.mark.parametrize("file", ["crewai/agent/core.py", "smolagents/local_python_executor.py", "some/library.py"])
def test_a_limit_that_a_framework_keeps_for_the_program(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {"__name__": "a_framework"}
    code = "def limited(future, seconds):\n    try:\n        return future.result(seconds)\n    except TimeoutError:\n        return 'late'"
    exec(compile(code, f"/lib/site-packages/{file}", "exec"), space)

    def agent() -> Any:
        with ThreadPoolExecutor(1) as pool:
            said = space["limited"](pool.submit(held), SOON_S if recording else LATER_S)
            gate.set()
        return said

    tape = record(agent, monkeypatch)
    again = replayed(tape, main(agent))
    assert again.value == ("done" if file == "some/library.py" else "late")


@pytest.mark.parametrize("form", FORMS)
def test_one_looks_as_often_as_when_it_was_recorded(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(FORMS[form], monkeypatch)
    assert len(tape.paths) > 3
    for _ in range(3):
        result = replayed(tape, main(FORMS[form]))
        assert told(result) == []
        assert (result.verdict.matched, result.verdict.order_relaxed) == (len(tape.paths) - 1, 0)


def late() -> str:
    """Has come when it is recorded before anybody looks; takes longer than one waits in a replay."""
    if not recording:
        gate.wait(LATER_S)
    return "done"


def in_time() -> list[object]:
    event, items = threading.Event(), queue.Queue[str]()

    def work() -> str:
        items.put(late())
        event.set()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        future, other = pool.submit(work), pool.submit(late)
        if recording:
            other.result()
            future.result()
        return [items.get(timeout=SOON_S), event.wait(SOON_S), future.result(SOON_S), other.done()]


def test_what_came_in_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result = replayed(record(in_time, monkeypatch), main(in_time))
    assert (told(result), result.value) == ([], ["done", True, "done", True])


def test_what_never_comes_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("orders", "turns"):
        monkeypatch.setattr(f"spanreplay.replay.reexecution.{module}.WAIT_S", 0.01)

    def agent() -> bool:
        event = threading.Event()
        if recording:
            event.set()
        return event.wait(SOON_S)

    result = replayed(record(agent, monkeypatch), main(agent))
    assert result.value is False
    assert [kind for kind, *_ in told(result)] == ["output"]


def job(number: int) -> None:
    held()
    look(number)


def cancelled_one_by_one() -> list[bool]:
    with ThreadPoolExecutor(1) as pool:
        jobs = [pool.submit(job, number) for number in range(4)]
        if recording:
            while not jobs[0].running():
                pass
        look("main")
        cancelled = [one.cancel() for one in jobs]
        gate.set()
    look(cancelled)
    return cancelled


def cancelled_with_the_pool() -> int:
    pool = ThreadPoolExecutor(1)
    jobs = [pool.submit(job, number) for number in range(4)]
    if recording:
        while not jobs[0].running():
            pass
    look("main")
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    pool.shutdown()
    return sum(one.cancelled() for one in jobs)


@pytest.mark.parametrize("agent", [cancelled_one_by_one, cancelled_with_the_pool])
def test_a_job_that_was_cancelled_does_not_begin(agent: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(agent, monkeypatch)
    for _ in range(3):
        gate.clear()
        result = replayed(tape, main(agent))
        assert (told(result), result.verdict.order_relaxed) == ([], 0)
        assert result.value in ([False, True, True, True], 3)


def test_a_job_that_had_begun_is_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent() -> list[bool]:
        with ThreadPoolExecutor(1) as pool:
            jobs = [pool.submit(late), pool.submit(look, "begun")]
            if recording:
                jobs[1].result()
            return [one.cancel() for one in jobs]

    result = replayed(record(agent, monkeypatch), main(agent))
    assert (told(result), result.value) == ([], [False, False])


def test_a_job_that_had_begun_is_not_cancelled_with_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent() -> list[bool]:
        pool = ThreadPoolExecutor(1)
        jobs = [pool.submit(late), pool.submit(look, "begun")]
        if recording:
            jobs[1].result()
        pool.shutdown(cancel_futures=True)
        return [one.cancelled() for one in jobs]

    result = replayed(record(agent, monkeypatch), main(agent))
    assert (told(result), result.value) == ([], [False, False])


async def polled() -> list[object]:
    items: asyncio.Queue[str] = asyncio.Queue()
    opened, event = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        if recording:
            await opened.wait()
        items.put_nowait("item")
        event.set()

    task = asyncio.create_task(work())
    found: list[object] = []
    while len(found) < 2:
        found.append(await alook("next"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), SOON_S)
            found.append("event")
    try:
        async with asyncio.timeout(SOON_S):
            found.append(await items.get())
    except TimeoutError:
        found.append(await alook("no item"))
    opened.set()
    found.append(await items.get())
    await task
    return found


def test_what_a_task_gave_up_to_wait_for_stays_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent() -> list[object]:
        return asyncio.run(polled())

    tape = record(agent, monkeypatch)
    for _ in range(3):
        result = replayed(tape, main(agent))
        assert (told(result), result.value) == ([], ["answer", "answer", "answer", "item"])


def test_a_queue_still_has_coroutine_functions() -> None:
    def agent() -> None:
        async def get() -> None:
            items: asyncio.Queue[int] = asyncio.Queue()
            assert asyncio.iscoroutinefunction(items.get)
            items.put_nowait(1)
            waiting: Any = items.get()
            assert (waiting.__qualname__, await waiting) == ("Queue.get", 1)

        asyncio.run(get())
        look("x")

    tape = recorded(main(agent))
    assert tape.outcomes == ["ok", "ok"]
