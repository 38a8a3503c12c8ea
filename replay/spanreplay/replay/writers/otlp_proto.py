"""OTLP protobuf: one ``TracesData`` message, which is also the body of an export request."""

from collections.abc import Sequence
from typing import Final

from spanreplay.replay.model import Run
from spanreplay.spans import otlp_proto
from spanreplay.spans.record import Record, SpanRecord

NAME: Final = "otlp-proto"
BINARY: Final = True
LOGS: Final = False


def write(records: Sequence[Record], runs: Sequence[Run]) -> bytes:
    """The message."""
    del runs
    return otlp_proto.encode(record for record in records if isinstance(record, SpanRecord))
