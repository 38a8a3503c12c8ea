"""A Collector that everybody can have: rotel, which is in a wheel. What goes in comes out, over HTTP and gRPC."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.running import Running, free_port, until
from fixtures.runs.spans import TRACE, agent, chat, tool
from spanreplay.replay.inputs.remote import Access, open_remote
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.spans.record import EventRecord, LinkRecord, Resource, Scope, SpanRecord
from support.command_line import CommandLine
from support.tempo import Tempo

RICH = {"large": 2**60, "whole": 1.0, "raw": b"\x00\xff", "list": ("a", 1), "map": {"x": {"y": True}}, "said": "ä — 𝄞"}
SPANS = [
    agent(1, attributes=RICH),
    chat(2, 1, events=(EventRecord(name="e", time_ns=5, attributes={"map": {"x": 1}}),)),
    tool(3, 1, links=(LinkRecord(trace_id="cd" * 16, span_id="ef" * 8, attributes={"why": "retry"}),)),
    tool(4, 1, resource=Resource(attributes={"service.name": "shop"}, schema_url="https://example.org/r")),
    tool(5, 1, scope=Scope(name="s", version="1", attributes={"a": 1}), flags=0x101),
]


@pytest.fixture
def through(tmp_path: Path) -> Iterator[tuple[Tempo, str, str]]:
    """A back end, and the addresses of a Collector that sends to it: HTTP and gRPC."""
    found = importlib.util.find_spec("rotel")
    if found is None or found.origin is None:
        pytest.skip("rotel has no wheel for this Python or machine")
    http, grpc = free_port(), free_port()
    with Tempo({"distributor": {"max_attribute_bytes": 0}}) as tempo:
        command = [str(Path(found.origin).parent / "rotel-agent"), "start", "--exporter", "otlp"]
        command += ["--otlp-exporter-endpoint", tempo.url, "--otlp-exporter-protocol", "http"]
        command += ["--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"]
        collector = Running(command, {"ROTEL_ENABLE_TELEMETRY": "false"}, tmp_path / "rotel", listens=(str(http), str(grpc)))
        try:
            collector.start()
            yield tempo, f"http://127.0.0.1:{http}", f"grpc://127.0.0.1:{grpc}"
        finally:
            collector.kill()


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_what_goes_in_comes_out(over: str, through: tuple[Tempo, str, str], spanreplay: CommandLine) -> None:
    tempo, http, grpc = through
    file = spanreplay.file("run.json", *SPANS)
    assert spanreplay("send", file, "--endpoint", http if over == "http" else grpc).code == 0

    def arrived() -> dict[str, SpanRecord] | None:
        try:
            found = {r.span_id: r for r in open_remote(f"tempo+{tempo.url}/{TRACE}", Access()).records if isinstance(r, SpanRecord)}
        except UnreadableSource:
            return None
        return found if len(found) == len(SPANS) else None

    assert until("every span", arrived) == {span.span_id: span for span in SPANS}
    assert spanreplay("verify", f"tempo+{tempo.url}/{TRACE}").code == 0
