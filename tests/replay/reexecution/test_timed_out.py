"""A deadline that a program ran into when it was recorded expires in a replay too, where the record answers at once."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import anyio
import pytest

from spanreplay.instrumentation import agent_run, tool
from support.taped import Tape, recorded, replayed, told

LIMIT_S = 0.03
LONG_S = 60.0

limit_s = LIMIT_S
recording = True
asked = "b"
before = False


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


FORMS = [by_timeout, by_wait_for, by_move_on_after, by_fail_after, in_tasks_below, nested, again, beside_a_client]


def agent(form: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[None]]:
    async def main() -> None:
        with agent_run("agent") as run:
            run.output = await form()

    return main


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("recording", True), ("asked", "b"), ("before", False), ("limit_s", LIMIT_S)):
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
