"""One HTTP exchange as one step: captured as it passes, ended once, whatever ends it.

A replayed exchange gets its chunks from the record instead of the network and is otherwise the same, so that it ends its step exactly as
the recorded one did.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any, Final, TypeAlias
from weakref import WeakSet

from spanreplay.boundary.asked import ask_for, said
from spanreplay.boundary.call import INTENT_EFFECTS, Answer, OutcomeName
from spanreplay.boundary.raised import outcome_of
from spanreplay.boundary.session import Session
from spanreplay.boundary.step import Step
from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import Encoded
from spanreplay.instrumentation import http_attempts, http_meaning
from spanreplay.instrumentation.http_body import (
    MAX_BODY,
    UTF_8,
    Headers,
    Kept,
    content_decoded,
    header,
    headers_json,
    joined,
    without_encoding,
)
from spanreplay.instrumentation.http_request import Head, learn_returned
from spanreplay.instrumentation.provider import ModelResponse, Provider
from spanreplay.semconv import attributes as names

_TAIL: Final = 65_536
_BODYLESS: Final = frozenset({101, 204, 304})
_now: Final = time.monotonic_ns


RanOut: TypeAlias = Callable[[BaseException], bool]
"""Tells of an exception whether it says that a time ran out."""


def never(_: BaseException) -> bool:
    """Of a client library whose exceptions say nothing of their own."""
    return False


def is_watched(session: Session) -> bool:
    """Does anybody see the attributes of this session's steps? Nobody does where a replay only compares."""
    return session.sink is not None or session.open_spans


