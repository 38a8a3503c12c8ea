"""OTLP out: over HTTP with requests, over gRPC with the collector's own stub."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from spanreplay.spans import otlp_proto
from spanreplay.spans.record import SpanRecord

if TYPE_CHECKING:
    import requests

_BATCH_SPANS: Final = 200
_BATCH_BYTES: Final = 2_000_000
"""gRPC servers take 4 MiB a message unless told otherwise."""
_GRPC_PORT: Final = 4317
_RETRIED: Final = (429, 502, 503, 504)
"""Status codes that the OTLP specification calls retryable."""
_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before each further attempt, where the endpoint does not name a time itself."""
_OBJECT: Final = re.compile(r"^(<[^>]*>|\w+\([^)]*\)): ")
"""urllib3 puts the object that failed before its words."""
_PROTOBUF: Final = "application/x-protobuf"


class NoEndpoint(ValueError):  # noqa: N818 — reads as what happened
    """This is no OTLP endpoint."""


class SendFailed(Exception):  # noqa: N818 — reads as what happened
    """An endpoint did not take the spans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to send."""

    text: str
    """The whole URL over HTTP, ``HOST:PORT`` over gRPC."""
    grpc: bool
    secure: bool


@dataclass(slots=True, kw_only=True)
class Sent:
    """What the endpoint said."""

    rejected: int = 0
    messages: list[str] = field(default_factory=list)

    def note(self, rejected: int, message: str) -> None:
        """Adds one answer."""
        self.rejected += rejected
        if message and message not in self.messages:
            self.messages.append(message)


def address_of(endpoint: str) -> Address:
    """Where an endpoint is, as it was written.

    Raises:
        NoEndpoint: it is none.
    """
    wanted = f"wanted an endpoint such as http://localhost:4318 or grpc://localhost:4317, found {endpoint!r}"
    try:
        url = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        port, host = url.port, url.hostname
    except ValueError as error:
        raise NoEndpoint(wanted) from error
    if url.scheme not in ("http", "https", "grpc", "grpcs") or not host:
        raise NoEndpoint(wanted)
    if url.scheme.startswith("grpc") or port == _GRPC_PORT:
        shown = f"[{host}]" if ":" in host else host
        return Address(text=f"{shown}:{port or _GRPC_PORT}", grpc=True, secure=url.scheme in ("grpcs", "https"))
    path = url.path.rstrip("/")
    if not path.endswith("/v1/traces"):
        path += "/v1/traces"
    text = f"{url.scheme}://{url.netloc}{path}{f'?{url.query}' if url.query else ''}"
    return Address(text=text, grpc=False, secure=url.scheme == "https")


def send(spans: Sequence[SpanRecord], *, address: Address, headers: Mapping[str, str], timeout_s: float, ca: Path | None = None) -> Sent:
    """Send spans in batches.

    Args:
        spans: what to send.
        address: where to.
        headers: of every request.
        timeout_s: seconds to wait for each answer, and at most between two attempts.
        ca: certificates to trust instead of the system's.

    Raises:
        SendFailed: it could not be reached, or refused them.
    """
    return (_grpc if address.grpc else _http)(_batches(spans), address, headers, timeout_s, ca)


def _batches(spans: Iterable[SpanRecord]) -> Iterator[bytes]:
    """Encoded spans; a message of OTLP is the concatenation of its parts, but a resource is then written once a batch."""
    batch: list[SpanRecord] = []
    weight = 0
    for span in spans:
        size = len(otlp_proto.encode([span]))
        if batch and (len(batch) >= _BATCH_SPANS or weight + size > _BATCH_BYTES):
            yield otlp_proto.encode(batch)
            batch, weight = [], 0
        batch.append(span)
        weight += size
    if batch:
        yield otlp_proto.encode(batch)


