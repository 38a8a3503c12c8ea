"""The redactor of a policy: it knows the secrets of this process, as its variables are when it is asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, TraceState, set_span_in_context

from spanreplay.boundary import spans
from spanreplay.boundary.boundary import begin
from spanreplay.boundary.call import Call
from spanreplay.boundary.layers import is_inner_layer
from spanreplay.boundary.session import Session
from spanreplay.content import codec
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter.recorder import Recorder
from spanreplay.exporter.redacting import redactor_for
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store


def test_a_variable_that_is_set_later_is_known_to_the_next_redactor(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RedactionPolicy.default()
    text = "the key is opensesame-1234"
    assert redactor_for(policy).text(text)[1] == 0
    monkeypatch.setenv("SHOP_API_KEY", "opensesame-1234")
    assert redactor_for(policy).text(text)[1] == 1
    monkeypatch.delenv("SHOP_API_KEY")
    assert redactor_for(policy).text(text)[1] == 0


def test_what_one_replay_has_learnt_is_not_known_to_the_next() -> None:
    policy = RedactionPolicy.default()
    first = redactor_for(policy)
    first.learn("opensesame-1234")
    text = "the key is opensesame-1234"
    assert first.text(text)[1] == 1
    assert redactor_for(policy).text(text)[1] == 0


PIN = "geheim-4711-x"
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def test_a_name_of_the_users_own_policy_is_taken_out_everywhere(tmp_path: Path) -> None:
    """In attributes of spans, events, links, resources and scopes, in what they hold, in arguments and results of steps."""
    default = RedactionPolicy.default()
    redactor = Redactor(replace(default, members=(*default.members, "customer_pin")))
    writer = JournalWriter(tmp_path, process=current_process())
    recorder = Recorder(writer, redactor=redactor)
    provider = TracerProvider(resource=Resource({"customer_pin": PIN}))
    provider.add_span_processor(recorder)  # type: ignore[arg-type]  # it has the processor's methods
    tracer = provider.get_tracer("theirs", attributes={"customer_pin": PIN})
    plain: tuple[dict[str, Any], ...] = (
        {"customer_pin": PIN},
        {"customer_pin": (PIN, PIN)},
        {"customer_pin": PIN.encode()},
        {"raw": b"\xff KEY_" + TOKEN.encode()},
        {"map": {"customer_pin": PIN, "list": [{"customer_pin": {"in": PIN}}], "bytes": TOKEN.encode()}},
        {"http.request.header.x-my-token": (PIN,), "http.response.header.set_cookie": (f"sid={PIN}",)},
        {"json": f'{{"customer_pin": "{PIN}"}}'},
    )
    for attributes in plain:
        tracer.start_span("plain", attributes=attributes).end()
    span = tracer.start_span(f"named {TOKEN}")
    span.add_event("event", {"customer_pin": PIN, "raw": TOKEN.encode()})
    span.add_link(span.get_span_context(), {"customer_pin": PIN})
    span.record_exception(RuntimeError(f"Cookie: sid={PIN}"))
    span.set_status(StatusCode.ERROR, f"the password is {PIN}")
    span.end()
    session = Session(mode="record", sink=recorder, open_spans=False, redactor=redactor)
    given = codec.encode({"customer_pin": PIN})
    call = Call(kind="tool_call", name="pay", input=given, attributes={"customer_pin": PIN, "http.request.header.cookie": [f"a={PIN}"]})
    step = begin(session.root(None), call)
    assert step is not None
    step.end("ok", result=codec.encode({"customer_pin": PIN, "raw": TOKEN.encode()}), attributes={"customer_pin": [PIN]})
    writer.close()
    store = Store.open(tmp_path)
    store.compact()
    traces = [str(row[0]) for row in store.query("SELECT DISTINCT trace_id FROM spans").rows]
    kept = list(store.traces(traces))
    assert len(kept) == 9
    told = repr(kept)
    assert PIN not in told
    assert TOKEN not in told


def kept_in(folder: Path) -> str:
    """All that a store tells of the spans in it."""
    store = Store.open(folder)
    store.compact()
    traces = [str(row[0]) for row in store.query("SELECT DISTINCT trace_id FROM spans").rows]
    return repr(list(store.traces(traces)))


def around_with_a_secret() -> Context:
    """What a span is started in that somebody's trace state with a secret came to."""
    state = TraceState([("vendor", TOKEN)])
    return set_span_in_context(NonRecordingSpan(SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)))


