"""OTLP over HTTP: what the specification asks for, request by request."""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from fixtures.runs.spans import agent, chat, tool
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import LogRecord, Resource, SpanRecord
from support.receiving import At, receiving

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RUN = [agent(1), chat(2, 1), tool(3, 1, attributes={"raw": b"\x00\xff", "list": ["a", 1], "said": "ä — 𝄞"})]
LOG = LogRecord(time_ns=5, trace_id=RUN[0].trace_id, span_id=RUN[0].span_id, event_name="gen_ai.choice", body={"index": 0})
PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    """One receiver for all that is refused, or that leaves nothing which another test looks at."""
    with receiving(tmp_path_factory.mktemp("receiver") / "store") as at:
        yield at


def as_json(*records: SpanRecord | LogRecord) -> bytes:
    return json.dumps(otlp_json.encode(records)).encode()


@pytest.mark.parametrize("kind", ["Application/X-Protobuf", "application/json; charset=utf-8"])
def test_spans_arrive_as_they_were_sent_while_the_receiver_runs(kind: str, tmp_path: Path) -> None:
    with receiving(tmp_path / "store") as at:
        reply = at.post("/v1/traces", as_json(*RUN) if "json" in kind else otlp_proto.encode(RUN), kind)
        assert (reply.status, reply.headers["content-type"]) == (200, kind.partition(";")[0].lower())
        assert reply.body == (b"{}" if "json" in kind else b"")
        assert {span.span_id: span for span in at.spans()} == {span.span_id: span for span in RUN}


def test_logs_arrive_and_the_store_knows_who_delivered_them(tmp_path: Path) -> None:
    with receiving(tmp_path / "store") as at:
        assert at.post("/v1/logs", otlp_proto.encode_logs([LOG])).body == b""
        assert at.post("/v1/logs", as_json(LOG), JSON).json == {}
        assert at.post("/v1/traces", otlp_proto.encode(RUN)).status == 200
        assert at.logs() == [LOG]
        from spanreplay.store.store import Store

        found = Store.open(at.store).query("SELECT DISTINCT origin FROM spans UNION ALL SELECT origin FROM logs")
        assert list(found.rows) == [("receiver",), ("receiver",)]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstd.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("zstd", lambda data: zstd.compress(data[:9]) + zstd.compress(data[9:])),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
    ],
    ids=["gzip", "zstd", "deflate", "identity", "gzip in two", "zstd in two", "deflate without its head"],
)
def test_packed_bodies_are_unpacked(encoding: str, pack: "object", shared: At) -> None:
    span = agent(len(encoding) + 100, name=f"{encoding} {pack!r}"[:40])
    assert callable(pack)
    reply = shared.post("/v1/traces", pack(otlp_proto.encode([span])), Content_Encoding=encoding)
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"resourceSpans":[]}', b" "], ids=repr)
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_an_empty_request_is_a_success(path: str, body: bytes, shared: At) -> None:
    kind = PROTOBUF if body == b"" else JSON
    reply = shared.post(path, body.replace(b"Spans", b"Logs") if "logs" in path else body, kind)
    assert (reply.status, reply.body) == (200, b"" if kind == PROTOBUF else b"{}")


def test_what_cannot_be_read_is_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    document = otlp_json.encode(RUN)
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["traceId"] = "no hex"
    message = TracesData.FromString(otlp_proto.encode(RUN))
    message.resource_spans[0].scope_spans[0].spans[1].span_id = b"short"
    with receiving(tmp_path / "store") as at:
        said = at.post("/v1/traces", json.dumps(document).encode(), JSON).json["partialSuccess"]
        assert said["rejectedSpans"] == "1"
        assert "spans[1]" in said["errorMessage"]
        part = ExportTraceServiceResponse.FromString(at.post("/v1/traces", message.SerializeToString()).body).partial_success
        assert part.rejected_spans == 1
        assert "spans[1]" in part.error_message
        assert {span.span_id for span in at.spans()} == {RUN[0].span_id, RUN[2].span_id}


def test_what_is_kept_but_altered_is_a_warning(shared: At) -> None:
    document = otlp_json.encode(RUN)
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append({"key": "x", "value": {"intValue": "no number"}})
    said = shared.post("/v1/traces", json.dumps(document).encode(), JSON).json["partialSuccess"]
    assert said["rejectedSpans"] == "0"
    assert "attributes" in said["errorMessage"]


