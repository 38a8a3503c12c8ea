"""A Collector that everybody can have, rotel from a wheel, between an agent and ``spanreplay serve``, over HTTP and gRPC."""

import importlib.util
from pathlib import Path

import pytest

from backends.running import Running, free_port, until
from fixtures.runs.spans import agent, chat, tool
from spanreplay.spans.record import Resource, SpanRecord
from support.command_line import CommandLine
from support.receiving import receiving

RUN = [agent(1), chat(2, 1), tool(3, 1), tool(4, 1, resource=Resource(attributes={"service.name": "shop"}))]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_through_a_collector_into_the_store(protocol: str, spanreplay: CommandLine, tmp_path: Path) -> None:
    found = importlib.util.find_spec("rotel")
    if found is None or found.origin is None:
        pytest.skip("rotel has no wheel for this Python or machine")
    http, grpc = free_port(), free_port()
    with receiving(spanreplay.store) as at:
        endpoint = at.http if protocol == "http" else f"http://127.0.0.1:{at.grpc_port}"
        command = [str(Path(found.origin).parent / "rotel-agent"), "start", "--exporter", "otlp", "--otlp-exporter-endpoint", endpoint]
        command += ["--otlp-exporter-protocol", protocol, "--otlp-exporter-compression", "gzip"]
        command += ["--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"]
        collector = Running(command, {"ROTEL_ENABLE_TELEMETRY": "false"}, tmp_path / "rotel", listens=(str(http), str(grpc)))
        try:
            collector.start()
            assert spanreplay("send", spanreplay.file("run.json", *RUN), "--endpoint", f"http://127.0.0.1:{http}").code == 0

            def arrived() -> dict[str, SpanRecord] | None:
                spans = {span.span_id: span for span in at.spans()}
                return spans if len(spans) == len(RUN) else None

            assert until("every span", arrived) == {span.span_id: span for span in RUN}
        finally:
            collector.kill()
    assert spanreplay("verify", "last").code == 0