@pytest.mark.parametrize("plain", [True, False])
def test_no_text_of_a_span_of_others_keeps_a_secret(plain: bool, tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, process=current_process())
    recorder = Recorder(writer, redactor=Redactor(RedactionPolicy.default()))
    provider = TracerProvider(resource=Resource({f"r.{TOKEN}": 1, "r": TOKEN}, schema_url=f"https://s.test/{TOKEN}"))
    provider.add_span_processor(recorder)  # type: ignore[arg-type]  # it has the processor's methods
    tracer = provider.get_tracer(f"scope {TOKEN}", TOKEN, f"https://s.test/{TOKEN}", {f"s.{TOKEN}": "x", "s": TOKEN})
    attributes: dict[str, Any] = {f"a.{TOKEN}": 1, f"b.{TOKEN}": "x", "c": TOKEN, "d": (TOKEN,), "e": {TOKEN: {TOKEN: TOKEN}}}
    given = [{name: value} for name, value in attributes.items()] if plain else [attributes]
    for each in given:
        span = tracer.start_span(f"named {TOKEN}", context=None if plain else around_with_a_secret(), attributes=each)
        if not plain:
            span.add_event(f"event {TOKEN}", attributes)
            span.add_link(span.get_span_context(), attributes)
            span.set_status(StatusCode.ERROR, f"failed with {TOKEN}")
            span.update_name(f"renamed {TOKEN}")
        span.end()
    writer.close()
    kept = kept_in(tmp_path)
    assert kept.count("SpanRecord(") == len(given)
    assert TOKEN not in kept


def test_no_text_of_a_step_keeps_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor that of its span with the application's own tracer provider."""
    shown = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(shown))
    monkeypatch.setattr(spans, "_tracer", None)
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
    writer = JournalWriter(tmp_path, process=current_process())
    recorder = Recorder(writer, redactor=Redactor(RedactionPolicy.default()))
    attributes: dict[str, Any] = {f"a.{TOKEN}": 1, f"b.{TOKEN}": "x", "c": TOKEN, "d": [TOKEN]}
    session = Session(mode="record", sink=recorder, redactor=recorder.converter.redactor, attributes=attributes)
    failure = type(f"Error_{TOKEN}", (RuntimeError,), {})
    for kind in ("agent", "tool_call", "model_call", "io", "retrieval"):
        given = codec.encode({TOKEN: TOKEN})
        call = Call(kind=kind, name=f"the {TOKEN}", input=given, attributes=attributes, call_id=f"call_{TOKEN}", span_name=f"of {TOKEN}")
        agent = begin(session.root(None).fork(f"task {TOKEN}").keyed(TOKEN), replace(call, span_name=None))
        assert agent is not None
        inner = begin(agent.inner, call)
        assert inner is not None
        inner.fail(failure(TOKEN), attributes=attributes)
        agent.succeed({TOKEN: TOKEN}, attributes=attributes)
    writer.close()
    kept = kept_in(tmp_path)
    assert kept.count("SpanRecord(") == len(shown.get_finished_spans()) == 10
    assert TOKEN not in kept
    assert TOKEN not in "".join(span.to_json() for span in shown.get_finished_spans())


def test_a_tool_whose_name_has_a_secret_is_one_step_however_many_layers_see_it() -> None:
    session = Session(mode="record", open_spans=False)
    step = begin(session.root(None), Call(kind="tool_call", name=f"read {TOKEN}", layer="outer"))
    assert step is not None
    assert is_inner_layer(step.inner, f"read {TOKEN}", "inner")
    assert not is_inner_layer(step.inner, "another", "third")
