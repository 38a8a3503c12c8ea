"""``doctor`` at back ends that are well, that cut, that refuse, and that are not there."""

import re
import sys
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from recordings.servers import Loopback, Reply
from support.command_line import CommandLine
from support.tempo import Tempo

SHIPPED: dict[str, Any] = yaml.safe_load((Path(__file__).parents[3] / "collector-config" / "tempo.yaml").read_text("utf-8"))
MIB = 1 << 20


@contextmanager
def receiver(largest: int = 64 * MIB, *, refuses: int | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """An OTLP receiver over HTTP, and what it was sent; it knows nothing else."""
    bodies: list[bytes] = []

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if method != "POST" or path != "/v1/traces":
            return 404, "text/plain", b"404 page not found"
        assert headers["content-type"] == "application/x-protobuf"
        bodies.append(body)
        if refuses is not None:
            return refuses, "text/plain", b"no"
        return (200, "application/x-protobuf", b"") if len(body) <= largest else (413, "text/plain", b"too large")

    with Loopback(answer) as server:
        yield server.url, bodies


@contextmanager
def grpc_receiver(largest: int) -> Iterator[str]:
    """An OTLP receiver over gRPC."""
    server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", largest)])
    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService",
        {"Export": grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")},
    )
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_a_receiver_of_64_mib_is_well_and_gets_no_span(spanreplay: CommandLine) -> None:
    with receiver() as (url, bodies):
        done = spanreplay("doctor", "--endpoint", url)
        printed = spanreplay("doctor", "--endpoint", f"{url}/v1/traces", "--json").json
    assert (done.code, done.err) == (0, "")
    assert "takes OTLP over HTTP" in done.out
    assert "takes messages of 64 MiB" in done.out
    (found,) = printed["endpoints"]
    assert (printed["ok"], found["kind"], [check["what"] for check in found["checks"]]) == (
        True,
        "otlp-http",
        ["reachable", "message size"],
    )
    assert all(body.strip(b"\0") in (b"", body[:5]) for body in bodies), "one unknown field of zeros, and nothing else"


@pytest.mark.parametrize(
    ("largest", "said"), [(20 * MIB, "20 MiB, not of 64"), (4 * MIB, "4 MiB, not of 64"), (MIB, "no messages of 4 MiB")]
)
def test_a_receiver_that_takes_less_is_told_the_line(spanreplay: CommandLine, largest: int, said: str) -> None:
    with receiver(largest) as (url, _):
        done = spanreplay("doctor", "--endpoint", url)
    assert done.code == 1
    assert said in done.out
    assert "max_request_body_size: 67108864" in done.out


def test_the_same_over_grpc(spanreplay: CommandLine) -> None:
    with grpc_receiver(64 * MIB) as large, grpc_receiver(4 * MIB) as small:
        assert spanreplay("doctor", "--endpoint", large).code == 0
        done = spanreplay("doctor", "--endpoint", large, "--endpoint", small)
    assert done.code == 1
    assert "takes messages of 4 MiB, not of 64" in done.out
    assert "max_recv_msg_size_mib: 64" in done.out


def test_a_tempo_that_cuts_is_told_the_line(spanreplay: CommandLine) -> None:
    with Tempo() as tempo:
        done = spanreplay("doctor", "--endpoint", tempo.url)
        tempo.shows_its_configuration = False
        silent = spanreplay("doctor", "--endpoint", tempo.url)
    assert (done.code, silent.code) == (1, 1)
    assert "Tempo 3.0.0" in done.out
    assert "cuts attributes at 2048 bytes" in done.out
    assert "in Tempo set distributor.max_attribute_bytes: 0" in done.out
    assert "in Tempo set overrides.defaults.global.max_bytes_per_trace" in done.out
    assert "does not show its configuration" in silent.out


LIMITS: dict[str, tuple[dict[str, Any], str]] = {
    "overrides.defaults.ingestion.burst_size_bytes": (
        {"overrides": {"defaults": {"ingestion": {"burst_size_bytes": 20_000_000}}}},
        "20000000",
    ),
    "overrides.defaults.ingestion.max_attribute_bytes": ({"overrides": {"defaults": {"ingestion": {"max_attribute_bytes": 4096}}}}, "4096"),
    "overrides.defaults.global.max_bytes_per_trace": (
        {"overrides": {"defaults": {"global": {"max_bytes_per_trace": 5_000_000}}}},
        "5000000",
    ),
    "server.grpc_server_max_send_msg_size": ({"server": {"grpc_server_max_send_msg_size": 16 * MIB}}, "16777216"),
}


@pytest.mark.parametrize("line", LIMITS)
def test_each_limit_of_tempo_is_told_with_its_line(line: str, spanreplay: CommandLine) -> None:
    changed, limit = LIMITS[line]
    with Tempo(merged(SHIPPED, changed)) as tempo:
        done = spanreplay("doctor", "--endpoint", tempo.url, "--json")
    (found,) = done.json["endpoints"]
    (wrong,) = (check for check in found["checks"] if not check["ok"])
    assert done.code == 1
    assert limit in wrong["detail"]
    assert line in wrong["advice"]


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with parts of another in it."""
    both = {name: merged(below[name], value) if isinstance(below.get(name), dict) else value for name, value in above.items()}
    return {**below, **both}


def test_the_shipped_tempo_is_well(spanreplay: CommandLine) -> None:
    with Tempo(SHIPPED) as tempo:
        done = spanreplay("doctor", "--endpoint", tempo.url)
    assert done.code == 0, done
    assert "cuts no attributes" in done.out


def test_a_jaeger_is_known(spanreplay: CommandLine) -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if path == "/jaeger/api/v3/services":
            return 200, "application/json", b'{"services": ["shop", "till"]}'
        page = b'<script>const JAEGER_VERSION = {"gitCommit": "1", "gitVersion": "v2.20.0"};</script>'
        return 200, "text/html", page  # of every other path, as its pages do

    with Loopback(answer) as server:
        done = spanreplay("doctor", "--endpoint", f"{server.url}/jaeger", "--json")
    (found,) = done.json["endpoints"]
    assert (done.code, found["kind"], found["version"]) == (0, "jaeger", "v2.20.0")
    assert "2 services" in found["checks"][0]["detail"]


METRICS = """# TYPE otelcol_exporter_sent_spans counter
otelcol_exporter_sent_spans{exporter="otlp_http/view",service_version="0.161.0"} 7
otelcol_exporter_send_failed_spans{data_type="traces",exporter="otlp_http/view"} LOST
otelcol_exporter_enqueue_failed_spans_total{exporter="otlp_http/view"} 0
target_info{service_name="otelcol",service_version="0.161.0"} 1
"""


@pytest.mark.parametrize(
    ("lost", "code", "said"), [("0", 0, "no exporter has given up a span"), ("1.2e+01", 1, "otlp_http/view has given up 12 spans")]
)
def test_a_collectors_metrics_say_its_version_and_what_it_has_lost(lost: str, code: int, said: str, spanreplay: CommandLine) -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        assert (method, body) == ("GET", b"")
        found = path == "/metrics"
        return (200, "text/plain; version=0.0.4", METRICS.replace("LOST", lost).encode()) if found else (404, "text/plain", b"")

    with Loopback(answer) as server:
        done = spanreplay("doctor", "--endpoint", f"{server.url}/metrics", "--json")
        printed = spanreplay("doctor", "--endpoint", server.url)
    (found,) = done.json["endpoints"]
    assert (done.code, found["kind"], found["version"]) == (code, "collector", "0.161.0")
    assert said in printed.out


def test_a_page_that_answers_everything_is_no_receiver(spanreplay: CommandLine) -> None:
    def healthy(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return 200, "application/json", b'{"status": "Server available"}'

    with Loopback(healthy) as server:
        done = spanreplay("doctor", "--endpoint", server.url)
    assert done.code == 1
    assert "takes no OTLP: whatever it is sent, it answers 200" in done.out


def test_a_receiver_that_answers_in_a_type_of_its_own_is_one(spanreplay: CommandLine) -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if method != "POST":
            return 404, "text/plain", b""
        return (400, "text/plain", b"no message") if body == b"\x0a\xff" else (200, "application/json", b"{}")

    with Loopback(answer) as server:
        assert spanreplay("doctor", "--endpoint", server.url).code == 0


def test_what_is_not_there_or_something_else_is_said(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver(refuses=401) as (url, _):
        done = spanreplay("doctor", "--endpoint", url)
    assert done.code == 1
    assert "takes no OTLP: 401" in done.out
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    away = spanreplay("doctor")
    assert away.code == 1
    assert "http://127.0.0.1:9\n  NO  no answer" in away.out
    assert spanreplay("doctor", "--endpoint", "grpc://127.0.0.1:9", "--timeout", "5").code == 1
    assert spanreplay("doctor", "--endpoint", "nowhere://x").code == 2


def test_it_is_let_in_as_it_is_told(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, str]] = []

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        seen.append(headers)
        return (200, "application/json", b'{"version": "3.0.0"}') if path.endswith("buildinfo") else (404, "text/plain", b"")

    monkeypatch.setenv("TOKEN", "secret")
    with Loopback(answer) as server:
        spanreplay("doctor", "--endpoint", server.url, "--bearer-token-env", "TOKEN", "--tenant", "blue", "--header", "X-A=b")
    assert all((h["authorization"], h["x-scope-orgid"], h["x-a"]) == ("Bearer secret", "blue", "b") for h in seen)


def test_the_python_of_a_command_is_examined(spanreplay: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "100")
    done = spanreplay("doctor", "--", sys.executable, "agent.py")
    printed = spanreplay("doctor", "--json", "--", sys.executable, "agent.py").json
    assert (done.code, done.err) == (1, "")
    assert sys.executable in done.out
    assert re.search(r"ok  httpx2: httpx2 [\d.]+, active", done.out)
    assert "NO  OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT=100 cuts" in done.out
    assert "→ unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT" in done.out
    found = {one["name"]: one for one in printed["interpreter"]["libraries"]}
    assert (printed["ok"], found["httpx2"]["ok"], found["pydantic_ai"]["status"]) == (False, True, "not installed")


def test_a_command_without_spanreplay_is_told_how_to_get_it(spanreplay: CommandLine, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named spanreplay' >&2\nexit 1\n")
    python.chmod(0o755)
    done = spanreplay("doctor", "--", str(python), "agent.py")
    assert done.code == 2
    assert f"Install it there: {python} -m pip install spanreplay" in done.err
    done = spanreplay("doctor", "--", "true")
    assert (done.code, "is no Python program" in done.err) == (2, True)
