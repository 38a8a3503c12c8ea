"""The application's own telemetry, whatever it is: nothing is lost in the store or doubled, and its exporters get what they got before."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanreplay.semconv import attributes as names
from support.model_server import ModelServer, Scripted
from support.nursery import Nursery
from support.size import FULL
from weather.station import STEPS, Done, Kept, Station, agent, build, steps

INSTRUMENT: Final = Path(sys.executable).with_name("opentelemetry-instrument")
UNSAMPLED: Final = {"TRACEPARENT": f"00-{'a' * 32}-{'b' * 16}-00"}
_CHANGING: Final = ("code.lineno", "thread.id", "logfire.pending_parent_id", names.RUN_ID)
"""Logfire puts baggage on spans, which tells other processes of the run."""


Calm: TypeAlias = tuple[Done, Mapping[str, Mapping[str, Any]]]
Bare: TypeAlias = tuple[Done, Counter[str]]

_TALKATIVE: Final = ("limited", "exporter", "shutdown")
"""The SDK itself logs of each span that its limits cut or its exporter refuses, ours included, and names addresses in memory."""

_bare: Final[dict[str, Bare]] = {}


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory, model: ModelServer, nursery: Nursery) -> Calm:
    """The agent without any telemetry: what it prints unrecorded, and what is kept of it."""
    station = build(tmp_path_factory.mktemp("calm") / "station", model, nursery)
    done = station.fork(agent("traveller", model.url, "none", "before"))
    assert not station.store.exists()
    station.fork(agent("traveller", model.url, "none", "before"), {"START": str(station.store)})
    return done, station.kept().payloads()


def bare(station: Station, setup: str) -> Bare:
    """The agent with its own telemetry and without recording: how it ends, and what its exporters get."""
    if setup not in _bare:
        apart = station.apart("bare")
        done = apart.fork(agent("traveller", station.model.url, setup, "before"))
        assert not apart.store.exists() or setup == "ours"
        _bare[setup] = done, theirs(apart.their_spans())
    return _bare[setup]


def theirs(lines: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """The application's own spans in its own exporter, without what changes from run to run."""
    return Counter(
        str([line["name"], line["scope"], _steady(line["attributes"]), line["events"], line["status"], line["dropped"]])
        for line in lines
        if line["scope"] != names.SCOPE_NAME
    )


def _steady(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key not in _CHANGING}


