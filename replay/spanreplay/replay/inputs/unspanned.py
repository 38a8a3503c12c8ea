"""Log records that tell of a call and stand in no span: no step is made of them, and a dialect says what to switch on to have spans."""

from functools import cache
from typing import Protocol, runtime_checkable

from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.spans.record import LogRecord


@runtime_checkable
class Logging(Dialect, Protocol):
    """A dialect of a tool that can be told to write log records alone."""

    def unspanned(self, log: LogRecord) -> str | None:
        """What to change in the tool so that a call of which a record tells has a span; ``None`` where the record tells of no call of its.

        Args:
            log: written in no span.
        """
        ...


@cache
def _logging() -> tuple[Logging, ...]:
    return tuple(dialect for dialect in registry() if isinstance(dialect, Logging))


def advice_on(log: LogRecord) -> str | None:
    """What to change so that the call of which a record tells has a span; ``None`` where it has one, or the record tells of none."""
    if log.trace_id and log.span_id:
        return None
    return next((advice for dialect in _logging() if (advice := dialect.unspanned(log)) is not None), None)
