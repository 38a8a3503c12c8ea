"""What the standard library keeps in sets comes in the order of the program."""

import asyncio
import concurrent.futures
import gc
import warnings
from typing import Any

import pytest

from spanreplay.instrumentation import tool
from spanreplay.instrumentation.shims.ordered_sets import InOrder
from support.taped import recorded, recording, replayed, told

N = 12


@tool(effect="read")
async def same() -> int:
    for _ in range(3):
        await asyncio.sleep(0)
    return len(answers)


@tool(effect="read")
def look(text: str) -> str:
    return text


answers: list[int] = []
kept: list[Any] = []


async def one(name: int) -> int:
    found = await same()
    answers.append(found)
    look(f"{name}: {found}")
    return name


async def completed() -> list[int]:
    return [await each for each in asyncio.as_completed([one(name) for name in range(N)])]


async def first_completed() -> list[int]:
    order: list[int] = []
    left = {asyncio.create_task(one(name)) for name in range(N)}
    while left:
        done, left = await asyncio.wait(left, return_when="FIRST_COMPLETED")
        for each in done:
            look(f"done {each.result()}")
            order.append(each.result())
    return order


@pytest.mark.parametrize("agent", [completed, first_completed], ids=lambda a: a.__name__)
def test_identical_calls_are_answered_as_they_were(agent: Any) -> None:
    answers.clear()
    tape = recorded(agent)
    for _ in range(3):
        kept.append([object() for _ in range(101)])  # addresses shift
        assert told(replayed(tape, agent)) == []


def test_as_completed_starts_its_tasks_in_the_order_given() -> None:
    started: list[int] = []

    async def begins(name: int) -> int:
        started.append(name)
        return name

    async def main() -> list[int]:
        twice = begins(N)
        found = [begins(name) for name in range(N)]
        return [await each for each in asyncio.as_completed([*found, twice, twice], timeout=5)]

    with recording():
        assert asyncio.run(main()) == list(range(N + 1))
    assert started == list(range(N + 1))


def test_as_completed_refuses_what_it_refused() -> None:
    async def main() -> None:
        coroutine = one(1)
        with pytest.raises(TypeError, match="expect"):
            list(asyncio.as_completed(coroutine))  # type: ignore[arg-type]
        coroutine.close()
        with pytest.raises(TypeError):
            list(asyncio.as_completed([3]))  # type: ignore[arg-type]
        never = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            [await each for each in asyncio.as_completed([never], timeout=0.001)]
        with pytest.raises(ValueError, match="wrong"):
            [await each for each in asyncio.as_completed([_fails()])]

    async def _fails() -> int:
        raise ValueError("wrong")

    with warnings.catch_warnings(), recording():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()


def test_wait_gives_what_is_done_in_the_order_in_which_it_was() -> None:
    async def main() -> tuple[list[int], list[int], int]:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(N)]
        number = {future: name for name, future in enumerate(futures)}
        for name in reversed(range(N // 2)):
            loop.call_soon(futures[name].set_result, name)
        done, left = await asyncio.wait(futures, return_when="FIRST_COMPLETED")
        first = done.pop()
        assert first not in done
        return [number[first], *(number[each] for each in done)], [number[each] for each in left], len(done | left)

    with recording():
        done, left, count = asyncio.run(main())
    assert done == list(reversed(range(N // 2)))
    assert left == list(range(N // 2, N))
    assert count == N - 1


def test_wait_knows_the_order_of_what_was_done_while_it_was_woken() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(N)]

        def at_once() -> None:
            for name in reversed(range(1, N)):
                futures[name].set_result(name)

        loop.call_soon(futures[0].set_result, 0)
        loop.call_soon(lambda: loop.call_soon(at_once))
        done, left = await asyncio.wait(set(futures), return_when="FIRST_COMPLETED")
        assert not left
        return [each.result() for each in done]

    with recording():
        assert asyncio.run(main()) == [0, *reversed(range(1, N))]


def test_wait_of_threads_does_too() -> None:
    futures: list[concurrent.futures.Future[int]] = [concurrent.futures.Future() for _ in range(N)]
    with recording():
        assert not concurrent.futures.wait(futures, timeout=0).done
        for name in reversed(range(N)):
            futures[name].set_result(name)
        found = concurrent.futures.wait(set(futures))
    assert [each.result() for each in found.done] == list(reversed(range(N)))
    assert found.not_done == set()


def test_an_ordered_set_is_a_set() -> None:
    made = InOrder.of([3, 1, 2])
    assert list(made) == [3, 1, 2]
    assert made == {1, 2, 3}
    made.add(0)
    made.discard(1)
    assert list(made) == [3, 2, 0]
    assert [made.pop() for _ in range(3)] == [3, 2, 0]
    with pytest.raises(KeyError):
        made.pop()
