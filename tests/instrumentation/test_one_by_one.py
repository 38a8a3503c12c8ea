"""Tasks that are done at once are seen one by one, in the order in which they said so."""

import asyncio

import pytest

from spanreplay.instrumentation import one_by_one


async def seen(count: int) -> tuple[list[int], list[int], int]:
    """The order of completion, the order in which an engine saw it, and the most that it saw at once."""
    completed: list[int] = []

    async def work(number: int) -> int:
        await asyncio.sleep(0)
        await one_by_one.in_turn()
        completed.append(number)
        return number

    waiting = {asyncio.create_task(work(number)) for number in range(count)}
    order, most = [], 0
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        most = max(most, len(done))
        order += [task.result() for task in done]
    return completed, order, most


@pytest.mark.parametrize("blind", [False, True])
def test_an_engine_sees_them_in_the_order_of_their_completion(blind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blind:
        monkeypatch.setattr(one_by_one, "getattr", lambda *_: None, raising=False)
    completed, order, most = asyncio.run(seen(8))
    assert order == completed
    assert most == 1


def test_one_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    async def run() -> list[int]:
        await one_by_one.in_turn()
        waiting = asyncio.create_task(one_by_one.in_turn())
        await asyncio.sleep(0)
        waiting.cancel()
        return (await seen(3))[0]

    assert len(asyncio.run(run())) == 3
