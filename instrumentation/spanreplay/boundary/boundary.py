"""Making a call through the Boundary, sync and async; for streams see :mod:`spanreplay.boundary.streams`.

Every function takes the scope that :func:`here` gave; an adapter asks for it first and calls straight through when it is
``None``, so that nothing is built while spanreplay is off::

    scope = here()
    if scope is None:
        return tool(arguments)
    return call(scope, Call(kind="tool_call", name="search", input=encode(arguments)), lambda: tool(arguments))
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from spanreplay.boundary import loops
from spanreplay.boundary.call import Answer, Call, Held, OutcomeName, Turn
from spanreplay.boundary.scope import Scope, current_scope, process
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.codec import CodecError, Encoded

T = TypeVar("T")

CANCEL_GRACE_S: Final = 5.0
"""How much longer than recorded a replayed ``cancelled`` waits to be cancelled."""
STAY_S: Final = 60.0
"""The same of a call of a daemon thread that was open when its process ended."""


def here() -> Scope | None:
    """The scope that a call made now belongs to, or ``None`` while spanreplay is off."""
    return current_scope() if process.active else None


def begin(scope: Scope, call: Call, extra: dict[str, Any] | None = None, *, gathers: bool = False) -> Step | None:
    """Reserve the step's place and tell the sink, before anything runs.

    Args:
        scope: where the call is made.
        call: the call.
        extra: more attributes.
        gathers: the caller waits by itself, before the body runs, for a step that is ``unsettled``.

    Returns ``None`` when recording failed: the call must then go straight through.
    """
    try:
        return Step(scope, call, extra, gathers=gathers)
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
        if step.call.held is not None:
            step.call.held.begin()
        with step.body():
            value = invoke()
    except BaseException as error:
        step.fail(error)
        raise
    step.succeed(value)
    return value


async def acall(scope: Scope, call: Call, invoke: Callable[[], Awaitable[T]]) -> T:
    """Make an asynchronous call. Raises as :func:`call` does."""
    step = begin(scope, call, gathers=True)
    if step is None:
        return await invoke()
    step.will_be_awaited()
    answer = step.ask()
    if answer is not None:
        return cast("T", await agive(step, answer))
    try:
        if step.unsettled and scope.session.settling is not None:
            await scope.session.settling.wait()
        if step.call.held is not None:
            step.call.held.begin()
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
    if answer.never_came:
        stay(answer)
    if turn is not None:
        turn.wait()
    return _hand_over(step, answer, turn)


async def agive(step: Step, answer: Answer) -> object:
    """Hand a recorded answer to an asynchronous caller, in its turn."""
    turn = answer.turn
    try:
        if answer.outcome == "cancelled" or answer.never_came:
            await pend(answer)
        elif turn is not None:
            await turn.wait_async()
    except BaseException as error:
        step.fail(error)
        if turn is not None:
            turn.given()
        raise
    if answer.injected is not None and step.call.failing is not None:
        return await _handled(step, answer.injected, step.call.failing, answer.outcome)
    return _hand_over(step, answer, turn)


async def _handled(step: Step, error: BaseException, failing: Callable[[BaseException], Awaitable[object]], outcome: OutcomeName) -> object:
    """Have a framework deal with an exception of its tool."""
    try:
        value = await failing(error)
    except BaseException as raised:
        step.fail(raised, outcome=outcome if raised is error else None)
        raise
    step.succeed(value, outcome="tool_error" if outcome == "error" else outcome)
    return value


async def pend(answer: Answer) -> None:
    """Wait to be cancelled, as the recorded call was: a ``CancelledError`` of our own would escape ``wait_for``.

    Raises:
        CancelledError: the caller has cancelled it.
        ControlSignal: nobody has, for longer than in the record.
    """
    await loops.pause(answer.duration_ns / 1e9 + CANCEL_GRACE_S)
    if answer.beyond is not None:
        raise answer.beyond()


def stay(answer: Answer) -> None:
    """Wait for the end of the process, as the recorded call did: a daemon thread made it.

    Raises:
        ControlSignal: it does not end, or another thread makes the call, on which it waits.
    """
    if threading.current_thread().daemon:
        threading.Event().wait(answer.duration_ns / 1e9 + STAY_S)
    if answer.beyond is not None:
        raise answer.beyond()


def again(text: str) -> Encoded:
    """A recorded value as it is kept once more, where a replay is recorded itself."""
    return Encoded(text=text, lossy=False, typed=codec.is_typed(text))


def unreadable(answer: Answer, error: CodecError) -> BaseException:
    """What to raise where the record of an answer cannot be read."""
    return error if answer.unreadable is None else answer.unreadable(str(error))


def _hand_over(step: Step, answer: Answer, turn: Turn | None) -> object:
    try:
        if answer.left is not None and step.call.held is not None:
            _change(step.call.held, answer.left, answer)
        value = _recorded_value(step, answer)
    except CodecError as error:
        stop = unreadable(answer, error)
        step.fail(stop)
        raise stop from error
    except BaseException as error:
        step.fail(error, outcome=answer.outcome)
        raise
    else:
        step.succeed(encoded=again(answer.result or "null"), outcome=answer.outcome)
        return value
    finally:
        if turn is not None:
            turn.given()


def _change(held: Held, left: str, answer: Answer) -> None:
    """Change again what the tool changed; what is no record of that, or does not fit what is there, changes nothing more."""
    try:
        alone = held.change(left)
    except Exception as error:  # noqa: BLE001 — objects of any kind, and a text that anybody may have written
        alone = [f"{type(error).__name__}: {error}"]
    if alone and answer.left_alone is not None:
        answer.left_alone(alone)


def _recorded_value(step: Step, answer: Answer) -> object:
    if answer.error is not None:
        raise codec.decode_exception(answer.error)
    if answer.outcome == "cancelled":
        raise asyncio.CancelledError
    return None if answer.result is None else codec.decode(answer.result, step.call.annotation)
