"""The recorder: what the Boundary says and what foreign instrumentation says go into one journal, each span once.

It is the :class:`~spanreplay.boundary.session.CaptureSink` of a recording session and a processor of every tracer and logger
provider of the application. It has the methods of the SDK's ``SpanProcessor`` and ``LogRecordProcessor`` without being derived from them:
recording must not import the SDK into processes that never use it.
"""

import logging
import time
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spanreplay.boundary import reports
from spanreplay.boundary.call import StepEnded, StepStarted
from spanreplay.boundary.complaints import complain
from spanreplay.boundary.scope import current_scope
from spanreplay.content.redaction import Redactor
from spanreplay.exporter.convert import Converter
from spanreplay.exporter.events import is_event, mark_kept
from spanreplay.exporter.origin import process_resource
from spanreplay.exporter.overflow import attributes_of, has_events, has_links, is_plain, overflow, watch
from spanreplay.exporter.writer import Writer
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import (
    KIND_CLIENT,
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_UNSET,
    EventRecord,
    LinkRecord,
    Resource,
    Scope,
    Value,
)
from spanreplay.store.record_text import plain_end

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan, Span

_log: Final = logging.getLogger("spanreplay")
_OWN_SCOPE: Final = Scope(name=names.SCOPE_NAME)
_MAX_OPEN: Final = 100_000
"""Open spans remembered. A span beyond these is still written; what a user added to it may not be."""

PENDING: Final = "pending_span"
"""Value of ``logfire.span_type`` on the copies that Logfire sends when a span begins; the span itself follows."""


_Key = tuple[int, int]
"""Trace id and span id, as the SDK has them."""


class _Begun(NamedTuple):
    """An open span of somebody else."""

    run_id: str | None
    run: str
    """The same, as a member of the JSON of its attributes."""
    name: str
    place: str | None
    """Where its lines can be written without a record in between."""
    origin: tuple[Resource, Scope]
    """Who made it."""


class _Own:
    """An open step: what the Boundary set on its span, so that only what somebody else added is written again."""

    __slots__ = ("resource", "run_id", "span", "started")

    def __init__(self) -> None:
        self.started: Mapping[str, Any] | None = None
        self.resource: Resource | None = None
        self.span: ReadableSpan | None = None
        self.run_id: str | None = None