class Exchange:
    """One request and its response, from the step's start to its one end.

    The methods that tell it what happened raise nothing while recording. None of them may be called before the step has been asked.
    """

    __slots__ = (
        "__weakref__",
        "_attempt",
        "_begun_ns",
        "_chunks",
        "_given_error",
        "_headers",
        "_once",
        "_pid",
        "_ran_out",
        "_size",
        "_status",
        "answer",
        "ended",
        "head",
        "provider",
        "request",
        "step",
    )

    def __init__(self, step: Step, head: Head, *, provider: Provider | None, request: object, attempt: int, ran_out: RanOut) -> None:
        self.step = step
        self.head = head
        self.provider = provider
        self.request = request
        self.ended = False
        self._attempt = attempt
        self._ran_out = ran_out
        self._status: int | None = None
        self._headers: Headers = ()
        self._chunks: list[tuple[bytes, int]] = []
        self._size = 0
        self._begun_ns = step.begun_ns
        self._pid = os.getpid()
        self._once: Callable[[], int] = count().__next__
        self.answer: Answer | None = None
        self._given_error: BaseException | None = None
        if step.session.mode == "record":
            _begun.add(self)

    # ---- what happened ----------------------------------------------------------------------------------------------

    def answered(self, answer: Answer) -> None:
        """The record has the answer; its turn is given up when this exchange ends."""
        self.answer = answer
        if answer.turn is not None:
            answer.turn.taken()

    def gave(self, error: BaseException) -> BaseException:
        """The record has this exception; it will be raised to the caller."""
        self._given_error = error
        return error

    def responded(self, status: int, headers: Headers) -> None:
        """The response has begun."""
        self._status = status
        self._headers = headers

    def chunk(self, data: bytes) -> None:
        """A part of the body passed, as received."""
        if self.answer is not None and self.answer.turn is not None:
            self.answer.turn.taken()
        self._size += len(data)
        if self._size <= MAX_BODY:
            self._chunks.append((data, _now() - self._begun_ns))
        else:
            self._chunks = []

    def exhausted(self) -> None:
        """The body was read to its end."""
        if not self.ended:
            self._finish(complete=True)

    def closed(self) -> None:
        """The response was closed or collected, perhaps before its end."""
        if not self.ended and _may_hold_a_lock is not None:  # the interpreter has taken its modules apart
            if _may_hold_a_lock():
                _collected.append(self)
            else:
                self._finish(complete=None)

    def settle(self) -> None:
        """End now what was closed at a bad moment."""
        if not self.ended:
            self._finish(complete=None)

    def left(self) -> None:
        """The process ends, and the exchange is open: what had come is all that the agent got."""
        effect = self.step.attributes.get(names.STEP_EFFECT)
        may_have_acted = self._status is None and self.step.call.kind != "model_call" and effect in INTENT_EFFECTS
        if not self.ended and not may_have_acted:
            self._finish(complete=None)

    def failed(self, error: BaseException) -> None:
        """Sending, waiting or reading raised."""
        if not self.ended:
            self._finish(complete=False, error=error)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def _finish(self, *, complete: bool | None, error: BaseException | None = None) -> None:
        """Args: complete: the body came whole; ``None`` asks the body itself."""
        if self._once() or os.getpid() != self._pid:  # a forked child holds a copy of the response; the step is the parent's
            return
        self.ended = True
        session = self.step.session
        try:
            self._end(complete, error)
        except Exception:
            if session.mode == "replay":
                raise
            session.failed(f"the end of {self.step.path}")
            with contextlib.suppress(Exception):
                self.step.end("unknown" if error is None else outcome_of(error))
        finally:
            self._chunks = []
            if self.answer is not None and self.answer.turn is not None:
                self.answer.turn.given()

    def _end(self, complete: bool | None, error: BaseException | None) -> None:
        step = self.step
        answer = self.answer
        if answer is not None and not is_watched(step.session):
            self._end_unwatched(answer, complete, error)
            return
        attributes: dict[str, Any] = {}
        read: ModelResponse | None = None
        result: Encoded | None = None
        if self._status is not None:
            body = joined(data for data, _ in self._chunks)
            view = content_decoded(body, header(self._headers, "content-encoding"))
            if complete is None:
                complete = self._came_whole(view or b"")
            if self.provider is None and view:
                learn_returned(self.head, view, step.session.redactor)
            self._put_response(attributes, body, view, complete=complete)
            if self.provider is not None and self._size <= MAX_BODY:
                read = self.provider.response(self._status, header(self._headers, "content-type"), view or b"", self.request)
                attributes.update(read.attributes)
                ask_for(step, [(call.id, call.name, call.arguments) for call in read.tool_calls])
                said(step)
                result = self._withhold_scattered_secret(attributes, read)
        outcome, error_type, message = self._judge(read, complete=bool(complete), error=error)
        attributes.pop(names.ERROR_TYPE, None)
        if error_type:
            attributes[names.ERROR_TYPE] = error_type
        if http_attempts.is_retried(self._status, error):
            http_attempts.remember(step, self._attempt)
        step.end(outcome, result=result, error=error, attributes=attributes, message=step.session.redactor.text(message)[0])

    def _end_unwatched(self, answer: Answer, complete: bool | None, error: BaseException | None) -> None:
        """Only the outcome counts, and it is the recorded one unless the reader left earlier."""
        if error is not None:
            outcome, _, _ = self._judge(None, complete=False, error=error)
        else:
            received = answer.exchange is None or self._size == len(answer.exchange.response_body)
            outcome = answer.outcome if complete or received else "abandoned"
        if http_attempts.is_retried(self._status, error):
            http_attempts.remember(self.step, self._attempt)
        self.step.end(outcome, error=error)

    def _came_whole(self, view: bytes) -> bool:
        """Had everything been received when the reader stopped?"""
        if self.provider is not None and self.provider.terminal(view[-_TAIL:]):
            return True
        if self.head.method == "HEAD" or self._status in _BODYLESS:
            return True
        length = header(self._headers, "content-length")
        return length.isdigit() and int(length) == self._size

    def _judge(self, read: ModelResponse | None, *, complete: bool, error: BaseException | None) -> tuple[OutcomeName, str, str]:
        """Outcome, error type and message; the step itself tells the last two of an exception."""
        if error is not None:
            if error is self._given_error and self.answer is not None:
                return self.answer.outcome, "", ""
            return ("timeout" if self._ran_out(error) else outcome_of(error)), "", ""
        kind, message = read.error if read is not None and read.error is not None else ("", "")
        if self._status is not None and self._status >= 400:
            return "error", str(self._status), message
        if not complete:
            return "abandoned", "", ""
        return ("ok" if read is None else read.outcome), kind, message

    def _withhold_scattered_secret(self, attributes: dict[str, Any], read: ModelResponse) -> Encoded | None:
        """A secret said piece by piece, over several events, is seen only where they are put together: keep what was said instead.

        Returns the step's result, of which :func:`~spanreplay.instrumentation.http_meaning.render` makes a body again; ``None`` where the
        body is fit to be kept.
        """
        spoken = read.attributes.get(names.GEN_AI_OUTPUT_MESSAGES)
        body = attributes.get(names.WIRE_RESPONSE_BODY)
        redactor = self.step.session.redactor
        if not isinstance(spoken, str) or not isinstance(body, str) or not redactor.text(spoken)[1]:
            return None
        if attributes[names.WIRE_RESPONSE_BODY_ENCODING] == UTF_8 and redactor.text(body)[1]:
            return None
        for name in (names.WIRE_RESPONSE_BODY, names.WIRE_RESPONSE_BODY_ENCODING, names.WIRE_RESPONSE_CHUNKS):
            attributes.pop(name)
        return Encoded(text=http_meaning.of(read.attributes), lossy=False, typed=False)

    def _put_response(self, attributes: dict[str, Any], body: bytes, view: bytes | None, *, complete: bool) -> None:
        redactor = self.step.session.redactor
        headers = self._headers
        attributes[names.HTTP_RESPONSE_STATUS_CODE] = self._status
        attributes[names.WIRE_RESPONSE_COMPLETE] = complete
        lossy = self._size > MAX_BODY
        if not lossy:
            kept = Kept(body, headers, redactor, view)
            chunks = [f"[{len(data)},{since}]" for data, since in self._chunks]
            if kept.changed:
                headers = without_encoding(headers)
                chunks = [f"[{kept.size},{self._chunks[-1][1]}]"]
            lossy = kept.lossy
            attributes[names.WIRE_RESPONSE_BODY] = kept.text
            attributes[names.WIRE_RESPONSE_BODY_ENCODING] = kept.encoding
            attributes[names.WIRE_RESPONSE_CHUNKS] = f"[{','.join(chunks)}]"
        if lossy:
            attributes[names.STEP_LOSSY] = canonical_json([names.WIRE_RESPONSE_BODY])
        attributes[names.WIRE_RESPONSE_HEADERS] = headers_json(redactor.headers(headers)[0])


