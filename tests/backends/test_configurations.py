"""Each shipped configuration is accepted by the program it is for, and does its work: traffic goes through it."""

import subprocess
from pathlib import Path

import pytest

from backends import binaries
from backends.running import CONFIGURATIONS, Peers, until
from fixtures.runs.spans import agent, chat, span, tool
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine

RUN = [agent(1), chat(2, 1), tool(3, 1), chat(4, 1)]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "names",
    [["dev"], ["gateway"], ["gateway", "second-view"], ["gateway", "into-store"], ["agent-loadbalance"], ["replay-from-file"], ["jaeger"]],
    ids="+".join,
)
def test_it_is_valid(names: list[str], tmp_path: Path) -> None:
    program = {"jaeger": binaries.jaeger, "replay-from-file": binaries.file_collector}.get(names[0], binaries.collector)()
    files = [f"--config=file:{CONFIGURATIONS / name}.yaml" for name in names]
    done = subprocess.run([program, "validate", *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr


def kept(folder: Path) -> dict[str, SpanRecord]:
    return {record.span_id: record for record in open_source(str(folder)).records if isinstance(record, SpanRecord)}


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_a_developers_collector_keeps_spans_and_shows_them(over: str, peers: Peers, spanreplay: CommandLine) -> None:
    jaeger = peers.jaeger()
    collector = peers.collector("dev", view=jaeger.http)
    sent = spanreplay("send", spanreplay.file("run.json", *RUN), "--endpoint", getattr(collector, over))
    assert sent.code == 0, sent
    until("every span in Jaeger", lambda: len(jaeger.spans(RUN[0].trace_id)) == len(RUN) or None)
    assert kept(collector.traces) == {span.span_id: span for span in RUN}
    assert "deprecated" not in collector.running.log


def test_what_a_collector_has_kept_is_shown_once_more(peers: Peers, spanreplay: CommandLine) -> None:
    collector = peers.collector("dev")
    sent = spanreplay("send", spanreplay.file("run.json", *RUN), "--endpoint", collector.http)
    assert sent.code == 0, sent
    until(
        "every span in the file", lambda: (collector.traces.exists() and kept(collector.traces).keys() == {s.span_id for s in RUN}) or None
    )
    jaeger = peers.jaeger()
    reader = peers.file_reader(collector.traces, view=jaeger.http)
    until("every span in Jaeger", lambda: len(jaeger.spans(RUN[0].trace_id)) == len(RUN) or None)
    assert "deprecated" not in reader.log


def test_from_the_agents_over_a_gateway_to_two_places(peers: Peers, spanreplay: CommandLine) -> None:
    first, second = peers.jaeger(), peers.jaeger()
    gateway = peers.collector("gateway", "second-view", view=first.http, SECOND_VIEW_ENDPOINT=second.http)
    host, port = gateway.grpc.removeprefix("grpc://").split(":")
    balancer = peers.collector("agent-loadbalance", GATEWAY_HOST=host, GATEWAY_PORT=port)
    sent = spanreplay("send", spanreplay.file("run.json", *RUN), "--endpoint", balancer.http)
    assert sent.code == 0, sent
    for jaeger in (first, second):
        until("every span in Jaeger", lambda: len(jaeger.spans(RUN[0].trace_id)) == len(RUN) or None)
    assert kept(gateway.traces) == {span.span_id: span for span in RUN}
    for collector in (gateway, balancer):
        assert "deprecated" not in collector.running.log


def test_what_comes_after_a_trace_is_decided_goes_the_same_way(peers: Peers, spanreplay: CommandLine) -> None:
    """Agents run for minutes: what they do at the end is kept with the rest, though by itself nothing would keep it."""
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    late = span(9, 1, name="SELECT orders")
    assert spanreplay("send", spanreplay.file("early.json", *RUN[1:]), "--endpoint", gateway.http).code == 0
    until("the beginning in Jaeger", lambda: len(jaeger.spans(late.trace_id)) == len(RUN) - 1 or None)
    assert spanreplay("send", spanreplay.file("late.json", late), "--endpoint", gateway.http).code == 0
    until("the end in Jaeger", lambda: jaeger.spans(late.trace_id).get(late.span_id))


def test_jaeger_sends_no_spans_of_its_own_to_the_collector_beside_it(peers: Peers) -> None:
    collector = peers.collector("dev")
    jaeger = peers.jaeger(OTEL_EXPORTER_OTLP_ENDPOINT=collector.grpc.replace("grpc://", "http://"))
    assert jaeger.services() == []
    jaeger.running.stop()  # what it has to tell it tells now, at the latest
    assert not collector.traces.exists() or collector.lines == []
