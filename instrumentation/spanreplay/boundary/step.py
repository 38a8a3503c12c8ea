"""One live step: its place, its span, and the record of how it ended."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Status, StatusCode

from spanreplay.boundary import cancelled, spans
from spanreplay.boundary.body import Body
from spanreplay.boundary.call import INTENT_EFFECTS, Answer, Call, OutcomeName, StepEnded, StepEvent, StepStarted
from spanreplay.boundary.contents import digests_json, for_span
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.raised import outcome_of, put_error
from spanreplay.boundary.scope import Scope, step_label
from spanreplay.boundary.starting import start_attributes
from spanreplay.boundary.writing import Writing, lossy_in, put_lossy
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
        "_contents",
        "_ended",
        "_learnt",
        "_on_span",
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
        self._span: Span | None = None
        self._contents: dict[str, str] = {}
        self._learnt: dict[str, Any] | None = None
        self._on_span = -1
        """Attributes on the span, as long as they are all ours; else -1."""
        self.starts_run = False
        self.run: RunContext | None = self._run_of(scope, call)
        self.inner = scope.inside(self)
        if self.starts_run:  # paths are relative to the run
            self.inner.run = self.run
            self.inner.path = ""
        self._writing = Writing(session, self.path)
        self.input = None if call.input is None else self._writing.text(names.STEP_INPUT, call.input.text)
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
        span = self._start_span(name, parent_context, parent, attributes, start_ns) if session.open_spans else None
        self._stand(parent_context, parent, span)
        self._span = span if span is not None and span.is_recording() else None
        self._started = attributes
        if session.sink is not None:
            started = StepStarted(
                trace_id=self.trace_id,
                span_id=self.span_id,
                parent_span_id=f"{parent.span_id:016x}" if parent.is_valid else None,
                trace_flags=int(self.context.trace_flags),
                trace_state=self.context.trace_state.to_header() if self.context.trace_state else "",
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

    def _start_span(
        self, name: str, parent_context: Context, parent: SpanContext, attributes: Mapping[str, Any], start_ns: int
    ) -> Span | None:
        try:
            span = spans.start_span(name, parent_context, parent, client=self.call.client, start_ns=start_ns)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.session.failed(f"the span of {self.path}")
            return None
        try:
            if span is not None and span.is_recording():
                self._on_span = spans.put(span, for_span(attributes, self.session, self._contents, self.call.kind), 0)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.session.failed(f"the attributes of the span of {self.path}")
        return span

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
            self._put_end(more, result, items, attributes)
            if error is not None and not isinstance(error, ControlSignal | GeneratorExit):
                events = (put_error(more, error, end_ns, self._writing, self.call, self._amending()),)
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
        try:
            self._close_span(more, events, end_ns, failed=failed, message=message)
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
                        alone=self._on_span >= 0,
                    )
                )
            for interceptor in session.interceptors:
                interceptor.ended(self)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self._lost()
        # The scope inside holds this step. Without that cycle all of it is freed now, and the next step finds its memory warm.
        self.inner = self.scope

    def _amending(self) -> Callable[[Mapping[str, Any]], None] | None:
        amended: Callable[[str, str, Mapping[str, Any]], None] | None = getattr(self.session.sink, "amended", None)
        return None if amended is None else partial(amended, self.trace_id, self.span_id)

    def _put_end(
        self, more: dict[str, Any], result: Encoded | None, items: Iterable[Encoded] | None, attributes: Mapping[str, Any] | None
    ) -> None:
        writing = self._writing
        for given in (self._learnt, attributes):
            for name, value in (given or {}).items():
                writing.put(more, name, value)
        if result is not None:
            text = self.result = writing.text(names.STEP_RESULT, result.text)
            if self.starts_run:
                more[names.RUN_OUTPUT] = text
            else:
                writing.put_typed(more, result, text, names.STEP_RESULT, self.call.result_attribute)
        if self.call.held is not None:
            left = self.call.held.left() if self.answer is None else self.answer.left
            if left is not None:
                more[names.STEP_LEFT] = writing.text(names.STEP_LEFT, left)
        untaped = self.run.untaped_json() if self.starts_run and self.run is not None else None
        if untaped is not None:
            more[names.RUN_UNTAPED] = writing.text(names.RUN_UNTAPED, untaped)
        if self.starts_run and self.session.clock_reads:
            more[names.RUN_CLOCK] = self.session.clock_reads.take()
        if self.starts_run and self.session.orders:
            more[names.RUN_ORDER] = self.session.orders.take()
        if items is not None:
            kept = list(items)
            more[names.STEP_ITEMS] = writing.text(names.STEP_ITEMS, "[" + ",".join(i.text for i in kept) + "]")
            if any(i.lossy for i in kept):
                put_lossy(more, names.STEP_ITEMS)
        if names.STEP_LOSSY in more:
            put_lossy(more, *lossy_in(self._started))

    def _close_span(self, more: dict[str, Any], events: tuple[StepEvent, ...], end_ns: int, *, failed: bool, message: str) -> None:
        span = self._span
        if span is None:
            return
        expected, self._on_span = self._on_span, -1
        try:
            on_span = for_span(more, self.session, self._contents, self.call.kind)
            on_span[names.STEP_DIGESTS] = digests_json(self._contents)
            self._on_span = spans.put(span, on_span, expected)
            for event in events:
                span.add_event(event.name, dict(event.attributes), event.time_ns)
            if failed:
                span.set_status(Status(StatusCode.ERROR, message or None))
        finally:
            span.end(end_ns)
