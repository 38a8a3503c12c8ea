"""``doctor`` at a real Collector and a real Jaeger with the shipped configurations: all is well, and no span is left there."""

from collections.abc import Mapping

from backends.running import Collector, Peers, until
from fixtures.runs.spans import agent, chat
from recordings.servers import Loopback, Reply
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


def metrics(collector: Collector) -> str:
    """Its metrics page."""
    return f"http://127.0.0.1:{collector.running.environment['METRICS_PORT']}"


def test_a_collector_says_which_it_is_and_what_it_has_lost(peers: Peers, spanreplay: CommandLine) -> None:
    def refuse(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return 400, "text/plain", b"no"

    with Loopback(refuse) as view:
        gateway = peers.collector("gateway", view=view.url)
        well = spanreplay("doctor", "--endpoint", metrics(gateway), "--json")
        assert (well.code, well.json["endpoints"][0]["version"]) == (0, "0.161.0"), well
        assert spanreplay("send", spanreplay.file("run.json", agent(1), chat(2, 1)), "--endpoint", gateway.http).code == 0

        def found() -> str | None:
            done = spanreplay("doctor", "--endpoint", metrics(gateway))
            return done.out if done.code else None

        assert "otlp_http/view has given up 2 spans" in until("spans that are lost", found)


def test_the_health_page_of_a_collector_is_no_receiver(peers: Peers, spanreplay: CommandLine) -> None:
    gateway = peers.collector("gateway")
    done = spanreplay("doctor", "--endpoint", gateway.running.health)
    assert done.code == 1
    assert "takes no OTLP" in done.out
