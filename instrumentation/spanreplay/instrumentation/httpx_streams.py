"""Response bodies for httpx and httpx2: one that is watched as it is read, and one that comes from the record.

The libraries want a subclass of their own stream classes; it is made where they are known, of these.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

from spanreplay.boundary import boundary
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_reply import BeforeTheEnd, Reply


class _Watched:
    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _finalizing():  # else the names of modules are gone
            self._exchange.closed()


class SyncStream(_Watched):
    """A response body that tells its exchange what is read of it."""

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        try:
            for data in self._inner:
                exchange.chunk(data)
                yield data
        except GeneratorExit:  # no longer read; closed or collected next
            raise
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.exhausted()

    def close(self) -> None:
        """Close the body."""
        try:
            self._inner.close()
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._exchange.closed()


class AsyncStream(_Watched):
    """A response body that tells its exchange what is read of it."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        source = aiter(self._inner)
        try:
            async for data in source:
                exchange.chunk(data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()
        exchange.exhausted()

    async def aclose(self) -> None:
        """Close the body."""
        try:
            await self._inner.aclose()
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._exchange.closed()


class _Recorded:
    def __init__(self, given: Reply, exchange: Exchange) -> None:
        self._given = given
        self._left = iter(given.chunks)
        self._answer = exchange.answer
        self._before_the_end = BeforeTheEnd(given, exchange.answer)


class RecordedSync(_Recorded):
    """The recorded body. Whoever iterates again goes on where the last reader stopped, as on a connection."""

    def __iter__(self) -> Iterator[bytes]:
        for data in self._left:
            turn = self._before_the_end.turn(data)
            if turn is not None:
                turn.wait()
            yield data
        if self._given.ending is not None:
            raise self._given.ending()

    def close(self) -> None:
        """There is nothing to close."""


class RecordedAsync(_Recorded):
    """The recorded body. Whoever iterates again goes on where the last reader stopped, as on a connection."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._left:
            turn = self._before_the_end.turn(data)
            if turn is not None:
                await turn.wait_async()
            yield data
        if self._given.pends and self._answer is not None:
            await boundary.pend(self._answer)
        if self._given.ending is not None:
            raise self._given.ending()
        if self._given.pends:
            raise asyncio.CancelledError

    async def aclose(self) -> None:
        """There is nothing to close."""
