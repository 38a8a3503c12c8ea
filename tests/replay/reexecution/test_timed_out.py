"""A deadline that a program ran into when it was recorded expires in a replay too, where the record answers at once."""

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable

import anyio
import pytest
import trio

from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.shims import callbacks, deadlines
from spanreplay.replay.reexecution import orders
from support.taped import Tape, recorded, replayed, told

LIMIT_S = 0.03
LONG_S = 60.0

limit_s = LIMIT_S
recording = True
asked = "b"
before = False
cancels = True


@tool(effect="read")
async def look(name: str) -> str:
    return name


async def idle() -> None:
    """Work of the agent's own, which takes too long when it is recorded and no time in the replay."""
    if recording:
        await asyncio.Event().wait()


async def several() -> str:
    if before and not recording:
        await look("more")
    await look("a")
    await idle()
    await look(asked)
    return "done"


async def by_timeout() -> str:
    try:
        async with asyncio.timeout(limit_s):
            return await several()
    except TimeoutError:
        return await look("late")


async def by_wait_for() -> str:
    try:
        return await asyncio.wait_for(several(), limit_s)
    except TimeoutError:
        return await look("late")


async def by_move_on_after() -> str:
    with anyio.move_on_after(limit_s) as scope:
        return await several()
    assert scope.cancelled_caught
    return await look("late")


async def by_fail_after() -> str:
    try:
        with anyio.fail_after(limit_s):
            return await several()
    except TimeoutError:
        return await look("late")


async def in_tasks_below() -> str:
    try:
        async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
            group.create_task(several())
            group.create_task(several())
    except TimeoutError:
        return await look("late")
    return "done"


async def nested() -> str:
    try:
        async with asyncio.timeout(LONG_S):
            return await by_timeout() + await look("after")
    except TimeoutError:
        return "the outer one"


async def again() -> str:
    """The second attempt asks what the first one would have asked next."""
    global recording
    was = recording
    for _ in range(2):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s if was and recording else LONG_S):
                await several()
                break
        recording = False  # the second one is fast when it is recorded
    recording = was
    return "done"


async def client() -> None:
    """One of HTTP has deadlines of its own, where it sends."""
    if recording:
        async with asyncio.timeout(LONG_S):
            pass


async def beside_a_client() -> str:
    await client()
    return await by_timeout()


async def of_a_task_that_was_there() -> str:
    task = asyncio.create_task(several())
    await asyncio.sleep(0)
    try:
        return await asyncio.wait_for(task, limit_s)
    except TimeoutError:
        return await look("late")


async def around_tasks_that_were_there() -> str:
    tasks = [asyncio.create_task(several()) for _ in range(2)]
    try:
        async with asyncio.timeout(limit_s):
            await asyncio.gather(*tasks)
    except TimeoutError:
        return await look("late")
    return "done"


async def with_no_call_after() -> str:
    """The answer came late, and what follows takes too long then."""
    try:
        async with asyncio.timeout(limit_s):
            await look("a")
            if recording:
                await asyncio.sleep(LONG_S)
    except TimeoutError:
        return await look("late")
    return "done"


async def swallowed() -> str:
    async with asyncio.timeout(limit_s):
        await look("a")
        try:
            if recording:
                await asyncio.sleep(LONG_S)
        except asyncio.CancelledError:
            pass
    return await look("went on")


async def waited_for_with_no_call_after() -> str:
    async def works() -> str:
        await look("a")
        if recording:
            await asyncio.sleep(LONG_S)
        return "in time"

    try:
        return await asyncio.wait_for(works(), limit_s)
    except TimeoutError:
        return "late"


