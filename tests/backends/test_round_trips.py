"""An agent, its SDK, a Collector, a file and Jaeger; and back: imported from each, run again, equal."""

import json
import sys
from pathlib import Path
from typing import Final

import pytest

from acceptance.commands import WIRE, Desk, Done, agent, assert_equal, runs_of
from backends.running import Collector, Jaeger, Peers, get, until
from support.cassette_server import CassetteServer, read_cassette
from support.model_server import ModelServer, as_json, chat
from support.size import FULL, first_of

LARGE: Final = Path(__file__).parent / "agents" / "large_agent.py"
TRIP: Final = Path(__file__).parent / "agents" / "trip_agent.py"
INSTRUMENT: Final = str(Path(sys.executable).parent / "opentelemetry-instrument")
SERVICE: Final = "shop-desk"


def desk_sending_to(collector: Collector, root: Path, content: str) -> Desk:
    """Where agents run whose spans go to the Collector, as far as ``content`` says."""
    variables = {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": SERVICE,
        "SPANREPLAY_SPAN_CONTENT": content,
    }
    return Desk.laid_out(root, variables)


def in_jaeger(desk: Desk, jaeger: Jaeger) -> str:
    """The trace of the run that the desk has recorded, once Jaeger has all of it."""
    (run,) = runs_of(desk.store)
    (trace,) = run.trace_ids
    until("every span in Jaeger", lambda: len(jaeger.spans(trace)) == len(run.steps) + 1 or None)
    assert jaeger.services() == [SERVICE]
    return trace


def replayed(desk: Desk, command: list[str], recorded: Done, target: str | Path, grade: str) -> None:
    """Imported into an empty store: whole, of that grade; run again from there: equal."""
    other = desk.root / f"store-{len(list(desk.root.iterdir()))}"
    imported = desk.spanreplay("import", target, store=other)
    assert imported.code == 0, imported
    verified = desk.spanreplay("verify", store=other)
    assert verified.code == 0, verified
    (run,) = runs_of(other)
    assert run.grade == grade
    marks = desk.marks
    assert_equal(recorded, desk.replay(command, store=other))
    assert desk.marks == marks


@pytest.mark.parametrize("content", first_of("full", "view"))
def test_an_openai_agent_with_streams_and_parallel_tools_comes_back_through_the_gateway(content: str, peers: Peers, tmp_path: Path) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    desk = desk_sending_to(gateway, tmp_path / "desk", content)
    with CassetteServer() as server:
        server.serve("rivers", read_cassette(WIRE / "chat-stream.yaml"))
        command = agent("chat_agent", server.url("rivers"), "rivers", "astream")
        recorded = desk.record([INSTRUMENT, *command])
    assert recorded.code == 0, recorded
    trace = in_jaeger(desk, jaeger)

    replayed(desk, command, recorded, gateway.traces, "exact" if content == "full" else "semantic")
    if content == "full":
        replayed(desk, command, recorded, f"jaeger+{jaeger.query}/{trace}", "semantic")
        bodies_arrived = [body for line in gateway.lines for body in response_bodies(line)]
        assert bodies_arrived == [reply.body.decode() for reply in read_cassette(WIRE / "chat-stream.yaml")]


def response_bodies(line: str) -> list[str]:
    """What the spans of a message carry as the bytes that the model's server sent."""
    spans = [span for r in json.loads(line)["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]]
    return [
        attribute["value"]["stringValue"]
        for span in sorted(spans, key=lambda span: int(span["startTimeUnixNano"]))
        for attribute in span["attributes"]
        if attribute["key"] == "spanreplay.wire.response.body"
    ]


def test_the_demos_agent_comes_back_from_both_apis_of_jaeger(peers: Peers, tmp_path: Path) -> None:
    jaeger = peers.jaeger()
    collector = peers.collector("dev", view=jaeger.http)
    desk = desk_sending_to(collector, tmp_path / "desk", "full")
    outbox = desk.root / "outbox"
    outbox.mkdir()
    command = [sys.executable, str(TRIP), str(outbox)]
    recorded = desk.record([INSTRUMENT, *command])
    assert recorded.code == 0, recorded
    trace = in_jaeger(desk, jaeger)

    saved = desk.root / "saved-from-the-page.json"
    saved.write_bytes(get(f"{jaeger.query}/api/traces/{trace}?raw=true&prettyPrint=true") or b"")
    for target in (f"jaeger+{jaeger.query}/?service={SERVICE}", saved):
        replayed(desk, command, recorded, target, "exact")
    assert len(list(outbox.iterdir())) == 1, "the e-mail went out once, when it was recorded"


def test_a_span_of_megabytes_comes_back_exactly(peers: Peers, tmp_path: Path) -> None:
    """Through the SDK's own exporter: request, response, tool result and exchange of one run, all of them whole."""
    gateway = peers.collector("gateway")
    desk = desk_sending_to(gateway, tmp_path / "desk", "full")
    size = 1_500_000 if FULL else 300_000  # characters; a span of 20 MB or more, since full content holds each text up to three times
    with ModelServer() as server:
        server.script(as_json(chat("ß— 𝄞 \n" * (size // 6))))
        command = [sys.executable, str(LARGE), server.url, str(size)]
        recorded = desk.record([INSTRUMENT, *command])
    assert recorded.code == 0, recorded
    assert max(len(line) for line in gateway.lines) > 4 * size
    replayed(desk, command, recorded, gateway.traces, "exact")