def _http(batches: Iterator[bytes], address: Address, headers: Mapping[str, str], timeout_s: float, ca: Path | None) -> Sent:
    import requests

    sent = Sent()
    with requests.Session() as session:
        for body in batches:
            answer = _post(session, address.text, body, {"Content-Type": _PROTOBUF, **headers}, timeout_s, ca)
            if answer.status_code >= 300:
                said = _error_text(answer)
                where = f" to {answer.headers['Location']}" if "Location" in answer.headers else ""
                raise SendFailed(f"{address.text} answered {answer.status_code} {answer.reason}{where}{f': {said}' if said else ''}")
            sent.note(*_partial_success(answer))
    return sent


def _post(
    session: "requests.Session", url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, ca: Path | None
) -> "requests.Response":
    import requests

    verify = str(ca) if ca is not None else None  # said for each request: the environment's would win over the session's

    for pause in (*_PAUSES, None):
        try:
            answer = session.post(url, data=body, headers=dict(headers), timeout=timeout_s, allow_redirects=False, verify=verify)
        except requests.Timeout as error:
            raise SendFailed(f"{url} did not answer within {timeout_s:g} s; --timeout waits longer") from error
        except requests.RequestException as error:
            raise SendFailed(f"{url} cannot be reached: {_reason(error)}") from error
        if answer.status_code not in _RETRIED or pause is None:
            return answer
        wanted = answer.headers.get("Retry-After", "")
        time.sleep(min(float(wanted) if wanted.isdecimal() else pause, timeout_s))
    raise AssertionError


def _reason(error: BaseException) -> str:
    inner: BaseException = error
    while inner.args and isinstance(inner.args[0], BaseException):
        inner = inner.args[0]
    reason = getattr(inner, "reason", inner)
    return _OBJECT.sub("", str(reason))


def _error_text(answer: "requests.Response") -> str:
    """What an error answer says: OTLP has a ``google.rpc.Status`` there."""
    if answer.headers.get("Content-Type", "").startswith(_PROTOBUF):
        from google.protobuf.message import DecodeError
        from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

        try:
            return str(Status.FromString(answer.content).message)[:200]
        except DecodeError:
            return ""
    return answer.text[:200].strip()


def _partial_success(answer: "requests.Response") -> tuple[int, str]:
    """How many spans were rejected, and why."""
    kind = answer.headers.get("Content-Type", "")
    if kind.startswith(_PROTOBUF):
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        try:
            partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
        except DecodeError as error:
            raise SendFailed(f"{answer.url} answered {answer.status_code} with a body that is not OTLP; is it an OTLP endpoint?") from error
        return partial.rejected_spans, partial.error_message
    if kind.startswith("application/json"):
        try:
            told = answer.json().get("partialSuccess") or {}
            return int(told.get("rejectedSpans") or 0), str(told.get("errorMessage") or "")
        except (ValueError, AttributeError, TypeError):
            return 0, ""
    return 0, ""


def _grpc(batches: Iterator[bytes], address: Address, headers: Mapping[str, str], timeout_s: float, ca: Path | None) -> Sent:
    import grpc
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

    sent = Sent()
    where = address.text
    trusted = ca.read_bytes() if ca is not None else None
    channel = grpc.secure_channel(where, grpc.ssl_channel_credentials(trusted)) if address.secure else grpc.insecure_channel(where)
    metadata = [(name.lower(), value) for name, value in headers.items()]
    with channel:
        stub: Any = TraceServiceStub(channel)  # type: ignore[no-untyped-call]
        for body in batches:
            try:
                answer = stub.Export(ExportTraceServiceRequest.FromString(body), timeout=timeout_s, metadata=metadata)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise SendFailed(f"{where} did not answer within {timeout_s:g} s; --timeout waits longer") from error
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    raise SendFailed(f"{where} cannot be reached: {error.details()}") from error
                raise SendFailed(f"{where} did not take the spans: {error.code().name}: {error.details()}") from error
            except ValueError as error:
                raise SendFailed(f"a --header cannot be sent over gRPC: {error}") from error
            sent.note(answer.partial_success.rejected_spans, answer.partial_success.error_message)
    return sent
