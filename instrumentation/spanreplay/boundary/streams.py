"""Calls that answer with a stream: generators and asynchronous generators.

A step begins with the first ``next()``, as the body does, and ends once: when the stream is read to its end, left early, closed,
collected, or fails. ``send``, ``throw`` and the return value reach and come from the wrapped generator.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, Protocol, TypeVar, cast

from spanreplay.boundary.boundary import again, begin, pend, unreadable
from spanreplay.boundary.call import Answer, Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.codec import CodecError, Encoded

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def _keep(step: Step, items: list[Encoded], item: object) -> None:
    encoded = step.encoded(item)
    items.append(encoded if encoded is not None else Encoded(text="null", lossy=True, typed=False))


# ---- generators -------------------------------------------------------------------------------------------------


def stream(scope: Scope, call: Call, invoke: Callable[[], Iterator[T]]) -> Generator[T, Any, Any]:
    """Make a call that gives its answer as a generator or iterator."""
    step = begin(scope, call)
    if step is None:
        return (yield from invoke())
    answer = step.ask()
    if answer is not None:
        return (yield from cast("Generator[T, Any, Any]", _replayed(step, answer)))
    items: list[Encoded] = []
    try:
        with step.body():
            source = cast("Generator[T, Any, Any]", iter(invoke()))
            item = next(source)
        while True:
            _keep(step, items, item)
            try:
                sent = yield item
            except GeneratorExit:
                _close(step, source)
                raise
            except BaseException as error:
                if not hasattr(source, "throw"):
                    raise
                with step.body():
                    item = source.throw(error)
            else:
                with step.body():
                    item = next(source) if sent is None else source.send(sent)
    except StopIteration as stop:
        step.end("ok", result=step.encoded(stop.value), items=items)
        return stop.value
    except BaseException as error:
        step.fail(error, items=items)
        raise


def _close(step: Step, source: Iterator[Any]) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        with step.body():
            close()


def _replayed(step: Step, answer: Answer) -> Generator[object, Any, Any]:
    recorded = _Recorded(step, answer)
    thrown: BaseException | None = None
    try:
        for item in recorded.items():
            try:
                yield item
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 — what the body did about it is in the record
                thrown = error
        if answer.turn is not None:
            answer.turn.wait()
        return recorded.finish(thrown)
    except BaseException as error:
        recorded.fail(error)
        raise
    finally:
        recorded.given()


class _Recorded:
    """A recorded stream on its way to the agent."""

    def __init__(self, step: Step, answer: Answer) -> None:
        self.step = step
        self.answer = answer
        self._given: list[Encoded] = []

    def items(self) -> Iterator[object]:
        """What it gave, in order."""
        turn = self.answer.turn
        for item in json.loads(self.answer.items or "[]"):
            if turn is not None:
                turn.taken()
            text = json.dumps(item)
            self._given.append(Encoded(text=text, lossy=False, typed=False))
            yield self._read(codec.decode, text)

    def _read(self, decode: Callable[[str], T], text: str) -> T:
        try:
            return decode(text)
        except CodecError as error:
            raise unreadable(self.answer, error) from error

    def finish(self, thrown: BaseException | None = None) -> object:
        """How it ended: gives the return value, or raises.

        Args:
            thrown: what the agent has thrown into the stream last.
        """
        step, answer = self.step, self.answer
        if answer.error is not None:
            error = self._read(codec.decode_exception, answer.error)
            if thrown is not None and type(thrown) is type(error) and str(thrown) == str(error):
                error = thrown
            step.fail(error, outcome=answer.outcome, items=self._given)
            raise error
        if answer.outcome == "abandoned" and answer.beyond is not None:
            raise answer.beyond()
        value: object = None if answer.result is None else self._read(codec.decode, answer.result)
        result = None if answer.result is None else again(answer.result)
        step.end("ok", result=result, items=self._given)
        return value

    def fail(self, error: BaseException) -> None:
        """The agent has left it, or was told to stop."""
        self.step.fail(error, items=self._given)

    def given(self) -> None:
        """It is over, however it ended."""
        if self.answer.turn is not None:
            self.answer.turn.given()


# ---- asynchronous generators ------------------------------------------------------------------------------------


class Source(Protocol[T_co]):
    """What an asynchronous generator gives its items through."""

    async def asend(self, value: Any, /) -> T_co:
        """The next item. Raises ``StopAsyncIteration`` at the end."""
        ...

    async def athrow(self, error: BaseException, /) -> T_co:
        """Raise ``error`` where the generator waits; gives the next item."""
        ...

    async def aclose(self) -> None:
        """Leave it."""
        ...


async def shell(source: Source[T]) -> AsyncGenerator[T, Any]:
    """An asynchronous generator around ``source``: what ``yield from`` would be."""
    try:
        item = await source.asend(None)
        while True:
            try:
                sent = yield item
            except GeneratorExit:
                await source.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 — handed on
                item = await source.athrow(error)
            else:
                item = await source.asend(sent)
    except StopAsyncIteration:
        return


def astream(scope: Scope, call: Call, invoke: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, Any]:
    """Make a call that gives its answer as an asynchronous generator or iterator. Begins and ends as :func:`stream`."""
    return shell(AsyncStream(scope, call, invoke))


def start_unregistered(make: Callable[[], T]) -> T:
    """Begin to iterate an inner generator without telling the event loop of it: whoever wraps it closes it.

    A loop that ends closes every generator that it knows of at the same time, and two that wrap each other would be closed twice.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return make()
    finally:
        sys.set_asyncgen_hooks(*hooks)