def in_trio(form: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    """The form, in a thread that runs trio, which has a call that goes by trio."""

    async def in_thread() -> str:
        return await asyncio.to_thread(trio.run, form)

    in_thread.__name__ = form.__name__
    return in_thread


@in_trio
async def by_trio() -> str:
    import trio  # type: ignore[import-not-found, unused-ignore]

    async def both(number: int) -> None:
        await look(f"a {number}")
        if recording:
            await trio.sleep_forever()
        await look("b")

    with trio.move_on_after(limit_s):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(both, 1)
            nursery.start_soon(both, 2)
    try:
        with trio.fail_after(limit_s):
            await both(3)
    except trio.TooSlowError:
        return await look("late")
    return "done"


@tool(effect="read")
async def slow(name: str) -> str:
    if recording:
        await asyncio.sleep(LIMIT_S * 3.5)
    return name


async def in_block(awaited: Awaitable[str], seconds: float) -> str:
    async with asyncio.timeout(seconds):
        return await awaited


async def waited_for(awaited: Awaitable[str], seconds: float) -> str:
    return await asyncio.wait_for(awaited, seconds)


async def polled(wait: Callable[[Awaitable[str], float], Awaitable[str]] = waited_for) -> str:
    """What comes of a call is waited for in vain a few times, by somebody else, who loses none of it."""
    came: asyncio.Queue[str] = asyncio.Queue()

    async def works() -> None:
        for name in "ab":
            await came.put(await slow(name))

    task = asyncio.create_task(works())
    found: list[str] = []
    while len(found) < 2:
        try:
            found.append(await wait(came.get(), limit_s))
        except TimeoutError:
            if not found:
                await look("nothing yet")
    await task
    return "".join(found)


async def polled_before_the_call_begins() -> str:
    came: asyncio.Queue[str] = asyncio.Queue()

    async def works() -> None:
        if recording:
            await asyncio.sleep(LIMIT_S * 2.5)
        await came.put(await look("a"))

    task = asyncio.create_task(works())
    while True:
        with contextlib.suppress(TimeoutError):
            found = await waited_for(came.get(), limit_s)
            await task
            return found


async def polled_in_blocks() -> str:
    return await polled(in_block)


FORMS = [
    by_timeout,
    by_wait_for,
    by_move_on_after,
    by_fail_after,
    in_tasks_below,
    nested,
    again,
    beside_a_client,
    of_a_task_that_was_there,
    around_tasks_that_were_there,
    with_no_call_after,
    swallowed,
    waited_for_with_no_call_after,
    by_trio,
    polled,
    polled_in_blocks,
    polled_before_the_call_begins,
]


def agent(form: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[None]]:
    async def main() -> None:
        with agent_run("agent") as run:
            run.output = await form()

    return main


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("recording", True), ("asked", "b"), ("before", False), ("cancels", True), ("limit_s", LIMIT_S)):
        monkeypatch.setattr(f"{__name__}.{name}", value)


