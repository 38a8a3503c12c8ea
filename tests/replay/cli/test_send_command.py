"""``send``: to a receiver on loopback, over HTTP and gRPC, that behaves well and badly."""

import http.server
import json
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server

from fixtures.runs.spans import chat, own, own_root, wired
from spanreplay.cli import sending
from spanreplay.cli.sending import address_of
from spanreplay.semconv import attributes as a
from spanreplay.spans import otlp_proto
from spanreplay.spans.record import LogRecord, SpanRecord
from support.command_line import CommandLine
from support.loopback import LoopbackServer

PROTOBUF = "application/x-protobuf"
OK = (200, {"Content-Type": PROTOBUF}, b"")


@dataclass
class Receiver:
    """What came, and what to answer: the answers in turn, the last one for ever. ``None`` is no answer at all."""

    answers: list[tuple[int, dict[str, str], bytes] | None] = field(default_factory=lambda: [OK])
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    endpoint: str = ""
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def spans(self) -> list[SpanRecord]:
        return [r for body in self.bodies for r in otlp_proto.decode(body) if isinstance(r, SpanRecord)]


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            receiver.headers.append({k.lower(): v for k, v in self.headers.items()})
            receiver.paths.append(self.path)
            answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            if answer is None:
                receiver.done.wait(30)
                return
            code, headers, body = answer
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with LoopbackServer(Handler) as server:
        receiver.endpoint = server.url
        try:
            yield receiver
        finally:
            receiver.done.set()


@pytest.fixture
def otlp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(sending, "_PAUSES", (0.0, 0.0, 0.0))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with http_receiver() as receiver:
        yield receiver


SPANS = [own_root(1), own(2, 1, "model_call", seq=2, attributes={**wired(), a.GEN_AI_REQUEST_MODEL: "m"})]


@pytest.fixture
def path(spanreplay: CommandLine) -> str:
    return str(spanreplay.file("t.json", *SPANS))


