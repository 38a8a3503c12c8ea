"""What a call raised: how it ended by that, and what is kept of it."""

import asyncio
import concurrent.futures
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from spanreplay.boundary import loops
from spanreplay.boundary.call import Call, OutcomeName, StepEvent
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.http_errors import LateBodies, hold_bodies
from spanreplay.boundary.writing import Writing, put_lossy
from spanreplay.content import codec
from spanreplay.semconv import attributes as names


def outcome_of(error: BaseException) -> OutcomeName:
    """How a call that raised ``error`` ended."""
    if isinstance(error, asyncio.CancelledError | concurrent.futures.CancelledError) or loops.is_cancellation_of_trio(error):
        return "cancelled"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, GeneratorExit):
        return "abandoned"
    if isinstance(error, ControlSignal):
        return "interrupted"
    return "error"


def put_error(
    attributes: dict[str, Any],
    error: BaseException,
    now: int,
    writing: Writing,
    call: Call,
    amend: Callable[[Mapping[str, Any]], None] | None,
) -> StepEvent:
    """Add an exception to the attributes of a step's end.

    Args:
        attributes: of the end.
        error: which was raised.
        now: when, nanoseconds since the epoch.
        writing: of the step.
        call: that raised it. What is not kept of the error is named, unless no agent is ever given it: of an exchange, whose client makes
            an error of its own of it, and of what a replay runs again.
        amend: called, after the step has ended, with attributes in place of these, when more has come of a response that the error is.

    Returns:
        The event that OpenTelemetry has for it, with its message and its stack.
    """
    kind = type(error)
    type_name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    attributes[names.ERROR_TYPE] = type_name = writing.text(names.ERROR_TYPE, type_name)
    late = hold_bodies(error)
    kept = codec.encode_exception(error)
    attributes[names.STEP_ERROR] = writing.typed(names.STEP_ERROR, kept.text)
    if kept.lossy and not (call.client or call.passed or call.kind == "agent"):
        put_lossy(attributes, *(f"{names.STEP_ERROR} ({writing.text(names.STEP_LOSSY, lost)})" for lost in kept.lost or ("not all of it",)))
    if late and amend is not None:
        LateBodies(kept.text, attributes, writing, amend).follow(late)
    message = writing.text("message", _message(error))
    stack = writing.text("stacktrace", "".join(traceback.format_exception(error)))
    writing.redacted.pop("message", None)
    writing.redacted.pop("stacktrace", None)
    said = {names.EXCEPTION_TYPE: type_name, names.EXCEPTION_MESSAGE: message, names.EXCEPTION_STACKTRACE: stack}
    return StepEvent(name=names.EXCEPTION_EVENT, time_ns=now, attributes=said)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 — a message that cannot be made is no reason to lose the error
        return f"<{type(error).__name__} whose message cannot be made>"
