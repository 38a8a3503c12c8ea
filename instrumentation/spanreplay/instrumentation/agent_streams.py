"""Agents that answer with a stream: what runs while an item is made belongs to the run, what its reader does in between does not."""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, TypeVar

from spanreplay.boundary.boundary import here
from spanreplay.boundary.streams import start_unregistered
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.manual import AgentRun

T = TypeVar("T")


@contextmanager
def _running(run: AgentRun, finished: Callable[[], object] | None) -> Iterator[None]:
    """The run begins here, and ends with what is raised inside, if anything is."""
    run.begin()
    try:
        yield
    except BaseException as error:
        run.end(error)
        raise
    if finished is not None:
        with suppress(Exception):
            finished()
    run.end()


def agent_stream(
    run: AgentRun, invoke: Callable[[], Iterator[T]], seen: Callable[[T], object], finished: Callable[[], object] | None = None
) -> Generator[T, Any, None]:
    """The stream of an agent, as a run that begins with the first item asked for.

    Args:
        run: not begun yet; its output is what ``seen`` makes it.
        invoke: starts the agent.
        seen: is shown each item, to set the run's output; what it raises is left out of account.
        finished: is called when all items were read, for an output that is made of what was seen.
    """
    with _running(run, finished):
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


async def agent_astream(
    run: AgentRun, invoke: Callable[[], AsyncIterator[T]], seen: Callable[[T], object], finished: Callable[[], object] | None = None
) -> AsyncGenerator[T, Any]:
    """As :func:`agent_stream`, for an asynchronous one."""
    with _running(run, finished):
        with run.body():
            source = aiter(invoke())
        begun = False
        while True:
            try:
                with run.body():
                    item = await anext(source) if begun else await start_unregistered(source.__anext__)
                begun = True
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


def observed_astream(
    make: Callable[[], AgentRun | None], invoke: Callable[[], AsyncIterator[T]], seen: Callable[[AgentRun, T], object]
) -> AsyncIterator[T]:
    """As :func:`agent_astream`, for a run that is made when the first item is asked for.

    Args:
        make: gives the run, not begun yet; ``None`` where it is recorded already.
        invoke: starts the agent; what it gives is handed on as it is while spanreplay is off.
        seen: is shown the run and each item.
    """
    return invoke() if here() is None else _made(make, invoke, seen)


async def _made(
    make: Callable[[], AgentRun | None], invoke: Callable[[], AsyncIterator[T]], seen: Callable[[AgentRun, T], object]
) -> AsyncGenerator[T]:
    scope = here()
    run = None if scope is None else attempt(scope, "the run of an agent", make)
    source = invoke() if run is None else agent_astream(run, invoke, functools.partial(seen, run))
    async with aclosing(source) as items:  # type: ignore[type-var]
        async for item in items:
            yield item