def test_logs_sent_to_where_traces_belong_are_rejected(shared: At) -> None:
    assert shared.post("/v1/traces", as_json(LOG, LOG), JSON).json["partialSuccess"]["rejectedSpans"] == "2"
    part = ExportLogsServiceResponse.FromString(shared.post("/v1/logs", otlp_proto.encode(RUN)).body).partial_success
    assert part.rejected_log_records == len(RUN) or part.error_message


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status", "code"),
    [
        (b"\xff\xff\xff garbage", PROTOBUF, {}, 400, 3),
        (otlp_proto.encode(RUN)[:-20], PROTOBUF, {}, 400, 3),
        (b"{", JSON, {}, 400, 3),
        (b"[" * 100_000, JSON, {}, 400, 3),
        (b"\xff\xfe\xfd", JSON, {}, 400, 3),
        (b"12", JSON, {}, 400, 3),
        (b"no gzip", PROTOBUF, {"Content_Encoding": "gzip"}, 400, 3),
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], PROTOBUF, {"Content_Encoding": "gzip"}, 400, 3),
        (b"no zstd", PROTOBUF, {"Content_Encoding": "zstd"}, 400, 3),
        (zstd.compress(b"x" * 1000)[:-4], PROTOBUF, {"Content_Encoding": "zstd"}, 400, 3),
        (b"", PROTOBUF, {"Content_Encoding": "br"}, 415, 12),
        (b"", PROTOBUF, {"Content_Encoding": "gzip, gzip"}, 415, 12),
        (b"", "text/plain", {}, 415, 12),
        (b"", None, {}, 415, 12),
    ],
)
def test_what_is_no_request_is_refused_with_a_status(
    body: bytes, kind: str | None, headers: dict[str, str], status: int, code: int, shared: At
) -> None:
    reply = shared.post("/v1/traces", body, kind, **headers)
    assert reply.status == status
    if kind == PROTOBUF:
        assert reply.headers["content-type"] == PROTOBUF
        said = Status.FromString(reply.body)
        assert (said.code, bool(said.message)) == (code, True)
        assert [detail.type_url for detail in said.details] == (["type.googleapis.com/google.rpc.BadRequest"] if status == 400 else [])
    else:
        assert reply.headers["content-type"] == JSON
        assert reply.json["code"] == code
        assert reply.json["message"]
    assert "retry-after" not in reply.headers


def test_nothing_of_a_request_that_is_refused_is_kept(tmp_path: Path) -> None:
    with receiving(tmp_path / "store") as at:
        assert at.post("/v1/traces", otlp_proto.encode(RUN)[:-20]).status == 400
        assert at.spans() == []


def test_other_pages_and_methods(shared: At) -> None:
    import http.client

    reply = shared.post("/v1/metrics", b"")
    assert reply.status == 404
    assert b"traces and logs" in reply.body
    connection = http.client.HTTPConnection("127.0.0.1", shared.http_port, timeout=10)
    for method, path, status, allow in (
        ("GET", "/v1/traces", 405, "POST"),
        ("DELETE", "/healthz", 405, "GET"),
        ("GET", "/nothing", 404, None),
    ):
        connection.request(method, path)
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.headers.get("Allow")) == (status, allow)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    said = json.loads(answer.read())
    assert (answer.status, said["status"], said["service"], said["max_request_bytes"]) == (200, "ok", "spanreplay", 64 << 20)
    connection.close()


def test_only_who_has_the_token_is_let_in(tmp_path: Path) -> None:
    token, other = "t" * 32, "u" * 32
    body = otlp_proto.encode(RUN)
    with receiving(tmp_path / "store", tokens=(token, other)) as at:
        for wrong in (None, f"Bearer {token[:-1]}", f"Basic {token}", token, "Bearer", "Bearer \xff"):
            reply = at.post("/v1/traces", body, **({} if wrong is None else {"Authorization": wrong}))
            assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert Status.FromString(reply.body).code == 16
            assert token.encode() not in reply.body
        assert at.spans() == []
        for right in (f"Bearer {token}", f"bearer {other}"):
            assert at.post("/v1/traces", body, Authorization=right).status == 200
        assert len(at.spans()) == len(RUN)


def test_the_same_spans_twice_are_there_once_and_a_fuller_one_wins(tmp_path: Path) -> None:
    less = SpanRecord(
        trace_id="ab" * 16, span_id="cd" * 8, name="n", start_ns=5, end_ns=6, resource=Resource(attributes={"service.name": "s"})
    )
    more = SpanRecord(**{**{name: getattr(less, name) for name in less.__slots__}, "attributes": {"a": 1}})
    with receiving(tmp_path / "store") as at:
        for spans in ([less, less], [more], [less], [more]):
            assert at.post("/v1/traces", otlp_proto.encode(spans)).body == b""
        assert at.spans() == [more]
