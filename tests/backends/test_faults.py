"""The gateway is killed under load, Jaeger is away: no span is lost, none is there twice, and the agent goes on."""

import threading
from collections import Counter
from collections.abc import Iterator

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from backends.running import Collector, Peers, until
from fixtures.runs.spans import agent, chat, tool
from spanreplay.cli.sending import SendFailed, address_of, send
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine
from support.size import FULL

RUNS = 120 if FULL else 12
SPANS = 7
SENDERS = 2


def runs() -> Iterator[list[SpanRecord]]:
    """Runs of seven spans, each a trace of its own, with some kilobytes in each."""
    for number in range(1, RUNS + 1):
        trace = f"{number:032x}"
        models = [chat(at, 1, trace=trace) for at in (2, 5, 7)]
        tools = [tool(at, 1, trace=trace, result=f'"{number} {"ä" * 2000}"') for at in (3, 4, 6)]
        yield [agent(1, trace=trace), *models, *tools]


class Load(threading.Thread):
    """Sends some runs one after the other, each span in a message of its own, and sends again what was not acknowledged."""

    def __init__(self, collector: Collector, share: list[list[SpanRecord]]) -> None:
        super().__init__()
        self._share = share
        self._address = address_of(collector.http)
        self.acknowledged = 0
        self.again = 0

    def run(self) -> None:
        for spans in self._share:
            for span in spans:
                while not self._sent(span):
                    self.again += 1
                self.acknowledged += 1

    def _sent(self, span: SpanRecord) -> bool:
        try:
            return not send([span], address=self._address, headers={}, timeout_s=5).rejected
        except SendFailed:
            return False


def test_a_gateway_that_is_killed_loses_nothing(peers: Peers, spanreplay: CommandLine) -> None:
    gateway = peers.collector("gateway")
    every = list(runs())
    loads = [Load(gateway, every[number::SENDERS]) for number in range(SENDERS)]
    for load in loads:
        load.start()
    for share in (0.2, 0.5, 0.8):
        until("a part of the load", lambda: sum(load.acknowledged for load in loads) >= share * RUNS * SPANS or None)
        gateway.running.kill()
        gateway.running.start()
    for load in loads:
        load.join(60)
        assert load.acknowledged == SPANS * RUNS // SENDERS
    assert any(load.again for load in loads), "it was killed while somebody was sending"

    assert spanreplay("import", gateway.traces).code == 0
    listed = spanreplay("query", "select run_id, n_steps from runs", "--json").json["rows"]
    assert [steps for _, steps in listed] == [SPANS - 1] * RUNS
    for run, _ in listed:
        assert spanreplay("verify", run).code == 0
    spans = spanreplay("query", "select trace_id, span_id, count(*) from spans group by all", "--json").json["rows"]
    assert len(spans) == SPANS * RUNS
    assert {times for _, _, times in spans} == {1}


def test_the_view_waits_on_disk_for_jaeger_though_the_gateway_dies(peers: Peers) -> None:
    jaeger = peers.jaeger(start=False)
    gateway = peers.collector("gateway", view=jaeger.http)
    (spans, *_) = runs()
    send(spans, address=address_of(gateway.http), headers={}, timeout_s=30)
    until("the view in the queue", lambda: gateway.waiting or None)
    gateway.running.kill()
    gateway.running.start()
    jaeger.running.start()
    until("the view in Jaeger", lambda: len(jaeger.spans(spans[0].trace_id)) == SPANS or None)


def test_the_agent_does_not_notice_that_jaeger_is_away(peers: Peers) -> None:
    jaeger = peers.jaeger(start=False)
    gateway = peers.collector("gateway", view=jaeger.http)
    exporter = OTLPSpanExporter(endpoint=f"{gateway.http}/v1/traces", timeout=5)
    results: Counter[SpanExportResult] = Counter()
    export = exporter.export

    def counted(spans: object) -> SpanExportResult:
        result = export(spans)  # type: ignore[arg-type]
        results[result] += 1
        return result

    exporter.export = counted  # type: ignore[method-assign]
    provider = TracerProvider(resource=Resource({"service.name": "steady"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    traces = []
    for number in range(20):
        with tracer.start_as_current_span("invoke_agent steady", attributes={"gen_ai.operation.name": "invoke_agent", "n": number}) as span:
            traces.append(f"{span.get_span_context().trace_id:032x}")
    provider.shutdown()
    assert results == {SpanExportResult.SUCCESS: 20}
    assert all(any(trace in line for line in gateway.lines) for trace in traces), "the replay pipeline went on"
    assert jaeger.services() == []

    jaeger.running.start()
    for trace in traces:
        until("the view, later", lambda: jaeger.spans(trace) or None)
