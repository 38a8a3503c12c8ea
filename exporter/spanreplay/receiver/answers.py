"""What a request is answered with, over HTTP and over gRPC.

Rules: "OTLP/gRPC Response" and "OTLP/HTTP Response" of opentelemetry-proto's ``docs/specification.md`` (1.11.0). A client sends again what
was answered with 429 or 503, and what was ``RESOURCE_EXHAUSTED`` or ``UNAVAILABLE`` with a ``RetryInfo``; everything else is final.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

Signal: TypeAlias = Literal["spans", "logs"]
Form: TypeAlias = Literal["protobuf", "json"]
Verdict: TypeAlias = Literal[
    "taken",
    "malformed",
    "unauthorized",
    "unknown-path",
    "wrong-method",
    "too-slow",
    "too-large",
    "unsupported",
    "busy",
    "failed",
    "unavailable",
]

JSON: Final = "application/json"
_LONGEST: Final = 1_000
"""Letters of a message to the client."""


class _Codes(NamedTuple):
    http: int
    grpc: int
    """Of ``google.rpc.Code``."""


_CODES: Final[dict[Verdict, _Codes]] = {
    "taken": _Codes(200, 0),
    "malformed": _Codes(400, 3),
    "unauthorized": _Codes(401, 16),
    "unknown-path": _Codes(404, 12),
    "wrong-method": _Codes(405, 12),
    "too-slow": _Codes(408, 4),
    "too-large": _Codes(413, 8),
    "unsupported": _Codes(415, 12),
    "busy": _Codes(429, 8),
    "failed": _Codes(500, 13),
    "unavailable": _Codes(503, 14),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a request."""

    verdict: Verdict
    message: str = ""
    """In English, for whoever runs the client."""
    rejected: int = 0
    """Records that will never be taken, however often they are sent."""
    retry_s: int | None = None
    """When to send again: with ``busy`` and ``unavailable``."""

    @property
    def http(self) -> int:
        """The status of HTTP."""
        return _CODES[self.verdict].http

    @property
    def grpc(self) -> int:
        """The status code of gRPC, as a number."""
        return _CODES[self.verdict].grpc


def taken(problems: Sequence[str], rejected: int) -> Answer:
    """All that could be read is on the disk.

    Args:
        problems: what was left out or altered, in words.
        rejected: how many records were left out.
    """
    shown = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
    return Answer(verdict="taken", message=shown[:_LONGEST], rejected=rejected)


def body(answer: Answer, signal: Signal, form: Form) -> bytes:
    """The body of a response over HTTP; over gRPC, the protobuf one where the request was taken."""
    if answer.verdict == "taken":
        return _response_json(answer, signal) if form == "json" else response(answer, signal).SerializeToString()
    return _status_json(answer) if form == "json" else status(answer).SerializeToString()


def response(answer: Answer, signal: Signal) -> Message:
    """The export response; without ``partial_success`` where nothing was left out or altered."""
    if signal == "spans":
        spans = ExportTraceServiceResponse()
        if answer.rejected or answer.message:
            spans.partial_success.rejected_spans = answer.rejected
            spans.partial_success.error_message = answer.message
        return spans
    logs = ExportLogsServiceResponse()
    if answer.rejected or answer.message:
        logs.partial_success.rejected_log_records = answer.rejected
        logs.partial_success.error_message = answer.message
    return logs


def status(answer: Answer) -> Status:
    """``google.rpc.Status``, with ``BadRequest`` or ``RetryInfo`` where they say more."""
    made = Status(code=answer.grpc, message=answer.message)
    if answer.verdict == "malformed":
        made.details.add().Pack(BadRequest(field_violations=[BadRequest.FieldViolation(description=answer.message)]))
    if answer.retry_s is not None:
        made.details.add().Pack(retry_info(answer.retry_s))
    return made


def retry_info(seconds: int) -> RetryInfo:
    """When to send again."""
    info = RetryInfo()
    info.retry_delay.seconds = seconds
    return info


def _response_json(answer: Answer, signal: Signal) -> bytes:
    if not answer.rejected and not answer.message:
        return b"{}"
    key = "rejectedSpans" if signal == "spans" else "rejectedLogRecords"
    return _dumped({"partialSuccess": {key: str(answer.rejected), "errorMessage": answer.message}})


def _status_json(answer: Answer) -> bytes:
    details: list[dict[str, Any]] = []
    if answer.verdict == "malformed":
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"description": answer.message}]})
    if answer.retry_s is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{answer.retry_s}s"})
    made: dict[str, Any] = {"code": answer.grpc, "message": answer.message}
    return _dumped({**made, "details": details} if details else made)


def _dumped(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode("ascii")
