"""One live step: its place, its span, and the record of how it ended."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext

from spanreplay.boundary import cancelled, spans
from spanreplay.boundary.body import Body
from spanreplay.boundary.call import INTENT_EFFECTS, Answer, Call, OutcomeName, StepEnded, StepEvent, StepStarted
from spanreplay.boundary.ending import amending, put_end
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.raised import outcome_of, put_error
from spanreplay.boundary.scope import Scope, step_label
from spanreplay.boundary.starting import start_attributes
from spanreplay.boundary.step_span import StepSpan, start
from spanreplay.boundary.writing import Writing, without_secrets
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import Encoded
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.session import RunContext, Session

_now: Final = time.monotonic_ns
_PLACE: Final = frozenset({"context", "inner_context", "span_id", "trace_id"})

Rewrite: TypeAlias = Callable[[str, bytes], tuple[str, bytes]]
"""Gives target and body of a request as they are to be sent."""


class Step:
    """A step between its start and its end. Made by :func:`spanreplay.boundary.boundary.begin`."""

    __slots__ = (
        "_ended",
        "_learnt",
        "_span",
        "_started",
        "_writing",
        "answer",
        "awaits",
        "begun_ns",
        "call",
        "context",
        "inner",
        "inner_context",
        "input",
        "label",
        "number",
        "outcome",
        "parent",
        "path",
        "recorded",
        "result",
        "rewrite",
        "run",
        "scope",
        "seq",
        "seq_end",
        "session",
        "span_id",
        "starts_run",
        "trace_id",
        "unsettled",
        "view",
    )

    def __init__(self, scope: Scope, call: Call, extra: Mapping[str, Any] | None = None, *, gathers: bool = False) -> None:
        session = scope.session
        call = without_secrets(call, session.redactor)
        self.unsettled = gathers and session.settling is not None and call.effect in INTENT_EFFECTS
        """Its intent is not on the disk yet: whoever runs the body waits for that first."""
        self.awaits = False
        """Who asks for the answer can wait to be cancelled, on an event loop."""
        self.session: Session = session
        self.scope = scope
        self.call = call
        self.parent: Step | None = scope.step
        self.label = step_label(call.kind, call.name)
        self.path, self.number = scope.place(self.label)
        self.seq: int = session.sequence()
        session.latest = self.seq
        self.seq_end: int | None = None
        self.outcome: OutcomeName | None = None
        self.result: str | None = None
        self.context: SpanContext
        self.inner_context: Context
        self.trace_id: str
        self.span_id: str
        self.recorded: object = None
        """What a replay matched this step with."""
        self.answer: Answer | None = None
        self.rewrite: Rewrite | None = None
        """What a transport does to target and body of a live request before it sends it."""
        self.view: Mapping[str, Any] = {}
        """In a replay, what the record of the step's end says."""
        self._ended = False
        self._span: StepSpan | None = None
        self._learnt: dict[str, Any] | None = None
        self.starts_run = False
        self.run: RunContext | None = self._run_of(scope, call)
        self.inner = scope.inside(self)
        if self.starts_run:  # paths are relative to the run
            self.inner.run = self.run
            self.inner.path = ""
        self._writing = Writing(session, self.path)
        self.input = None if call.input is None else self._writing.value(names.STEP_INPUT, call.input)
        self.begun_ns = 0
        """The monotonic time of the span's start, where it is seen."""
        if session.unseen:
            self._started = dict(extra or ())
        else:
            self.begun_ns, start_ns = _now(), session.clock()
            self._open(call, start_attributes(self, call, extra, self._writing), start_ns)

    # ---- beginning ----------------------------------------------------------------------------------------------

    def _run_of(self, scope: Scope, call: Call) -> "RunContext | None":
        run = scope.run
        if call.kind != "agent" or not (run is None or (run.fallback and self.session.run_per != "command")):
            return run
        from spanreplay.boundary.session import RunContext

        self.starts_run = True
        return RunContext(
            run_id=os.urandom(16).hex(),
            name=call.name,
            path=self.path,
            agent=call.name,
            command_id=None if run is None else run.command_id,
        )

    def _open(self, call: Call, attributes: dict[str, Any], start_ns: int) -> None:
        session = self.session
        name = call.span_name or f"{attributes.get(names.GEN_AI_OPERATION_NAME, call.kind)} {call.name}"
        parent_context, parent = self._around()
        span = start(self, name, parent_context, parent, start_ns) if session.open_spans else None
        self._stand(parent_context, parent, span)
        if span is not None and span.is_recording():
            self._span = StepSpan(span)
            self._span.begin(attributes, self)
        self._started = attributes
        if session.sink is not None:
            started = StepStarted(
                trace_id=self.trace_id,
                span_id=self.span_id,
                parent_span_id=f"{parent.span_id:016x}" if parent.is_valid else None,
                trace_flags=int(self.context.trace_flags),
                trace_state=session.redactor.text(self.context.trace_state.to_header())[0] if self.context.trace_state else "",
                name=name,
                client=call.client,
                start_ns=start_ns,
                attributes=attributes,
                intent=call.effect in INTENT_EFFECTS and not self.unsettled,
            )
            try:
                session.sink.started(started)
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                session.failed(f"the start of {self.path}")

    def _around(self) -> tuple[Context, SpanContext]:
        """The context that the call is made in, and the span in it that is the parent."""
        context = otel_context.get_current()
        parent = trace.get_current_span(context).get_span_context()
        if self.parent is not None and not parent.is_valid:
            parent = self.parent.context
            context = trace.set_span_in_context(NonRecordingSpan(parent), context)
        return context, parent

    def _stand(self, around: Context, parent: SpanContext, span: Span | None) -> None:
        """Take a place in a trace: that of the span, else one of our own."""
        self.context = spans.own_context(parent, self.run) if span is None else span.get_span_context()
        recording = span if span is not None and span.is_recording() else NonRecordingSpan(self.context)
        inner_context = trace.set_span_in_context(recording, around)
        if self.starts_run and self.run is not None:
            inner_context = baggage.set_baggage(names.RUN_ID, self.run.run_id, inner_context)
        self.inner_context = inner_context
        self.trace_id = f"{self.context.trace_id:032x}"
        self.span_id = f"{self.context.span_id:016x}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The place in a trace of a step that nobody sees: taken where it is asked for, by a body that runs."""
            if name not in _PLACE:
                raise AttributeError(name)
            self._stand(*self._around(), None)
            return object.__getattribute__(self, name)

    # ---- while it runs ------------------------------------------------------------------------------------------

    def will_be_awaited(self) -> None:
        """Who asks for the answer can wait to be cancelled, on an event loop."""
        self.awaits = True
        if self.session.orders is not None:
            cancelled.watch(self.scope)

    def body(self) -> Body:
        """A context manager: what is called inside belongs to this step."""
        return Body(self)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What the record of the step's start says."""
        return self._started

    def let_run(self) -> None:
        """A replay lets the call run: what its body calls is made as while recording."""
        self.inner.session = self.session.of_bodies()

    @property
    def runs(self) -> bool:
        """Whether its body runs as while recording."""
        return self.inner.session.mode == "record"

    def ask(self) -> Answer | None:
        """Ask the interceptors for an answer; ``None`` lets the body run.

        Raises:
            ControlSignal: a replay or a policy refuses the call.
        """
        try:
            for interceptor in self.session.interceptors:
                answer = interceptor.intercept(self)
                if answer is not None:
                    self.answer = answer
                    return answer
        except BaseException as error:
            self.fail(error)
            raise
        return None

    def learn(self, attributes: Mapping[str, Any]) -> None:
        """Add what another layer of the same call knows of it: kept when the step ends."""
        self._learnt = {**(self._learnt or {}), **attributes}

    # ---- ending -------------------------------------------------------------------------------------------------

    def succeed(
        self,
        value: object = None,
        *,
        encoded: Encoded | None = None,
        outcome: OutcomeName | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """The call returned ``value``."""
        outcome = outcome or self._told(value) or "ok"
        self.end(outcome, result=encoded if encoded is not None else self.encoded(value), attributes=attributes)

    def fail(
        self,
        error: BaseException,
        *,
        outcome: OutcomeName | None = None,
        items: Iterable[Encoded] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """The call raised ``error``."""
        self.end(outcome or self._told(error) or outcome_of(error), error=error, items=items, attributes=attributes)

    def _told(self, given: object) -> OutcomeName | None:
        ending = self.call.ending
        if ending is None:
            return None
        try:
            return ending(given)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lost()
            return None

    def encoded(self, value: object) -> Encoded | None:
        """A snapshot of a value that the call gave; ``None``, and counted, where none can be made."""
        try:
            return codec.encode(value)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lost()
            return None

    def _lost(self) -> None:
        self.session.failed(f"the end of {self.path}")

    def end(
        self,
        outcome: OutcomeName,
        *,
        result: Encoded | None = None,
        error: BaseException | None = None,
        items: Iterable[Encoded] | None = None,
        attributes: Mapping[str, Any] | None = None,
        message: str = "",
    ) -> None:
        """Close the step, once; later calls do nothing. What fails here is counted and raises nothing.

        Args:
            outcome: how it ended.
            result: what it returned.
            error: what it raised.
            items: what a stream gave, in order.
            attributes: known only now.
            message: status message where no error was raised.
        """
        if self._ended:
            return
        self._ended = True
        session = self.session
        self.outcome = outcome
        self.seq_end = session.latest = session.sequence()
        end_ns = 0 if session.unseen else session.clock()
        failed = outcome not in ("ok", "abandoned", "deferred")
        more: dict[str, Any] = {names.STEP_SEQ_END: self.seq_end, names.STEP_OUTCOME: outcome}
        events: tuple[StepEvent, ...] = ()
        try:
            if result is not None:
                self.result = self._writing.value(names.STEP_RESULT, result)
            put_end(self, more, self._writing, result=result, items=items, known=(self._learnt, attributes))
            if error is not None and not isinstance(error, ControlSignal | GeneratorExit):
                events = (put_error(more, error, end_ns, self._writing, self.call, amending(self)),)
                message = str(events[0].attributes[names.EXCEPTION_MESSAGE])
            elif failed and names.ERROR_TYPE not in more:
                more[names.ERROR_TYPE] = outcome
            if self._writing.redacted:
                more[names.STEP_REDACTED] = canonical_json(self._writing.redacted)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lost()
            more = {names.STEP_SEQ_END: self.seq_end, names.STEP_OUTCOME: outcome}
            message = ""
        if session.mode == "replay":
            self.view = more
        alone = False
        if self._span is not None:
            try:
                alone = self._span.end(more, self, events, end_ns, failed=failed, message=message)
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                self._lost()
        try:
            if session.sink is not None:
                session.sink.ended(
                    StepEnded(
                        trace_id=self.trace_id,
                        span_id=self.span_id,
                        end_ns=end_ns,
                        failed=failed,
                        message=message,
                        attributes=more,
                        events=events,
                        alone=alone,
                    )
                )
            for interceptor in session.interceptors:
                interceptor.ended(self)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lost()
        # The scope inside holds this step. Without that cycle all of it is freed now, and the next step finds its memory warm.
        self.inner = self.scope
