"""A Collector that everybody can have, rotel from a wheel, between an agent and ``spanreplay serve``, over HTTP and gRPC."""

import importlib.util
from pathlib import Path

import pytest

from backends.running import Peers, Running, free_port, until
from fixtures.runs.spans import agent, chat, tool
from spanreplay.spans.record import Resource, SpanRecord
from support.command_line import CommandLine
from support.receiving import receiving, running

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


def test_a_gateway_keeps_everything_in_a_store_too_whenever_it_is_there(peers: Peers, spanreplay: CommandLine) -> None:
    port = free_port()
    gateway = peers.collector("gateway", "into-store", STORE_ENDPOINT=f"http://127.0.0.1:{port}")
    early, late = RUN[:2], RUN[2:]
    assert spanreplay("send", spanreplay.file("early.json", *early), "--endpoint", gateway.http).code == 0
    with running(spanreplay.store, ports=(port, 0)) as program:
        until("what was sent before the store was there", lambda: len(program.at.spans()) == len(early) or None)
        assert spanreplay("send", spanreplay.file("late.json", *late), "--endpoint", gateway.grpc).code == 0
        until("what was sent then", lambda: len(program.at.spans()) == len(RUN) or None)
        assert {span.span_id: span for span in program.at.spans()} == {span.span_id: span for span in RUN}
    assert "deprecated" not in gateway.running.log
