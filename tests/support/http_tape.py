"""A sink that keeps what it is told, and an interceptor that answers from what a sink has kept."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from spanreplay.boundary.call import Answer, StepEnded, StepStarted
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.session import RunContext, Session, entered
from spanreplay.boundary.step import Step
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.instrumentation.http_body import BASE64
from spanreplay.semconv import attributes as names

T = TypeVar("T")

POLICY = RedactionPolicy(salt="5a17")
"""Shared by a recording and its replay."""


class Missed(ControlSignal):
    """The tape has no answer."""


class ReadBeyond(ControlSignal):
    """More was asked for than was recorded."""


@dataclass
class Kept:
    """One step."""

    started: StepStarted
    ended: StepEnded | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """All its attributes."""
        return {**self.started.attributes, **(self.ended.attributes if self.ended else {})}

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    @property
    def outcome(self) -> str | None:
        """How it ended, or ``None`` while it has not."""
        return None if self.ended is None else self.attributes[names.STEP_OUTCOME]

    @property
    def body(self) -> bytes:
        """The response body."""
        return from_attribute(self[names.WIRE_RESPONSE_BODY], self[names.WIRE_RESPONSE_BODY_ENCODING])


def from_attribute(text: str, encoding: str) -> bytes:
    """The bytes that an attribute stands for."""
    return b64decode(text, validate=True) if encoding == BASE64 else text.encode("utf-8", "surrogatepass")


@dataclass
class Recorder:
    """A ``CaptureSink``."""

    steps: list[Kept] = field(default_factory=list)
    ends: int = 0

    def started(self, step: StepStarted) -> None:
        """Keep it."""
        self.steps.append(Kept(step))

    def ended(self, step: StepEnded) -> None:
        """Keep it with its start."""
        self.ends += 1
        kept = next(k for k in self.steps if k.started.span_id == step.span_id)
        assert kept.ended is None, "a step ended twice"
        kept.ended = step

    def by_path(self) -> dict[str, Kept]:
        """The steps by their causal path."""
        return {k[names.STEP_PATH]: k for k in self.steps}


@dataclass(frozen=True)
class TapedExchange:
    """An ``Exchange``."""

    status: int | None
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    chunks: tuple[tuple[int, int], ...]
    complete: bool


@dataclass
class Turn:
    """A ``Turn`` that is always open, and counts."""

    waited: int = 0
    given_up: int = 0
    is_to_come: ClassVar[bool] = False

    def taken(self) -> None:
        """Nobody asks for it."""

    def wait(self) -> None:
        """Count."""
        self.waited += 1

    async def wait_async(self) -> None:
        """Count."""
        self.waited += 1

    def given(self) -> None:
        """Count."""
        self.given_up += 1


class Tape:
    """A ``CallInterceptor`` that answers HTTP steps, and tools, by path and input."""

    def __init__(self, recorder: Recorder, change: Callable[[Answer], Answer] | None = None) -> None:
        self._steps = recorder.by_path()
        self._change = change
        self.turns: list[Turn] = []
        self.ended_steps: list[Step] = []

    def intercept(self, step: Step) -> Answer | None:
        """Answer from the tape."""
        if step.call.kind == "agent":
            return None
        kept = self._steps.get(step.path)
        if kept is None:
            raise Missed(f"nothing at {step.path}")
        if step.input != kept.attributes.get(names.STEP_INPUT):
            raise Missed(f"another input at {step.path}: {step.input} against {kept.attributes.get(names.STEP_INPUT)}")
        turn = Turn()
        self.turns.append(turn)
        answer = answer_of(kept, turn)
        return answer if self._change is None else self._change(answer)

    def ended(self, step: Step) -> None:
        """Keep it."""
        self.ended_steps.append(step)


def answer_of(kept: Kept, turn: Turn | None = None) -> Answer:
    """What a step gave, as an answer."""
    found = kept.attributes
    taped: TapedExchange | None = None
    if names.WIRE_REQUEST_HEADERS in found:
        headers = json.loads(found.get(names.WIRE_RESPONSE_HEADERS, "[]"))
        taped = TapedExchange(
            status=found.get(names.HTTP_RESPONSE_STATUS_CODE),
            response_headers=tuple((name, value) for name, value in headers),
            response_body=kept.body if names.WIRE_RESPONSE_BODY in found else b"",
            chunks=tuple((size, since) for size, since in json.loads(found.get(names.WIRE_RESPONSE_CHUNKS, "[]"))),
            complete=found.get(names.WIRE_RESPONSE_COMPLETE, False),
        )
    return Answer(
        outcome=found[names.STEP_OUTCOME],
        result=found.get(names.STEP_RESULT),
        error=found.get(names.STEP_ERROR),
        exchange=taped,
        duration_ns=0,
        turn=turn,
        beyond=lambda: ReadBeyond("the recording ends here"),
    )


def record(agent: Callable[[], T], **session: Any) -> tuple[T, Recorder]:
    """Run an agent while recording."""
    recorder = Recorder()
    session.setdefault("redactor", Redactor(POLICY))
    made = Session(mode="record", sink=recorder, open_spans=False, **session)
    with entered(made.root(RunContext(run_id="0" * 32, name="agent"))):
        return agent(), recorder


def replay(agent: Callable[[], T], tape: Tape, **session: Any) -> tuple[T, Recorder]:
    """Run an agent with every call answered from the tape."""
    recorder = Recorder()
    session = {"redactor": Redactor(POLICY), "sink": recorder, **session}
    made = Session(mode="replay", interceptors=[tape], open_spans=False, **session)
    with entered(made.root(RunContext(run_id="0" * 32, name="agent"))):
        return agent(), recorder


def awaited(agent: Callable[[], Coroutine[Any, Any, T]]) -> Callable[[], T]:
    """A synchronous agent of an asynchronous one."""
    return lambda: asyncio.run(agent())
