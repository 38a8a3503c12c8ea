"""Agents that answer with a stream: what runs while an item is made belongs to the run, what its reader does in between does not."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from spanreplay.instrumentation.manual import AgentRun

T = TypeVar("T")


def agent_stream(run: AgentRun, invoke: Callable[[], Iterator[T]], seen: Callable[[T], object]) -> Generator[T, Any, None]:
    """The stream of an agent, as a run that begins with the first item asked for.

    Args:
        run: not begun yet; its output is what ``seen`` makes it.
        invoke: starts the agent.
        seen: is shown each item, to set the run's output; what it raises is left out of account.
    """
    run.begin()
    try:
        with run.body():
            source = iter(invoke())
        while True:
            try:
                with run.body():
                    item = next(source)
            except StopIteration:
                break
            with suppress(Exception):
                seen(item)
            try:
                yield item
            except GeneratorExit:
                close = getattr(source, "close", None)
                if close is not None:
                    with run.body():
                        close()
                raise
    except BaseException as error:
        run.end(error)
        raise
    run.end()


async def agent_astream(run: AgentRun, invoke: Callable[[], AsyncIterator[T]], seen: Callable[[T], object]) -> AsyncGenerator[T, Any]:
    """As :func:`agent_stream`, for an asynchronous one."""
    run.begin()
    try:
        with run.body():
            source = aiter(invoke())
        while True:
            try:
                with run.body():
                    item = await anext(source)
            except StopAsyncIteration:
                break
            with suppress(Exception):
                seen(item)
            try:
                yield item
            except GeneratorExit:
                close = getattr(source, "aclose", None)
                if close is not None:
                    with run.body():
                        await close()
                raise
    except BaseException as error:
        run.end(error)
        raise
    run.end()