def _without_logfire(payloads: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {path: {n: v for n, v in attributes.items() if not n.startswith("logfire.")} for path, attributes in payloads.items()}


def assert_whole(station: Station, done: Done, calm: Calm, setup: str = "none") -> Kept:
    """Every step is kept whole, once, in one run, and the agent ended as it ends otherwise."""
    expected, payloads = calm
    assert (done.code, done.out) == (expected.code, expected.out), str(done)
    if setup not in _TALKATIVE:
        assert done.after_nursery() == bare(station, setup)[0].after_nursery(), str(done)
    assert not done.complaints, str(done)
    kept = station.kept()
    kept.assert_nothing_doubled()
    run = kept.one()
    assert steps(run) == STEPS
    assert (run.grade, run.dropped, kept.command().dropped) == ("exact", 0, 0), run.grade_reasons
    assert _without_logfire(kept.payloads()) == payloads
    return kept


def assert_unharmed(station: Station, setup: str, kept: Kept, *, sampled: bool = True) -> None:
    """The application's exporter got its own spans as without recording, and of ours each once."""
    lines = station.their_spans()
    expected = bare(station, setup)[1] if sampled else Counter[str]()
    assert theirs(lines) == expected
    ours = Counter(line["span_id"] for line in lines if line["scope"] == names.SCOPE_NAME)
    assert set(ours.values()) <= {1}
    assert set(ours) == ({span.span_id for span in kept.spans if names.STEP_PATH in span.attributes} if expected else set())


def assert_theirs_kept(kept: Kept) -> None:
    """The application's own spans are in the store too, with all that its limits dropped and nothing twice."""
    (trip,) = (span for span in kept.foreign() if span.name == "trip")
    (look_up,) = (span for span in kept.foreign() if span.name == "look up")
    (forecast,) = (span for span in kept.spans if span.attributes.get(names.STEP_NAME) == "forecast")
    (run,) = (span for span in kept.spans if span.attributes.get(names.STEP_NAME) == "traveller")
    assert (look_up.parent_span_id, run.parent_span_id) == (forecast.span_id, trip.span_id)
    assert {f"theirs.{n}": n for n in range(5)}.items() <= look_up.attributes.items()
    assert [event.name for event in look_up.events] == ["asked"]


BY_HAND: Final = [("limited", "before"), ("off", "after"), ("plain", "after"), ("exporter", "before")]
ALL_SETUPS: Final = ["plain", "limited", "off", "logfire", "shutdown", "exporter", "ours"]


@pytest.mark.parametrize(("setup", "when"), [(s, w) for s in ALL_SETUPS for w in ("before", "after")] if FULL else BY_HAND)
def test_recording_started_by_hand(station: Station, calm: Calm, setup: str, when: str) -> None:
    done = station.fork(agent("traveller", station.model.url, setup, when), {"START": str(station.store)})
    kept = assert_whole(station, done, calm, setup)
    assert_unharmed(station, setup, kept)
    if setup != "off":
        assert_theirs_kept(kept)


@pytest.mark.parametrize("setup", ALL_SETUPS if FULL else ["logfire"])
def test_a_recorded_command(station: Station, calm: Calm, setup: str) -> None:
    done = station.record(agent("traveller", station.model.url, setup, "before"))
    kept = assert_whole(station, done, calm, setup)
    assert_unharmed(station, setup, kept)
    if setup != "off":
        assert_theirs_kept(kept)


@pytest.mark.parametrize("by_hand", [False, True] if FULL else [False])
def test_a_trace_that_its_caller_did_not_sample(station: Station, calm: Calm, by_hand: bool) -> None:
    command = agent("traveller", station.model.url, "plain", "before")
    if by_hand:
        done = station.fork(command, {**UNSAMPLED, "START": str(station.store)})
    else:
        done = station.record(command, UNSAMPLED)
    kept = assert_whole(station, done, calm, "plain")
    assert_unharmed(station, "plain", kept, sampled=bool(station.their_spans()))
    (root,) = (span for span in kept.spans if span.attributes.get(names.RUN_COMMAND))
    assert (root.trace_id, root.parent_span_id) == ("a" * 32, "b" * 16)


@pytest.mark.parametrize("where", ["on_start", "on_end"])
@pytest.mark.parametrize("by_hand", [True, False] if FULL else [True])
def test_a_processor_that_raises_at_every_span_of_ours(station: Station, calm: Calm, where: str, by_hand: bool) -> None:
    command = agent("traveller", station.model.url, where, "before")
    done = station.fork(command, {"START": str(station.store)}) if by_hand else station.record(command)
    assert (done.code, done.out) == (calm[0].code, calm[0].out), str(done)
    assert len(done.complaints) == 1, str(done)
    kept = station.kept()
    kept.assert_nothing_doubled()
    assert steps(kept.one()) == STEPS
    assert kept.payloads() == calm[1]
    assert kept.command().dropped == 0 or where in done.complaints[0]
    assert theirs(station.their_spans()) == bare(station, "plain")[1]


@pytest.mark.parametrize("place", ["inside", "child"])
def test_a_provider_that_comes_late_gets_all_its_spans(station: Station, place: str) -> None:
    command = agent("latecomer", place)
    station.fork(command)
    expected = theirs(station.their_spans())
    assert sum(expected.values()) == 2
    done = station.run(command, {"START": str(station.store)}) if place == "inside" else station.record(command)
    assert (done.code, done.complaints) == (0, []), str(done)
    assert theirs(station.their_spans()) == expected
    kept = station.kept()
    kept.assert_nothing_doubled()
    assert Counter(span.name for span in kept.foreign()) == {"theirs": 2}
    assert {span.attributes[names.RUN_ID] for span in kept.foreign()} == {kept.one().run_id}


@pytest.mark.skipif(not INSTRUMENT.exists(), reason="needs opentelemetry-distro")
def test_two_exporters_under_opentelemetry_instrument(station: Station, calm: Calm) -> None:
    settings = {"OTEL_TRACES_EXPORTER": "duckdb,otlp", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    settings |= {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "httpx,openai"}
    with ModelServer() as receiver:
        receiver.script(Scripted(headers={"content-type": "application/x-protobuf"}))
        settings["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
        done = station.run([str(INSTRUMENT), *agent("traveller", station.model.url, "none", "before")], settings)
        received = spans_at(receiver)
    kept = assert_whole(station, done, calm)
    assert_theirs_kept(kept)
    assert set(received.values()) == {1}
    assert set(received) == {span.span_id for span in kept.spans if not span.attributes.get(names.RUN_COMMAND)}


def spans_at(receiver: ModelServer) -> Counter[str]:
    """Ids of the spans that an OTLP receiver was sent."""
    found: Counter[str] = Counter()
    for seen in receiver.requests:
        assert seen.path == "/v1/traces"
        request = ExportTraceServiceRequest.FromString(seen.body)
        found.update(span.span_id.hex() for r in request.resource_spans for s in r.scope_spans for span in s.spans)
    return found


@pytest.mark.parametrize("by_hand", [True, False] if FULL else [True])
def test_an_otlp_exporter_of_the_application(station: Station, calm: Calm, by_hand: bool) -> None:
    command = agent("traveller", station.model.url, "plain", "before")
    with ModelServer() as receiver:
        receiver.script(Scripted(headers={"content-type": "application/x-protobuf"}))
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        done = station.fork(command, {**endpoint, "START": str(station.store)}) if by_hand else station.record(command, endpoint)
        received = spans_at(receiver)
    kept = assert_whole(station, done, calm, "plain")
    assert_unharmed(station, "plain", kept)
    assert received == Counter(line["span_id"] for line in station.their_spans())
    assert not [u for run in kept.runs for u in run.untaped if u["what"] == "connection made"]
