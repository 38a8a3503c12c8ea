"""Making a call through the Boundary: sync, async, and the two kinds of stream.

Every function takes the scope that :func:`here` gave; an adapter asks for it first and calls straight through when it is
``None``, so that nothing is built while spanreplay is off::

    scope = here()
    if scope is None:
        return tool(arguments)
    return call(scope, Call(kind="tool_call", name="search", input=encode(arguments)), lambda: tool(arguments))
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Final, TypeVar, cast

from spanreplay.boundary.call import Answer, Call, Turn
from spanreplay.boundary.scope import Scope, current_scope, process
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.codec import Encoded

T = TypeVar("T")

CANCEL_GRACE_S: Final = 5.0
"""How much longer than recorded a replayed ``cancelled`` waits to be cancelled."""


def here() -> Scope | None:
    """The scope that a call made now belongs to, or ``None`` while spanreplay is off."""
    return current_scope() if process.active else None


def begin(scope: Scope, call: Call, extra: dict[str, Any] | None = None) -> Step | None:
    """Reserve the step's place and tell the sink, before anything runs.

    Returns ``None`` when recording failed: the call must then go straight through.
    """
    try:
        return Step(scope, call, extra)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the start of {call.kind} {call.name}")
        return None


def call(scope: Scope, call: Call, invoke: Callable[[], T]) -> T:
    """Make a synchronous call.

    Raises:
        ControlSignal: a replay or a policy stops it.
        BaseException: whatever ``invoke`` raises, the same object; or what the record says it raised.
    """
    step = begin(scope, call)
    if step is None:
        return invoke()
    answer = step.ask()
    if answer is not None:
        return cast("T", give(step, answer))
    try:
        with step.body():
            value = invoke()
    except BaseException as error:
        step.fail(error)
        raise
    step.succeed(value)
    return value


async def acall(scope: Scope, call: Call, invoke: Callable[[], Awaitable[T]]) -> T:
    """Make an asynchronous call. Raises as :func:`call` does."""
    step = begin(scope, call)
    if step is None:
        return await invoke()
    answer = step.ask()
    if answer is not None:
        return cast("T", await agive(step, answer))
    try:
        with step.body():
            value = await invoke()
    except BaseException as error:
        step.fail(error)
        raise
    step.succeed(value)
    return value


# ---- answers from the record ------------------------------------------------------------------------------------


def give(step: Step, answer: Answer) -> object:
    """Hand a recorded answer to a synchronous caller, in its turn: returns the value or raises the exception."""
    turn = answer.turn
    if turn is not None:
        turn.wait()
    return _hand_over(step, answer, turn)


async def agive(step: Step, answer: Answer) -> object:
    """Hand a recorded answer to an asynchronous caller, in its turn."""
    turn = answer.turn
    try:
        if answer.outcome == "cancelled":
            await pend(answer)
        elif turn is not None:
            await turn.wait_async()
    except BaseException as error:
        step.fail(error)
        if turn is not None:
            turn.given()
        raise
    return _hand_over(step, answer, turn)


async def pend(answer: Answer) -> None:
    """Wait to be cancelled, as the recorded call was: a ``CancelledError`` of our own would escape ``wait_for``."""
    await asyncio.sleep(answer.duration_ns / 1e9 + CANCEL_GRACE_S)


def _hand_over(step: Step, answer: Answer, turn: Turn | None) -> object:
    try:
        if answer.error is not None:
            error = codec.decode_exception(answer.error)
            step.fail(error, outcome=answer.outcome)
            raise error
        if answer.outcome == "cancelled":
            cancelled = asyncio.CancelledError()
            step.fail(cancelled)
            raise cancelled
        value = None if answer.result is None else codec.decode(answer.result, step.call.annotation)
        step.succeed(encoded=Encoded(text=answer.result or "null", lossy=False, typed=False))
        return value
    finally:
        if turn is not None:
            turn.given()


def recorded_items(answer: Answer) -> list[object]:
    """What a recorded stream gave, in order."""
    if answer.items is None:
        return []
    return [codec.decode(json.dumps(item)) for item in json.loads(answer.items)]


# ---- streams ----------------------------------------------------------------------------------------------------


def stream(scope: Scope, call: Call, invoke: Callable[[], Iterator[T]]) -> Generator[T, Any, Any]:
    """Make a call that gives its answer as a generator or iterator.

    The step begins with the first ``next()``, as the body does, and ends once: when the stream is read to its end, left
    early, closed, collected, or fails. ``send``, ``throw`` and the return value reach and come from the wrapped generator.
    """
    step = begin(scope, call)
    if step is None:
        return (yield from invoke())
    answer = step.ask()
    if answer is not None:
        return (yield from cast("Generator[T, Any, Any]", _replayed(step, answer)))
    items: list[Encoded] = []
    try:
        with step.body():
            source = iter(invoke())
        sent: Any = None
        while True:
            with step.body():
                item = cast("Generator[T, Any, Any]", source).send(sent) if sent is not None else next(source)
            items.append(codec.encode(item))
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
                items.append(codec.encode(item))
                sent = yield item
    except StopIteration as stop:
        step.end("ok", result=codec.encode(stop.value), items=items)
        return stop.value
    except GeneratorExit:
        step.end("abandoned", items=items)
        raise
    except BaseException as error:
        step.fail(error, items=items)
        raise


def _close(step: Step, source: Iterator[Any]) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        with step.body():
            close()


def _replayed(step: Step, answer: Answer) -> Generator[object, Any, Any]:
    given: list[Encoded] = []
    try:
        if answer.turn is not None:
            answer.turn.wait()
        for item in recorded_items(answer):
            given.append(codec.encode(item))
            yield item
    except GeneratorExit:
        step.end("abandoned", items=given)
        raise
    finally:
        if answer.turn is not None:
            answer.turn.given()
    return _finish_replayed(step, answer, given)


def _finish_replayed(step: Step, answer: Answer, given: list[Encoded]) -> object:
    if answer.error is not None:
        error = codec.decode_exception(answer.error)
        step.fail(error, outcome=answer.outcome, items=given)
        raise error
    if answer.outcome == "abandoned" and answer.beyond is not None:
        stop = answer.beyond()
        step.fail(stop, items=given)
        raise stop
    value = None if answer.result is None else codec.decode(answer.result)
    step.end("ok", result=None if answer.result is None else Encoded(text=answer.result, lossy=False, typed=False), items=given)
    return value


async def astream(scope: Scope, call: Call, invoke: Callable[[], AsyncIterator[T]]) -> AsyncGenerator[T, Any]:
    """Make a call that gives its answer as an asynchronous generator or iterator. Begins and ends as :func:`stream`."""
    step = begin(scope, call)
    if step is None:
        async for item in invoke():
            yield item
        return
    answer = step.ask()
    if answer is not None:
        async for replayed in _areplayed(step, answer):
            yield cast("T", replayed)
        return
    items: list[Encoded] = []
    source: AsyncIterator[T] | None = None
    try:
        with step.body():
            source = aiter(invoke())
        sent: Any = None
        while True:
            with step.body():
                item = await (cast("AsyncGenerator[T, Any]", source).asend(sent) if sent is not None else anext(source))
            items.append(codec.encode(item))
            sent = yield item
    except StopAsyncIteration:
        step.end("ok", items=items)
    except GeneratorExit:
        await _aclose(step, source)
        step.end("abandoned", items=items)
        raise
    except BaseException as error:
        await _aclose(step, source)
        step.fail(error, items=items)
        raise


async def _aclose(step: Step, source: AsyncIterator[Any] | None) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        with step.body():
            await close()


async def _areplayed(step: Step, answer: Answer) -> AsyncGenerator[object, Any]:
    given: list[Encoded] = []
    try:
        if answer.outcome == "cancelled":
            await pend(answer)
        elif answer.turn is not None:
            await answer.turn.wait_async()
        for item in recorded_items(answer):
            given.append(codec.encode(item))
            yield item
    except GeneratorExit:
        step.end("abandoned", items=given)
        raise
    except BaseException as error:
        step.fail(error, items=given)
        raise
    finally:
        if answer.turn is not None:
            answer.turn.given()
    _finish_replayed(step, answer, given)
