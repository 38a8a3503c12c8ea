"""OTLP over gRPC: what the specification asks for, call by call."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from fixtures.runs.spans import agent, chat
from spanreplay.receiver.answers import Answer
from spanreplay.receiver.intake import Intake, busy
from spanreplay.receiver.settings import ReceiverError
from spanreplay.spans import otlp_proto
from spanreplay.spans.record import LogRecord
from support.receiving import At, receiving

RUN = [agent(1), chat(2, 1)]
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    with receiving(tmp_path_factory.mktemp("receiver") / "store", limit=100_000) as at:
        yield at


def call(at: At, body: bytes, method: str = TRACES, **options: Any) -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{at.grpc_port}") as channel:
        export: Any = channel.unary_unary(method)
        answer: bytes = export(body, timeout=30, **options)
        return answer


def refused(at: At, body: bytes, method: str = TRACES, **options: Any) -> Any:
    with pytest.raises(grpc.RpcError) as error:
        call(at, body, method, **options)
    return error.value


def details(error: Any) -> tuple[Status, RetryInfo | None]:
    trailing = dict(error.trailing_metadata())
    retry = trailing.get("google.rpc.retryinfo-bin")
    return Status.FromString(trailing["grpc-status-details-bin"]), None if retry is None else RetryInfo.FromString(retry)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_spans_and_logs_arrive(compression: grpc.Compression, shared: At) -> None:
    assert call(shared, otlp_proto.encode(RUN), compression=compression) == b""
    assert call(shared, b"") == b""
    assert shared.spans() == RUN
    log = LogRecord(time_ns=5, trace_id=RUN[0].trace_id, body="said")
    assert call(shared, otlp_proto.encode_logs([log]), LOGS, compression=compression) == b""
    assert shared.logs() == [log]


def test_a_part_that_cannot_be_read_is_told(shared: At) -> None:
    message = TracesData.FromString(otlp_proto.encode(RUN))
    message.resource_spans[0].scope_spans[0].spans[1].span_id = b"short"
    assert ExportTraceServiceResponse.FromString(call(shared, message.SerializeToString())).partial_success.rejected_spans == 1
    assert not ExportLogsServiceResponse.FromString(call(shared, b"", LOGS)).HasField("partial_success")


def test_what_is_no_request_is_an_invalid_argument(shared: At) -> None:
    error = refused(shared, b"\xff garbage")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    status, retry = details(error)
    assert (status.code, [detail.type_url for detail in status.details], retry) == (3, ["type.googleapis.com/google.rpc.BadRequest"], None)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_what_is_too_large_packed_or_unpacked_is_not_to_be_sent_again(compression: grpc.Compression, shared: At) -> None:
    error = refused(shared, bytes(200_000), compression=compression)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in dict(error.trailing_metadata())


def test_what_is_not_kept_is_not_implemented(shared: At) -> None:
    error = refused(shared, b"", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_message_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    hold = threading.Event()

    def nothing() -> Iterator[bytes]:
        hold.wait(30)
        yield b""

    with receiving(tmp_path / "store", idle_s=0.2, body_s=0.2) as at, grpc.insecure_channel(f"127.0.0.1:{at.grpc_port}") as channel:
        export: Any = channel.stream_unary(TRACES)
        calls = [export.future(nothing()) for _ in range(20)]  # more than are read at a time: the others wait, and then may come again
        codes = {pending.exception().code() for pending in calls}
        hold.set()
    assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert grpc.StatusCode.DEADLINE_EXCEEDED in codes


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (busy(), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (Answer(verdict="unavailable", message="full", retry_s=2), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_what_may_be_sent_again_says_when(answer: Answer, code: grpc.StatusCode, shared: At, monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(intake: Intake, _: object, reserved: int) -> Answer:
        intake.release(reserved)
        return answer

    monkeypatch.setattr(Intake, "take", take)
    error = refused(shared, b"")
    assert error.code() is code
    status, retry = details(error)
    assert retry is not None
    assert retry.retry_delay.seconds == answer.retry_s
    assert [detail.type_url for detail in status.details] == ["type.googleapis.com/google.rpc.RetryInfo"]


def test_only_who_has_the_token_is_let_in(tmp_path: Path) -> None:
    token = "t" * 32
    with receiving(tmp_path / "store", tokens=(token,)) as at:
        for wrong in ((), (("authorization", "Bearer x"),), (("authorization", token),)):
            assert refused(at, otlp_proto.encode(RUN), metadata=wrong).code() is grpc.StatusCode.UNAUTHENTICATED
        assert call(at, otlp_proto.encode(RUN), metadata=(("authorization", f"Bearer {token}"),)) == b""


def test_a_port_that_is_taken_is_said(tmp_path: Path, shared: At) -> None:
    from spanreplay.receiver.receiver import Receiver
    from spanreplay.receiver.settings import Settings

    for ports, option in (((0, shared.grpc_port), "--grpc-port"), ((shared.http_port, 0), "--http-port")):
        receiver = Receiver(Settings(store=tmp_path / "store", http_port=ports[0], grpc_port=ports[1]))
        with pytest.raises(ReceiverError, match=option):
            asyncio.run(receiver.serve(lambda: None, asyncio.Event()))
