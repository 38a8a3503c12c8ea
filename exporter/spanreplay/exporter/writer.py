"""What recorder and exporters write to."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from spanreplay.boundary.call import StepStarted
from spanreplay.content.redaction import Redactor
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value


class Writer(Protocol):
    """What is needed of :class:`spanreplay.store.journal.JournalWriter`. Nothing raises."""

    @property
    def dropped(self) -> int:
        """Records that could not be written, in this process."""
        ...

    def open_step(self, step: StepStarted, *, kind: int, resource: Resource, scope: Scope) -> None:
        """A step has started."""
        ...

    def open_span(self, record: SpanRecord) -> None:
        """A span has started."""
        ...

    def open_plain(self, place: str, run: str, resource: Resource, scope: Scope) -> bool:
        """A span of somebody else has started; ``False``: not written, it takes :meth:`open_span`."""
        ...

    def write_plain(
        self, place: str, run: str, attributes: Mapping[str, Any], redactor: Redactor | None, resource: Resource, scope: Scope
    ) -> bool:
        """A whole span that has nothing but attributes; ``False``: not written, it takes :meth:`write_span`."""
        ...

    def close_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        end_ns: int,
        status: int,
        status_message: str,
        attributes: Mapping[str, Value],
        events: tuple[EventRecord, ...] = (),
        links: tuple[LinkRecord, ...] = (),
    ) -> None:
        """The rest of a span opened before."""
        ...

    def write_span(self, record: SpanRecord, origin: str) -> None:
        """A whole span."""
        ...

    def patch_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        attributes: Mapping[str, Value],
        events: Sequence[EventRecord] = (),
        links: Sequence[LinkRecord] = (),
    ) -> None:
        """Adds to a span."""
        ...

    def write_log(self, record: LogRecord) -> None:
        """A log record."""
        ...

    def sync(self) -> None:
        """Everything is on disk on return."""
        ...

    def seen(self, trace_id: str, span_id: str) -> bool:
        """Whether this process has written the span."""
        ...
