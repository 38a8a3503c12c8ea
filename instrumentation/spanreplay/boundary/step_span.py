"""The OpenTelemetry span of a step, which carries what the session's settings say of what is recorded of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, Status, StatusCode

from spanreplay.boundary import spans
from spanreplay.boundary.call import StepEvent
from spanreplay.boundary.contents import digests_json, for_span
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.step import Step


def start(step: "Step", name: str, around: Context, parent: SpanContext, start_ns: int) -> Span | None:
    """A span for a step that begins; ``None``, and counted where it is a failure, where there is none.

    Args:
        step: which has no place in a trace yet.
        name: of the span.
        around: the context that it is started in.
        parent: the span in that.
        start_ns: nanoseconds since the epoch.
    """
    try:
        return spans.start_span(name, around, parent, client=step.call.client, start_ns=start_ns)
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        step.session.failed(f"the span of {step.path}")
        return None


class StepSpan:
    """A span that is recorded, and what of it is ours.

    Args:
        span: it.
    """

    __slots__ = ("_contents", "_held", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self._contents: dict[str, str] = {}
        self._held = -1
        """Attributes on the span, as long as they are all ours; else -1."""

    def begin(self, attributes: Mapping[str, Any], step: "Step") -> None:
        """Put on it what is said at the step's start. Raises nothing."""
        try:
            self._held = spans.put(self.span, for_span(attributes, step.session, self._contents, step.call.kind), 0)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            step.session.failed(f"the attributes of the span of {step.path}")

    def end(
        self, attributes: Mapping[str, Any], step: "Step", events: Sequence[StepEvent], end_ns: int, *, failed: bool, message: str
    ) -> bool:
        """Put on it what is said at the step's end, and end it.

        Args:
            attributes: of the end.
            step: that ends.
            events: what it raised.
            end_ns: nanoseconds since the epoch.
            failed: its status is an error.
            message: beside that.

        Returns:
            Whether it is known that nobody else has set an attribute on it.

        Raises:
            Exception: whatever the span raises; it has ended all the same.
        """
        span = self.span
        try:
            said = for_span(attributes, step.session, self._contents, step.call.kind)
            said[names.STEP_DIGESTS] = digests_json(self._contents)
            held = spans.put(span, said, self._held)
            for event in events:
                span.add_event(event.name, dict(event.attributes), event.time_ns)
            if failed:
                span.set_status(Status(StatusCode.ERROR, message or None))
        finally:
            span.end(end_ns)
        return held >= 0
