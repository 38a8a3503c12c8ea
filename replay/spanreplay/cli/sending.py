"""OTLP out: over HTTP with requests, over gRPC with the collector's own stub."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from spanreplay.spans import otlp_proto
from spanreplay.spans.record import SpanRecord

_BATCH: Final = 200
_GRPC_PORT: Final = 4317
_RETRIED: Final = (429, 502, 503, 504)
"""Status codes that the OTLP specification calls retryable."""


class SendFailed(Exception):  # noqa: N818 — reads as what happened
    """An endpoint did not take the spans."""


def send(spans: Sequence[SpanRecord], *, endpoint: str, headers: Mapping[str, str], timeout_s: float) -> int:
    """Send spans in batches; returns how many the endpoint rejected.

    Raises:
        SendFailed: it could not be reached, or refused them.
    """
    url = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    if url.scheme not in ("http", "https", "grpc", "grpcs") or not url.hostname:
        raise SendFailed(f"wanted an endpoint such as http://localhost:4318 or grpc://localhost:4317, found {endpoint!r}")
    batches = _batches(spans)
    if url.scheme.startswith("grpc") or url.port == _GRPC_PORT:
        return _grpc(batches, f"{url.hostname}:{url.port or _GRPC_PORT}", url.scheme in ("grpcs", "https"), headers, timeout_s)
    path = url.path.rstrip("/")
    if not path.endswith("/v1/traces"):
        path += "/v1/traces"
    return _http(batches, f"{url.scheme}://{url.netloc}{path}", headers, timeout_s)


def _batches(spans: Sequence[SpanRecord]) -> Iterator[bytes]:
    for start in range(0, len(spans), _BATCH):
        yield otlp_proto.encode(spans[start : start + _BATCH])


def _http(batches: Iterator[bytes], url: str, headers: Mapping[str, str], timeout_s: float) -> int:
    import requests
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    rejected = 0
    with requests.Session() as session:
        retry = Retry(total=3, connect=0, backoff_factor=0.5, status_forcelist=_RETRIED, allowed_methods=None, raise_on_status=False)
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        for body in batches:
            try:
                answer = session.post(url, data=body, headers={"Content-Type": "application/x-protobuf", **headers}, timeout=timeout_s)
            except requests.RequestException as error:
                raise SendFailed(f"{url} cannot be reached: {_reason(error)}") from error
            if answer.status_code >= 300:
                raise SendFailed(f"{url} answered {answer.status_code} {answer.reason}: {answer.text[:200]}")
            if answer.headers.get("Content-Type", "").startswith("application/x-protobuf"):
                rejected += ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans
    return rejected


def _reason(error: BaseException) -> str:
    inner: BaseException = error
    while inner.args and isinstance(inner.args[0], BaseException):
        inner = inner.args[0]
    return str(getattr(inner, "reason", inner))


def _grpc(batches: Iterator[bytes], address: str, secure: bool, headers: Mapping[str, str], timeout_s: float) -> int:
    import grpc
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

    rejected = 0
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials()) if secure else grpc.insecure_channel(address)
    with channel:
        stub: Any = TraceServiceStub(channel)  # type: ignore[no-untyped-call]
        for body in batches:
            try:
                answer = stub.Export(
                    ExportTraceServiceRequest.FromString(body), timeout=timeout_s, metadata=[(k.lower(), v) for k, v in headers.items()]
                )
            except grpc.RpcError as error:
                raise SendFailed(f"{address} did not take the spans: {error.code().name}: {error.details()}") from error
            rejected += answer.partial_success.rejected_spans
    return rejected