# ---- responses that nobody closed ---------------------------------------------------------------------------------

_collected: Final[deque[Exchange]] = deque()
_begun: Final[WeakSet[Exchange]] = WeakSet()
"""Exchanges of recordings; nobody says when one is to be forgotten."""
_LOCKING: Final = (
    "spanreplay.boundary.step",
    "spanreplay.boundary.session",
    "spanreplay.content",
    "spanreplay.store",
    "spanreplay.exporter",
    "opentelemetry.sdk",
    "opentelemetry.exporter",
    "logging",
)
"""Modules that take locks which ending a step takes too."""


def _may_hold_a_lock() -> bool:
    """Did the garbage collector interrupt code that may hold a lock we need? It runs wherever something is allocated."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_LOCKING):
            return True
        frame = frame.f_back
    return False


_opening: Final[set[tuple[int, int]]] = set()
"""Processes and threads that are just opening an exchange: its step may be on record, and nobody else knows of it yet."""
_WAIT_S: Final = 1.0


class _Ending:
    """Whether this process ends: what is opened from then on is not recorded."""

    begun = False


class Opening:
    """A context manager, while an exchange is opened: gives whether it may still be."""

    __slots__ = ("_me",)

    def __enter__(self) -> bool:
        """Begin."""
        self._me = os.getpid(), threading.get_ident()
        _opening.add(self._me)
        return not _Ending.begun

    def __exit__(self, *_: object) -> None:
        """It is open."""
        _opening.discard(self._me)


def end_left() -> None:
    """End the exchanges that are open as the process ends, once nothing is recorded any more; those too that are just being opened."""
    _Ending.begun = True
    pid, deadline = os.getpid(), time.monotonic() + _WAIT_S
    while any(process == pid for process, _ in _opening.copy()) and time.monotonic() < deadline:
        time.sleep(0.0005)
    for exchange in list(_begun):
        exchange.left()


def end_collected() -> None:
    """End the exchanges whose response was collected at a moment when a step could not be ended. Whoever stops a session calls this."""
    while _collected:
        try:
            exchange = _collected.popleft()
        except IndexError:  # another thread was faster
            return
        exchange.settle()
