"""The frame in which a debugger opens."""

import asyncio
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

import anyio
import pytest

from spanreplay.replay.reexecution.breaking import place

FOUND: list[tuple[FrameType, str]] = []


async def call() -> None:
    FOUND.append(place(sys._getframe()))


def of_a_library() -> Any:
    """The same call, made by a coroutine that lies in no file of the user's."""
    code: CodeType = call.__code__.replace(co_filename="<library>")
    return FunctionType(code, {**globals(), "__name__": "library"})()


async def own() -> None:
    await cast("Any", of_a_library())


def frame_of(main: Any) -> tuple[str, str]:
    FOUND.clear()
    asyncio.run(main())
    frame, remark = FOUND[0]
    return frame.f_code.co_name, remark


def test_a_task_of_the_users_own_is_looked_at() -> None:
    async def main() -> None:
        await asyncio.gather(own(), own())

    assert frame_of(main) == ("own", "")


def test_a_task_of_a_library_alone_is_looked_at_where_it_is_waited_for() -> None:
    async def main() -> None:
        await asyncio.gather(of_a_library(), of_a_library())

    async def outer() -> None:
        await main()

    name, remark = frame_of(outer)
    assert (name, "this one waits for it" in remark) == ("main", True)


async def in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(of_a_library())
        await asyncio.sleep(0)


async def in_a_group_of_anyio() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(of_a_library)


async def waits() -> None:
    await asyncio.wait([asyncio.ensure_future(of_a_library())])


async def waits_for() -> None:
    await asyncio.wait_for(asyncio.ensure_future(of_a_library()), 60)


@pytest.mark.parametrize("main", [in_a_group, in_a_group_of_anyio, waits, waits_for])
def test_whoever_waits_by_other_means_is_found_too(main: Any) -> None:
    async def outer() -> None:
        await asyncio.gather(asyncio.sleep(0), main())

    name, remark = frame_of(outer)
    assert (name, "this one waits for it" in remark) == (main.__name__, True)


def test_a_task_that_nobody_waits_for_is_none_of_the_users_frames() -> None:
    async def main() -> None:
        _task = asyncio.create_task(of_a_library())  # noqa: RUF006
        await asyncio.sleep(0)

    name, remark = frame_of(main)
    assert (name, remark) == ("call", ", by a task without a frame of your own")
