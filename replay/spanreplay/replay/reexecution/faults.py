"""Faults injected at a step: each is the answer that a call of its kind would get in life, so that everything above it reacts as it would.

A model call fails in its transport, below the SDK: a response that does not come in time, HTTP 500, a body that is no JSON, HTTP 403. The
SDK raises what it raises and tries again as it does; further attempts of the same call fail the same way. A tool raises, or gives what it
would never give.
"""

import asyncio
import json
import time
from dataclasses import dataclass, replace
from typing import Final

from spanreplay.boundary.call import Answer, OutcomeName, Turn
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content import codec
from spanreplay.replay.reexecution.policy import Fault
from spanreplay.semconv import attributes as names

_JSON: Final = ("content-type", "application/json")
_AT_ONCE: Final = ("retry-after-ms", "1")
"""The SDKs of OpenAI and Anthropic wait so long before they try again."""
_CUT: Final = '{"id": "cut off in the mid'


@dataclass(frozen=True, slots=True)
class Response:
    """A :class:`spanreplay.boundary.call.Exchange` that no server sent."""

    status: int | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    complete: bool = True

    @property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """All of the body at once."""
        return ((len(self.response_body), 0),)


class Late:
    """A turn that comes late: a :class:`spanreplay.boundary.call.Turn`.

    Args:
        seconds: how late.
        turn: the turn that it is besides.
    """

    def __init__(self, seconds: float, turn: Turn | None) -> None:
        self._seconds = seconds
        self._turn = turn

    @property
    def is_to_come(self) -> bool:
        """Whether the turn that it is besides is to come."""
        return self._turn is not None and self._turn.is_to_come

    def taken(self) -> None:
        """Whoever runs now has opened a stream, or has read on in it."""
        if self._turn is not None:
            self._turn.taken()

    def wait(self) -> None:
        """Block this thread until then."""
        if self._turn is not None:
            self._turn.wait()
        time.sleep(self._seconds)

    async def wait_async(self) -> None:
        """Wait until then."""
        if self._turn is not None:
            await self._turn.wait_async()
        await asyncio.sleep(self._seconds)

    def given(self) -> None:
        """The answer has been handed over."""
        if self._turn is not None:
            self._turn.given()


def injected(fault: Fault, step: LiveStep) -> Answer:
    """The answer that ``fault`` gives to a call.

    Args:
        fault: not ``slow``, which is :func:`late`.
        step: the call.
    """
    if names.HTTP_REQUEST_METHOD in step.call.attributes:
        return _response(fault, step)
    name = f"{step.call.kind.replace('_', ' ')} {step.call.name}"
    match fault.kind:
        case "timeout":
            return _raising(TimeoutError(f"injected: the {name} did not answer in time"), "timeout")
        case "rejected":
            return _raising(PermissionError(13, f"injected: the {name} is not permitted"), "rejected")
        case "malformed":
            items = json.dumps([_CUT]) if step.call.streams else None
            return Answer(outcome="malformed", result=json.dumps(_CUT), items=items)
        case _:
            return _raising(RuntimeError(f"injected: the {name} failed"), "error")


def late(answer: Answer, fault: Fault) -> Answer:
    """The same answer, later by :attr:`Fault.seconds`."""
    return replace(answer, turn=Late(fault.seconds, answer.turn))


def _raising(error: Exception, outcome: OutcomeName) -> Answer:
    return Answer(outcome=outcome, error=codec.encode_exception(error).text, injected=error)


def _response(fault: Fault, step: LiveStep) -> Answer:
    match fault.kind:
        case "timeout":
            return Answer(outcome="timeout")
        case "rejected":
            return Answer(outcome="error", exchange=_refusal(403, "permission_error", "injected: this key may not do that"))
        case "malformed":
            if _streams(step):
                headers, body = (("content-type", "text/event-stream"),), f"data: {_CUT}\n\n"
            else:
                headers, body = (_JSON,), _CUT
            return Answer(outcome="malformed", exchange=Response(200, headers, body.encode()))
        case _:
            return Answer(outcome="error", exchange=_refusal(500, "server_error", "injected: the server had an error"))


def _refusal(status: int, kind: str, message: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": message, "code": status}}
    return Response(status, (_JSON, _AT_ONCE), json.dumps(body).encode())


def _streams(step: LiveStep) -> bool:
    asked = "" if step.input is None else step.input
    return '"stream":true' in asked or "stream" in str(json.loads(asked or "{}").get("url", "")).lower()