class Plain(Generic[T]):
    """A source that is an asynchronous generator or iterator itself."""

    def __init__(self, invoke: Callable[[], AsyncIterator[T]]) -> None:
        self._invoke = invoke
        self._inner: AsyncGenerator[T, Any] | None = None

    async def asend(self, value: Any, /) -> T:
        """The next item."""
        inner = self._inner
        if inner is None:
            inner = self._inner = cast("AsyncGenerator[T, Any]", aiter(self._invoke()))
            return await start_unregistered(inner.__anext__)
        return await (inner.__anext__() if value is None else inner.asend(value))

    async def athrow(self, error: BaseException, /) -> T:
        """Raise ``error`` where the generator waits; an iterator that is no generator is left, and ``error`` raised here."""
        throw = getattr(self._inner, "athrow", None)
        if throw is None:
            raise error
        item: T = await throw(error)
        return item

    async def aclose(self) -> None:
        """Close it, where it can be closed."""
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()


class AsyncStream(Generic[T]):
    """A source whose items are one step's."""

    def __init__(self, scope: Scope, call: Call, invoke: Callable[[], AsyncIterator[T]]) -> None:
        self._begin = (scope, call)
        self._body: Source[T] = Plain(invoke)
        self._step: Step | None = None
        self._items: list[Encoded] = []
        self._begun = False

    async def asend(self, value: Any, /) -> T:
        """The next item."""
        if not self._begun:
            self._begun = True
            step = begin(*self._begin)
            if step is not None:
                step.will_be_awaited()
            answer = None if step is None else step.ask()
            if step is not None and answer is not None:
                self._body = cast("Source[T]", _AsyncReplayed(step, answer))
            else:
                self._step = step
        return await self._advance(lambda: self._body.asend(value))

    async def _advance(self, make: Callable[[], Awaitable[T]], thrown: BaseException | None = None) -> T:
        step = self._step
        if step is None:
            return await make()
        try:
            with step.body():
                item = await make()
        except StopAsyncIteration:
            step.end("ok", items=self._items)
            raise
        except asyncio.CancelledError as error:
            if error is thrown:  # a loop that ends cancels the closing of what nobody reads any more
                step.end("abandoned", items=self._items)
            else:
                step.fail(error, items=self._items)
            raise
        except BaseException as error:
            step.fail(error, items=self._items)
            raise
        _keep(step, self._items, item)
        return item

    async def athrow(self, error: BaseException, /) -> T:
        """Raise ``error`` in the body."""
        return await self._advance(lambda: self._body.athrow(error), error)

    async def aclose(self) -> None:
        """Leave it."""
        step = self._step
        if step is None:
            await self._body.aclose()
            return
        try:
            with step.body():
                await self._body.aclose()
        except BaseException as error:
            step.fail(error, items=self._items)
            raise
        step.end("abandoned", items=self._items)


class _AsyncReplayed:
    """A source that gives what was recorded."""

    def __init__(self, step: Step, answer: Answer) -> None:
        self._recorded = _Recorded(step, answer)
        self._left = self._recorded.items()
        self._thrown: BaseException | None = None

    async def asend(self, _: Any, /) -> object:
        """The next recorded item, or the recorded end."""
        recorded = self._recorded
        answer = recorded.answer
        try:
            for item in self._left:
                return item
            if answer.outcome == "cancelled":
                await pend(answer)
            elif answer.turn is not None:
                await answer.turn.wait_async()
            recorded.finish(self._thrown)
        except BaseException as error:
            recorded.fail(error)
            recorded.given()
            raise
        recorded.given()
        raise StopAsyncIteration

    async def athrow(self, error: BaseException, /) -> object:
        """What the body did about ``error`` is in the record."""
        if isinstance(error, asyncio.CancelledError):
            await self.aclose()
            raise error
        self._thrown = error
        return await self.asend(None)

    async def aclose(self) -> None:
        """The agent leaves it."""
        self._recorded.fail(GeneratorExit())
        self._recorded.given()
