"""``doctor`` at a real Collector and a real Jaeger with the shipped configurations: all is well, and no span is left there."""

from backends.running import Peers
from support.command_line import CommandLine


def test_the_shipped_configurations_are_well(peers: Peers, spanreplay: CommandLine) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    places = (gateway.http, gateway.grpc, jaeger.http, jaeger.grpc, jaeger.query)
    done = spanreplay("doctor", *(word for place in places for word in ("--endpoint", place)), "--json")
    assert done.code == 0, done
    assert [found["kind"] for found in done.json["endpoints"]] == ["otlp-http", "otlp-grpc", "otlp-http", "otlp-grpc", "jaeger"]
    sizes = [check["detail"] for found in done.json["endpoints"] for check in found["checks"] if check["what"] == "message size"]
    assert sizes == ["takes messages of 64 MiB"] * 4
    assert gateway.lines == []
    assert jaeger.services() == []