def test_the_view_arrives_without_the_wire(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    done = spanreplay("send", path, "--endpoint", otlp.endpoint)
    assert (done.code, done.out, done.err) == (0, f"{SPANS[0].trace_id}\n", f"sent 2 spans to {otlp.endpoint}\n")
    assert otlp.paths == ["/v1/traces"]
    assert otlp.headers[0]["content-type"] == PROTOBUF
    assert [s.span_id for s in otlp.spans] == [s.span_id for s in SPANS]
    for sent, span in zip(otlp.spans, SPANS, strict=True):
        kept = {k: v for k, v in sent.attributes.items() if k != a.STEP_DIGESTS}
        assert kept == {k: v for k, v in span.attributes.items() if not k.startswith(a.WIRE_PREFIX)}
        assert (sent.name, sent.start_ns, sent.end_ns, sent.parent_span_id) == (span.name, span.start_ns, span.end_ns, span.parent_span_id)


def test_full_content_arrives_as_the_same_run(demo: CommandLine, otlp: Receiver) -> None:
    assert demo("send", "last", "--endpoint", otlp.endpoint, "--content", "full").code == 0
    (demo.folder / "arrived.pb").write_bytes(otlp.bodies[0])
    (run,) = demo("replay", "arrived.pb#last", "--json").json["runs"]
    assert [run] == demo("replay", "last", "--json").json["runs"]


def test_json_for_machines(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    assert spanreplay("send", path, "--endpoint", otlp.endpoint, "--json").json == {
        "schema": 1,
        "endpoint": otlp.endpoint,
        "spans": 2,
        "rejected": 0,
        "messages": [],
        "trace_ids": [SPANS[0].trace_id],
    }


def test_headers_and_path(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    done = spanreplay("send", path, "--endpoint", f"{otlp.endpoint}/tenant/", "--header", "X-Scope=a=b", "--header", "y=")
    assert done.code == 0
    assert otlp.paths == ["/tenant/v1/traces"]
    assert (otlp.headers[0]["x-scope"], otlp.headers[0]["y"]) == ("a=b", "")


def test_many_and_large_spans_go_in_batches(spanreplay: CommandLine, otlp: Receiver) -> None:
    spans = [chat(i + 1, trace=f"{i + 1:032x}") for i in range(450)] + [
        chat(1, trace="ab" * 16, attributes={"big": "x" * 1_500_000}),
        chat(2, 1, trace="ab" * 16, attributes={"big": "y" * 1_500_000}),
    ]
    done = spanreplay("send", spanreplay.file("t.json", *spans), "--endpoint", otlp.endpoint)
    assert done.code == 0
    assert len(otlp.bodies) == 4
    assert max(map(len, otlp.bodies)) < 4_000_000
    assert sorted((s.trace_id, s.span_id) for s in otlp.spans) == sorted((s.trace_id, s.span_id) for s in spans)


def test_log_records_stay_and_that_is_said(spanreplay: CommandLine, otlp: Receiver) -> None:
    path = spanreplay.file("t.json", *SPANS, LogRecord(trace_id=SPANS[0].trace_id, span_id=SPANS[0].span_id, time_ns=1, body="x"))
    assert "1 log record left out: only spans are sent" in spanreplay("send", path, "--endpoint", otlp.endpoint).err


@pytest.mark.parametrize("code", [429, 502, 503, 504])
def test_what_may_pass_is_tried_again(spanreplay: CommandLine, otlp: Receiver, path: str, code: int) -> None:
    otlp.answers = [(code, {"Retry-After": "0"}, b"busy"), (code, {}, b"busy"), OK]
    assert spanreplay("send", path, "--endpoint", otlp.endpoint).code == 0
    assert len(otlp.bodies) == 3
    assert len(set(otlp.bodies)) == 1


@pytest.mark.parametrize(
    ("answer", "says", "requests"),
    [
        ((400, {"Content-Type": "text/plain"}, b"no such\x1b[2J tenant"), "answered 400 Bad Request: no such\\e[2J tenant", 1),
        (
            (400, {"Content-Type": PROTOBUF}, Status(code=3, message="bad span").SerializeToString()),
            "answered 400 Bad Request: bad span",
            1,
        ),
        ((400, {"Content-Type": PROTOBUF}, b"\xff\xff\xff"), "answered 400 Bad Request\n", 1),
        ((401, {}, b""), "answered 401 Unauthorized\n", 1),
        ((503, {}, b"down"), "answered 503 Service Unavailable: down", 4),
        ((301, {"Location": "http://127.0.0.1:1/x"}, b""), "answered 301 Moved Permanently to http://127.0.0.1:1/x", 1),
        ((200, {"Content-Type": PROTOBUF}, b"\xff\xff\xff"), "with a body that is not OTLP", 1),
    ],
)
def test_a_refusal_is_one_clear_line_and_one(
    spanreplay: CommandLine, otlp: Receiver, path: str, answer: tuple[int, dict[str, str], bytes], says: str, requests: int
) -> None:
    otlp.answers = [answer]
    done = spanreplay("send", path, "--endpoint", otlp.endpoint)
    assert (done.code, done.out) == (1, ""), done
    assert done.err.startswith(f"Error: {otlp.endpoint}/v1/traces ")
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert len(otlp.bodies) == requests


@pytest.mark.parametrize("form", [PROTOBUF, "application/json; charset=utf-8"])
def test_spans_that_were_rejected_are_counted_and_the_reason_given(spanreplay: CommandLine, otlp: Receiver, path: str, form: str) -> None:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 1
    response.partial_success.error_message = "too old"
    body = json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}).encode()
    otlp.answers = [(200, {"Content-Type": form}, response.SerializeToString() if form == PROTOBUF else body)]
    done = spanreplay("send", path, "--endpoint", otlp.endpoint)
    assert done.code == 1
    assert "it says: too old" in done.err
    assert f"Error: {otlp.endpoint} rejected 1 span of 2" in done.err
    assert spanreplay("send", path, "--endpoint", otlp.endpoint, "--json").json["rejected"] == 1


def test_an_answer_of_another_kind_is_taken_for_yes(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    for body in (b"not json", b"[1]", b'{"partialSuccess": null}'):
        otlp.answers = [(200, {"Content-Type": "application/json"}, body)]
        assert spanreplay("send", path, "--endpoint", otlp.endpoint).code == 0


def test_nobody_there(spanreplay: CommandLine, path: str) -> None:
    done = spanreplay("send", path, "--endpoint", "http://127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: http://127.0.0.1:1/v1/traces cannot be reached: ")
    assert "Connection refused" in done.err
    assert "object at 0x" not in done.err
    done = spanreplay("send", path, "--endpoint", "grpc://127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: 127.0.0.1:1 cannot be reached: ")


def test_no_answer_ends_after_the_time_that_was_given(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    otlp.answers = [None]
    done = spanreplay("send", path, "--endpoint", otlp.endpoint, "--timeout", "0.2")
    assert (done.code, done.err) == (1, f"Error: {otlp.endpoint}/v1/traces did not answer within 0.2 s; --timeout waits longer\n")
    assert len(otlp.bodies) == 1


def test_a_server_that_asks_for_a_long_wait_gets_a_short_one(
    spanreplay: CommandLine, otlp: Receiver, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("spanreplay.cli.sending.time.sleep", waits.append)
    otlp.answers = [(429, {"Retry-After": "86400"}, b""), OK]
    assert spanreplay("send", path, "--endpoint", otlp.endpoint, "--timeout", "3").code == 0
    assert waits == [3]


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://", "http://x:port", "file:///tmp/x", "http://[::1", ":", ""])
def test_what_is_no_endpoint_is_wrong_use(spanreplay: CommandLine, path: str, endpoint: str) -> None:
    done = spanreplay("send", path, "--endpoint", endpoint)
    assert done.code == 2, done
    assert "wanted an endpoint such as http://localhost:4318 or grpc://localhost:4317" in done.err


@pytest.mark.parametrize("header", ["novalue", "=x", " =x"])
def test_what_is_no_header_is_wrong_use(spanreplay: CommandLine, path: str, header: str) -> None:
    done = spanreplay("send", path, "--endpoint", "localhost:1", "--header", header)
    assert done.code == 2
    assert "wanted NAME=VALUE" in done.err


@pytest.mark.parametrize(
    ("endpoint", "text", "over_grpc", "secure"),
    [
        ("localhost:4318", "http://localhost:4318/v1/traces", False, False),
        ("http://h/v1/traces", "http://h/v1/traces", False, False),
        ("https://h/otlp/v1/traces/", "https://h/otlp/v1/traces", False, True),
        ("https://h/otlp?tenant=1", "https://h/otlp/v1/traces?tenant=1", False, True),
        ("grpc://h", "h:4317", True, False),
        ("grpcs://h:443", "h:443", True, True),
        ("localhost:4317", "localhost:4317", True, False),
        ("https://h:4317", "h:4317", True, True),
        ("grpc://[::1]:4317", "[::1]:4317", True, False),
    ],
)
def test_endpoints(endpoint: str, text: str, over_grpc: bool, secure: bool) -> None:
    found = address_of(endpoint)
    assert (found.text, found.grpc, found.secure) == (text, over_grpc, secure)


# ---- gRPC ------------------------------------------------------------------------------------------------------------


@dataclass
class Service(TraceServiceServicer):
    received: list[ExportTraceServiceRequest] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    status: grpc.StatusCode | None = None
    response: ExportTraceServiceResponse = field(default_factory=ExportTraceServiceResponse)

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
        self.received.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if self.status is not None:
            context.abort(self.status, "not today")
        return self.response


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    made = Service()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(made, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield made, f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def test_over_grpc(spanreplay: CommandLine, service: tuple[Service, str], path: str) -> None:
    made, endpoint = service
    done = spanreplay("send", path, "--endpoint", endpoint, "--content", "full", "--header", "X-Tenant=t1")
    assert (done.code, done.out) == (0, f"{SPANS[0].trace_id}\n")
    (request,) = made.received
    arrived = [r for r in otlp_proto.decode(request.SerializeToString()) if isinstance(r, SpanRecord)]
    assert [s.span_id for s in arrived] == [s.span_id for s in SPANS]
    assert any(k.startswith(a.WIRE_PREFIX) for k in arrived[1].attributes)
    assert made.metadata[0]["x-tenant"] == "t1"


@pytest.mark.parametrize("status", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_refusal_over_grpc(spanreplay: CommandLine, service: tuple[Service, str], path: str, status: grpc.StatusCode) -> None:
    made, endpoint = service
    made.status = status
    done = spanreplay("send", path, "--endpoint", endpoint)
    assert done.code == 1
    assert done.err == f"Error: {endpoint.removeprefix('grpc://')} did not take the spans: {status.name}: not today\n"


def test_rejected_over_grpc(spanreplay: CommandLine, service: tuple[Service, str], path: str) -> None:
    made, endpoint = service
    made.response.partial_success.rejected_spans = 2
    done = spanreplay("send", path, "--endpoint", endpoint)
    assert done.code == 1
    assert "rejected 2 spans of 2" in done.err


def test_a_header_that_grpc_cannot_send(spanreplay: CommandLine, service: tuple[Service, str], path: str) -> None:
    done = spanreplay("send", path, "--endpoint", service[1], "--header", "a b=c")
    assert done.code == 1, done
    assert "Error: " in done.err


def test_a_token_goes_to_the_endpoint_and_to_nobody_else(
    spanreplay: CommandLine, otlp: Receiver, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTLP_TOKEN", "s3cret")
    assert spanreplay("send", path, "--endpoint", otlp.endpoint, "--bearer-token-env", "OTLP_TOKEN").code == 0
    assert otlp.headers[0]["authorization"] == "Bearer s3cret"
    with http_receiver() as asked:
        asked_for = f"jaeger+{asked.endpoint}/{'a1' * 16}"
        spanreplay("send", asked_for, "--endpoint", otlp.endpoint, "--bearer-token-env", "OTLP_TOKEN")
        assert not any("authorization" in headers for headers in asked.headers)
    refused = spanreplay("send", path, "--endpoint", otlp.endpoint, "--bearer-token-env", "NO_SUCH")
    assert (refused.code, len(otlp.bodies)) == (2, 1)


def test_certificates_to_trust_are_for_tls(spanreplay: CommandLine, otlp: Receiver, path: str) -> None:
    refused = spanreplay("send", path, "--endpoint", otlp.endpoint, "--ca", path)
    assert (refused.code, otlp.bodies) == (2, [])
    assert "https://" in refused.err