def record(form: Callable[[], Awaitable[str]], monkeypatch: pytest.MonkeyPatch) -> Tape:
    tape = recorded(agent(form))
    monkeypatch.setattr(f"{__name__}.recording", False)
    monkeypatch.setattr(f"{__name__}.limit_s", LONG_S)  # nothing but the record lets it expire
    return tape


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_deadline_that_expired_expires_again(form: Callable[[], Awaitable[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(form, monkeypatch)
    result = replayed(tape, agent(form))
    assert told(result) == []
    assert result.equal
    assert (result.verdict.matched, result.verdict.recorded) == (len(tape.paths) - 1,) * 2


@pytest.mark.parametrize("form", FORMS[:4], ids=lambda form: form.__name__)
def test_a_deadline_that_did_not_expire_hides_no_difference(form: Callable[[], Awaitable[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.recording", False)
    monkeypatch.setattr(f"{__name__}.limit_s", LONG_S)
    tape = recorded(agent(form))
    monkeypatch.setattr(f"{__name__}.asked", "c")
    result = replayed(tape, agent(form))
    assert [(kind, field) for kind, _, _, field in told(result)] == [("input", "arguments.name")]


@pytest.mark.parametrize("form", FORMS[:4], ids=lambda form: form.__name__)
def test_a_change_before_the_deadline_is_a_difference(form: Callable[[], Awaitable[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(form, monkeypatch)
    monkeypatch.setattr(f"{__name__}.before", True)
    result = replayed(tape, agent(form))
    assert not result.equal
    assert told(result)[0][0] != "unreached"


async def cancelled_between_calls() -> str:
    task = asyncio.create_task(several())
    await asyncio.sleep(0)
    await look("main")
    if cancels:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return await look("end")


async def given_up_after_a_wait() -> str:
    tasks = [asyncio.create_task(several()) for _ in range(2)]
    done, pending = await asyncio.wait(tasks, timeout=LIMIT_S)
    for task in pending:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return await look(f"{len(done)} {len(pending)}")


@pytest.mark.parametrize("form", [cancelled_between_calls, given_up_after_a_wait], ids=lambda form: form.__name__)
def test_a_task_that_was_cancelled_makes_no_call_that_it_never_made(
    form: Callable[[], Awaitable[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = record(form, monkeypatch)
    result = replayed(tape, agent(form))
    assert told(result) == []
    assert (result.verdict.matched, result.verdict.recorded) == (len(tape.paths) - 1,) * 2


def test_a_task_that_is_not_cancelled_any_more_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(cancelled_between_calls, monkeypatch)
    monkeypatch.setattr(f"{__name__}.cancels", False)
    monkeypatch.setattr("spanreplay.boundary.boundary.CANCEL_GRACE_S", 0.01)
    assert [kind for kind, *_ in told(replayed(tape, agent(cancelled_between_calls)))] == ["never_recorded"]


def test_a_change_before_the_cancellation_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record(cancelled_between_calls, monkeypatch)
    monkeypatch.setattr(f"{__name__}.before", True)
    result = replayed(tape, agent(cancelled_between_calls))
    assert [(kind, field) for kind, _, _, field in told(result)] == [("input", "arguments.name")]


def test_what_is_entered_and_never_left_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with agent_run("agent"):
            for _ in range(3):
                await asyncio.timeout(LONG_S).__aenter__()

    recorded(main)
    gc.collect()
    assert not deadlines.entered
    assert not deadlines._to_expire


async def in_time() -> str:
    """A machine that is busy takes longer than the program allows."""

    async def works() -> str:
        if not recording:
            await asyncio.sleep(5 * LIMIT_S)
        return await look("a")

    try:
        return await asyncio.wait_for(works(), limit_s)
    except TimeoutError:
        return "late"


def test_a_deadline_that_did_not_expire_waits_for_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.limit_s", LONG_S)
    tape = recorded(agent(in_time))
    monkeypatch.setattr(f"{__name__}.recording", False)
    monkeypatch.setattr(f"{__name__}.limit_s", LIMIT_S)
    monkeypatch.setattr(orders, "WAIT_S", 1.0)
    assert told(replayed(tape, agent(in_time))) == []


async def behind_another_one() -> None:
    asked_for = asyncio.Event()

    async def other() -> None:
        if not recording:
            await asked_for.wait()
        await look("other")

    task = asyncio.create_task(other())
    if recording:
        await task
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(look("a"), limit_s)
    asked_for.set()
    await task


def test_an_answer_that_the_agent_gave_up_before_it_came_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with agent_run("agent"):
            await behind_another_one()

    monkeypatch.setattr(f"{__name__}.limit_s", LONG_S)
    tape = recorded(main)
    monkeypatch.setattr(f"{__name__}.recording", False)
    monkeypatch.setattr(f"{__name__}.limit_s", LIMIT_S)
    monkeypatch.setattr(orders, "WAIT_S", 0.02)
    result = replayed(tape, main)
    assert [kind for kind, *_ in told(result)] == ["unreached"]
    assert "gave up" in result.verdict.differences[0].detail
    assert len(result.verdict.unreached) == 1


def test_a_job_that_an_sdk_starts_only_while_it_is_recorded_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asks(name: str) -> str:
        if recording or name != "warm":
            with callbacks.out_of_order():
                await asyncio.to_thread(str)
        return await look(name)

    async def main() -> None:
        with agent_run("agent"):
            for name in ("warm", "a", "b"):
                await asyncio.create_task(asks(name))

    tape = recorded(main)
    monkeypatch.setattr(f"{__name__}.recording", False)
    monkeypatch.setattr(orders, "WAIT_S", 0.02)
    result = replayed(tape, main)
    assert result.equal
    assert result.verdict.order_relaxed == 0
