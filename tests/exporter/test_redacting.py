"""The redactor of a policy: it knows the secrets of this process, as its variables are when it is asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode

from spanreplay.boundary.boundary import begin
from spanreplay.boundary.call import Call
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