class Recorder:
    """Writes steps and foreign spans to one journal.

    Args:
        writer: where to.
        redactor: applied to what foreign instrumentation says; the Boundary's own texts come redacted.
        durable: everything is on disk before the call returns, not only the record of a call with an effect.
    """

    def __init__(self, writer: Writer, *, redactor: Redactor | None = None, durable: bool = False) -> None:
        self.writer = writer
        self.converter = Converter(redactor)
        self.durable = durable
        self.active = True
        """Cleared by :meth:`stop`; a processor that somebody still holds then does nothing."""
        self.steps = 0
        """Steps begun."""
        self.spans = 0
        """Foreign spans kept."""
        self.failures = 0
        """Records lost before they reached the writer."""
        self._own: dict[_Key, _Own] = {}
        self._foreign: dict[_Key, _Begun] = {}
        self._resource: Resource | None = None
        self._forked_ns: int | None = None
        self._complained_at = float("-inf")

    # ---- the sink ------------------------------------------------------------------------------------------------

    def started(self, step: StepStarted) -> None:
        """Keep that a step has begun; for an intent, on the disk."""
        try:
            self.steps += 1
            key = (int(step.trace_id, 16), int(step.span_id, 16))
            own = self._own.get(key)
            if own is None:
                own = self._remember(key)
            own.started = step.attributes
            run_id = step.attributes.get(names.RUN_ID)
            own.run_id = run_id if isinstance(run_id, str) else None
            self.writer.open_step(
                step,
                kind=KIND_CLIENT if step.client else KIND_INTERNAL,
                resource=own.resource or self.resource(),
                scope=_OWN_SCOPE,
            )
            if step.intent or self.durable:
                self.writer.sync()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("the start of a step")

    def settle(self) -> None:
        """All steps that have begun are on the disk."""
        try:
            self.writer.sync()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("the start of a step")

    def ended(self, step: StepEnded) -> None:
        """Keep how a step ended, and what others added to its span meanwhile."""
        try:
            own = self._own.pop((int(step.trace_id, 16), int(step.span_id, 16)), None)
            if own is None and self._forked_ns is not None:
                return  # begun before the fork: the parent's to end
            attributes: Mapping[str, Value] = step.attributes
            events: tuple[EventRecord, ...] = ()
            if step.events:
                events = tuple(EventRecord(name=e.name, time_ns=e.time_ns, attributes=e.attributes) for e in step.events)
            links: tuple[LinkRecord, ...] = ()
            if own is not None and own.span is not None:
                added, added_events, links = self._additions(own, own.span, step)
                if added:
                    attributes = {**added, **attributes}
                events += added_events
            self.writer.close_span(
                step.trace_id,
                step.span_id,
                end_ns=step.end_ns,
                status=STATUS_ERROR if step.failed else STATUS_UNSET,
                status_message=step.message,
                attributes=attributes,
                events=events,
                links=links,
            )
            if self.durable:
                self.writer.sync()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("the end of a step")

    def amended(self, trace_id: str, span_id: str, attributes: Mapping[str, Value]) -> None:
        """Keep attributes of a step that has ended, in place of those that it ended with."""
        try:
            self.writer.patch_span(trace_id, span_id, attributes=attributes)
            if self.durable:
                self.writer.sync()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("what came of a step after its end")

    def _additions(
        self, own: _Own, span: "ReadableSpan", step: StepEnded
    ) -> tuple[dict[str, Value], tuple[EventRecord, ...], tuple[LinkRecord, ...]]:
        attributes: dict[str, Value] = {}
        if not step.alone:
            spilled, present = overflow(span)[0], attributes_of(span)
            if spilled:
                present = {**spilled, **present}
            added = present.keys() - (own.started or {}).keys() - step.attributes.keys()
            added.discard(names.STEP_DIGESTS)
            if added:
                attributes = self.converter.attributes({name: present[name] for name in present if name in added})
        events: list[Any] = []
        if has_events(span):
            told = {(event.name, event.time_ns) for event in step.events}
            events = [event for event in span.events if (event.name, event.timestamp) not in told]
        links = self.converter.links(span.links) if has_links(span) else ()
        return attributes, self.converter.events(events) if events else (), links

    # ---- the span processor --------------------------------------------------------------------------------------

    def on_start(self, span: "Span", parent_context: "Context | None" = None) -> None:
        """A span begins: of ours, remembered; of somebody else, written, so that a crash leaves evidence of it."""
        if not self.active:
            return
        try:
            source, converter = span.instrumentation_scope, self.converter
            name = None if source is None else source.name
            given = attributes_of(span)
            if name != names.SCOPE_NAME and (name in reports.scopes or _says_pending(given)):
                return
            watch(span)
            scope, context = current_scope(), span.get_span_context()
            key = (context.trace_id, context.span_id)
            if scope is not None and scope.session.sink is not self:
                return
            if name == names.SCOPE_NAME:
                self._remember(key).resource = converter.resource(span.resource)
                return
            run_id, run, place = self._run_of(span), "", None
            if run_id is not None:
                run = f'"{names.RUN_ID}":{quoted(run_id)}'
            if run_id is None or run_id.isascii():
                place = converter.place(span, key, context)
            if len(self._foreign) >= _MAX_OPEN:
                _cap(self._foreign)
            origin = converter.resource(span.resource), converter.scope(source)
            self._foreign[key] = _Begun(run_id, run, span.name, place, origin)
            if place is None or not self.writer.open_plain(place, run, *origin):
                self.writer.open_span(converter.start(span, None if run_id is None else {names.RUN_ID: run_id}))
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("the start of a span")

    def _on_ending(self, span: "Span") -> None:
        """Nothing: the SDK has frozen the span already."""

    def on_end(self, span: "ReadableSpan") -> None:
        """A span ends: of ours, looked at for what others added; of somebody else, written whole."""
        if not self.active:
            return
        try:
            context = span.get_span_context()
            if context is None:
                return
            key = (context.trace_id, context.span_id)
            begun = self._foreign.pop(key, None)
            if begun is None and not self._is_wanted(span, key):
                return
            if is_pending(span):
                return
            self.spans += 1
            if begun is None or not self._written(span, begun):
                run_id = self._run_of(span) if begun is None else begun.run_id
                self.writer.write_span(self.converter.span(span, None if run_id is None else {names.RUN_ID: run_id}), "recorder")
            if self.durable:
                self.writer.sync()
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("a span")

    def _is_wanted(self, span: "ReadableSpan", key: _Key) -> bool:
        """Whether a span is to be written whole of which it is not known here that it began."""
        own = self._own.get(key)
        if own is not None and own.started is not None:
            own.span = span
            return False
        if is_pending(span) or _is_report(span):
            return False
        self._own.pop(key, None)
        if self._elsewhere() or (_is_own(span) and self.writer.seen(f"{key[0]:032x}", f"{key[1]:016x}")):
            return False
        return self._forked_ns is None or (span.start_time or 0) >= self._forked_ns

    def _written(self, span: "ReadableSpan", begun: _Begun) -> bool:
        """Whether it could be written without a record in between."""
        if begun.place is None or span.name != begun.name or not is_plain(span):
            return False
        attributes = attributes_of(span)
        return self.writer.write_plain(
            begun.place + plain_end(span.end_time, span.status.status_code._value_),
            "" if names.RUN_ID in attributes else begun.run,
            attributes,
            self.converter.redactor,
            *begun.origin,
        )

    # ---- the log record processor --------------------------------------------------------------------------------

    def on_emit(self, log_record: "ReadWriteLogRecord") -> None:
        """A log record is made: kept if it may carry content of a model or tool call."""
        if not self.active:
            return
        try:
            record = log_record.log_record
            if not is_event(record) or self._elsewhere():
                return
            scope = current_scope()
            run_id = scope.run.run_id if scope is not None and scope.run is not None else None
            self.writer.write_log(self.converter.log(log_record, None if run_id is None else {names.RUN_ID: run_id}))
            mark_kept(record)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            self.failed("a log event")

    def enabled(self, *_: object, **__: object) -> bool:
        """Events are wanted."""
        return self.active

    # ---- both processors -----------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Nothing: one provider's end is not the recorder's; others go on."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Put everything on the disk."""
        if self.active:
            self.writer.sync()
        return True

    # ---- parts ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more spans. Steps in progress still end."""
        self.active = False

    def holds(self, trace_id: str, span_id: str) -> bool:
        """Whether the span is open here and will be written when it ends."""
        key = (int(trace_id, 16), int(span_id, 16))
        return self.active and (key in self._foreign or key in self._own)

    def left_open(self, trace_id: str, span_id: str) -> bool:
        """Whether this recorder wrote that the span began, and was stopped before it ended."""
        return not self.active and (int(trace_id, 16), int(span_id, 16)) in self._foreign

    def resource(self) -> Resource:
        """This process, for spans that no provider made."""
        if self._resource is None:
            self._resource = process_resource()
        return self._resource

    def after_fork(self) -> None:
        """In a forked child: what the parent has open is the parent's to end."""
        self._own, self._foreign = {}, {}
        self._resource = None
        self._forked_ns = time.time_ns()
        self.steps = self.spans = self.failures = 0

    def failed(self, what: str) -> None:
        """Count a record lost here, and log one line a minute at most."""
        self.failures += 1
        now = time.monotonic()
        if now - self._complained_at >= 60:
            self._complained_at = now
            complain(_log, "spanreplay could not keep %s (%d so far); the agent is not affected", what, self.failures)

    def _remember(self, key: _Key) -> _Own:
        _cap(self._own)
        own = self._own[key] = _Own()
        return own

    def _run_of(self, span: "ReadableSpan") -> str | None:
        if names.RUN_ID in attributes_of(span):
            return None
        parent = span.parent
        if parent is not None:
            key = (parent.trace_id, parent.span_id)
            own = self._own.get(key)
            begun = self._foreign.get(key) if own is None else None
            found = own.run_id if own is not None else begun.run_id if begun is not None else None
            if found is not None:
                return found
        scope = current_scope()
        return scope.run.run_id if scope is not None and scope.run is not None else None

    def _elsewhere(self) -> bool:
        """True inside another session, a replay for one: its spans are not part of what is recorded."""
        scope = current_scope()
        return scope is not None and scope.session.sink is not self


def _is_own(span: "ReadableSpan") -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == names.SCOPE_NAME


def _is_report(span: "ReadableSpan") -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name in reports.scopes


def is_pending(span: "ReadableSpan") -> bool:
    """Whether this is the copy of a span that Logfire sends when the span begins."""
    return _says_pending(attributes_of(span))


def _says_pending(attributes: Mapping[str, Any]) -> bool:
    return attributes.get("logfire.span_type") == PENDING


def _cap(table: dict[_Key, Any]) -> None:
    while len(table) >= _MAX_OPEN:
        try:
            del table[next(iter(table))]
        except (StopIteration, KeyError, RuntimeError):  # another thread was here first
            return
