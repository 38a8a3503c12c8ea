"""What becomes of a request and what is kept of an exchange, without any client library."""

import gc
import gzip
import json
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Answer, Call, Kind, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Mode, RunContext, Session
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation import http, http_body, http_exchange, http_telemetry
from spanreplay.instrumentation.http import Course
from spanreplay.instrumentation.http_body import as_attribute, content_decoded, from_attribute
from spanreplay.instrumentation.http_exchange import Exchange, end_collected
from spanreplay.instrumentation.http_reply import NothingRecordedError, chunks_of, reply
from spanreplay.instrumentation.http_request import Head, learn_credentials, matching_form
from spanreplay.instrumentation.provider import Provider, registry
from spanreplay.semconv import attributes as names
from support.http_tape import POLICY, Kept, Recorder, TapedExchange
from support.model_server import chat, chat_chunks

JSON = ("content-type", "application/json")
KEY = "tok-4f9a8e7d6c5b4a39"
ASK = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}).encode()
CHAT = "https://api.example.com/v1/chat/completions"


def head(url: str = CHAT, method: str = "POST", headers: tuple[tuple[str, str], ...] = (JSON,)) -> Head:
    scheme, _, rest = url.partition("://")
    authority, slash, target = rest.partition("/")
    host, _, port = authority.partition(":")
    return Head(method=method, scheme=scheme, host=host, port=int(port) if port else None, target=slash + target, headers=headers)


def scope(mode: Mode = "record", recorder: Recorder | None = None) -> Scope:
    session = Session(mode=mode, sink=recorder, open_spans=False, redactor=Redactor(POLICY))
    return session.root(RunContext(run_id="0" * 32, name="agent"))


def opened(where: Scope, sent: Head | None = None, body: bytes = ASK) -> Exchange:
    exchange = http.begin(where, sent or head(), body)
    assert isinstance(exchange, Exchange)
    return exchange


def finished(
    body: bytes, *, headers: tuple[tuple[str, str], ...] = (JSON,), sent: Head | None = None, status: int = 200, ask: bytes = ASK
) -> Kept:
    """The record of an exchange whose response came in one piece."""
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder), sent, ask)
    exchange.responded(status, headers)
    exchange.chunk(body)
    exchange.exhausted()
    return recorder.steps[0]


# ---- what becomes of a request ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "content_type", "is_telemetry"),
    [
        ("http://localhost:4318/v1/traces", "application/x-protobuf", True),
        ("https://otlp.example.com/otlp/v1/logs", "application/json; charset=utf-8", True),
        ("https://logfire-us.pydantic.dev/v1/metrics", "application/x-protobuf", True),
        ("https://api.openai.com/v1/traces/ingest", "application/json", True),
        ("https://eu.api.smith.langchain.com/runs/multipart", "multipart/form-data; boundary=x", True),
        ("https://us.i.posthog.com/batch/", "application/json", True),
        ("https://o1.ingest.us.sentry.io/api/2/envelope/", "application/x-sentry-envelope", True),
        ("https://sentry.example.com/api/2/envelope/", "application/x-sentry-envelope", True),
        ("https://langfuse.example.com/api/public/ingestion", "application/json", True),
        ("https://api.example.com/v1/traces", "text/csv", False),
        ("https://api.smith.langchain.com/commits/owner/prompt/latest", "", False),
        ("https://us.i.posthog.com/flags/?v=2", "application/json", False),
        ("https://langfuse.example.com/api/public/v2/prompts/p", "", False),
        ("https://notposthog.com/batch/", "application/json", False),
        (CHAT, "application/json", False),
    ],
)
def test_telemetry_is_told_from_work(url: str, content_type: str, is_telemetry: bool) -> None:
    request = head(url, headers=(("Content-Type", content_type),))
    assert http_telemetry.is_telemetry(request) is is_telemetry
    assert http.consider(scope(), request) is (Course.THROUGH if is_telemetry else Course.STEP)
    replaying = scope("replay")
    assert http.consider(replaying, request) is (Course.DROP if is_telemetry else Course.STEP)
    assert http_telemetry.dropped(replaying.session) == ({request.authority: 1} if is_telemetry else {})


def inside(kind: Kind, mode: Mode = "record", **call: Any) -> Scope:
    outer = scope(mode)
    step = boundary.begin(outer, Call(kind=kind, name="outer", **call))
    assert step is not None
    return step.inner


@pytest.mark.parametrize("kind", ["tool_call", "retrieval", "memory", "io", "mcp", "model_call"])
def test_http_inside_a_step_belongs_to_the_step(kind: Kind) -> None:
    where = inside(kind)
    assert http.begin(where, head("https://api.example.com/rows", "GET"), b"") is Course.THROUGH
    assert opened(where).step.call.kind == "model_call"
    assert opened(inside(kind, "replay"), head("https://api.example.com/rows", "GET"), b"").step.call.kind == "io"


@pytest.mark.parametrize("kind", ["agent", "handoff"])
def test_http_of_the_agents_own_code_is_a_step(kind: Kind) -> None:
    assert opened(inside(kind), head("https://api.example.com/rows", "GET"), b"").step.call.kind == "io"


def test_http_inside_an_agent_that_a_tool_runs_is_a_step() -> None:
    step = boundary.begin(inside("tool_call"), Call(kind="agent", name="inner"))
    assert step is not None
    assert opened(step.inner, head("https://api.example.com/rows", "GET"), b"").step.call.kind == "io"


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_http_under_an_http_step_is_not_observed_twice(mode: Mode) -> None:
    assert http.begin(opened(scope(mode)).step.inner, head(), ASK) is Course.THROUGH


def test_an_upload_inside_a_tool_is_not_read() -> None:
    upload = head("https://api.example.com/files", headers=(("content-type", "multipart/form-data; boundary=b"),))
    assert http.consider(inside("tool_call"), upload) is Course.THROUGH
    assert http.consider(scope(), upload) is Course.STEP


def test_what_goes_wrong_in_us_is_counted_while_recording_and_raised_in_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(http, "recognise", broken)
    recording = scope()
    assert http.begin(recording, head(), ASK) is Course.THROUGH
    assert recording.session.failures == 1
    with pytest.raises(RuntimeError, match="ours"):
        http.begin(scope("replay"), head(), ASK)


def test_a_failure_at_the_end_of_an_exchange_is_counted_and_the_step_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    where = scope(recorder=recorder)
    exchange = opened(where)
    exchange.responded(200, (JSON,))
    monkeypatch.setattr(Exchange, "_put_response", lambda *_, **__: 1 / 0)
    exchange.exhausted()
    assert recorder.steps[0].outcome == "unknown"
    assert where.session.failures == 1


# ---- what a request is matched by ---------------------------------------------------------------------------------


def form(sent: Head, body: bytes = b"", *, model: bool = False) -> Any:
    return json.loads(matching_form(sent, sent.target, body, model=model))


def test_the_matching_form_of_a_model_call_has_no_host_no_key_and_no_header() -> None:
    one = head(CHAT + "?key=AIza1&alt=sse", headers=(JSON, ("authorization", "Bearer a")))
    two = head("http://127.0.0.1:8080/v1/chat/completions?alt=sse", headers=(JSON, ("authorization", "Bearer b")))
    assert form(one, ASK, model=True) == form(two, ASK, model=True)
    assert form(two, ASK, model=True) == {"method": "POST", "url": "/v1/chat/completions?alt=sse", "body": json.loads(ASK)}


def test_the_matching_form_of_other_requests_has_the_host() -> None:
    assert form(head("https://a.example:443/x", "GET")) == form(head("https://a.example/x", "GET"))
    assert form(head("https://a.example/x", "GET")) == {"method": "GET", "url": "/x", "host": "a.example"}
    assert form(head("https://a.example:8443/x", "GET"))["host"] == "a.example:8443"
    assert form(head("https://a.example/x?key=1", "GET"))["url"] == "/x?key=1", "a key may be what is asked for"


def test_what_signs_a_url_is_not_matched() -> None:
    signed = "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F1&X-Amz-Date=1&X-Amz-Signature=ab&versionId=3"
    assert form(head(f"https://bucket.example/key{signed}", "GET"))["url"] == "/key?versionId=3"


def test_a_random_multipart_boundary_is_not_matched() -> None:
    def sent(boundary: str) -> Any:
        body = f"--{boundary}\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--{boundary}--\r\n".encode()
        return form(head(headers=(("content-type", f"multipart/form-data; boundary={boundary}"),)), body)

    assert sent("3f1c") == sent("77aa")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", {}),
        (b'{"b": 1, "a": [1.0, NaN]}', {"body": {"a": [1.0, float("nan")], "b": 1}}),
        (b'{"cut": ', {"text": '{"cut": '}),
        (b"a=1&b=2", {"text": "a=1&b=2"}),
        (b"[" * 100_000, {"text": "[" * 100_000}),
        (b"\xff\x00", {"base64": "/wA="}),
    ],
)
def test_any_body_has_a_matching_form(body: bytes, expected: dict[str, Any]) -> None:
    found = form(head("https://a.example/x", headers=()), body)
    assert repr({k: v for k, v in found.items() if k in ("body", "text", "base64")}) == repr(expected)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.floats(allow_nan=False))), st.randoms())
@settings(max_examples=40, deadline=None)
def test_member_order_does_not_matter_and_everything_else_does(value: dict[str, Any], random: Any) -> None:
    members = list(value.items())
    random.shuffle(members)
    assert form(head(), json.dumps(dict(members)).encode()) == form(head(), json.dumps(value, indent=1).encode())
    assert form(head(), json.dumps({**value, "": "\0other"}).encode()) != form(head(), json.dumps(value).encode())


# ---- secrets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        ("Authorization", f"Bearer {KEY}"),
        ("authorization", KEY),
        ("x-api-key", KEY),
        ("Api-Key", KEY),
        ("Authorization", "Basic " + b64encode(f"user:{KEY}".encode()).decode()),
        ("Authorization", f"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/x, SignedHeaders=host, Signature={KEY}"),
    ],
)
def test_a_credential_is_known_again_wherever_it_appears(header: tuple[str, str]) -> None:
    sent = head("https://api.example.com/echo", headers=(("content-type", "text/plain"), header))
    step = finished(f"you sent {KEY}".encode(), headers=(("content-type", "text/plain"),), sent=sent, ask=f"my key is {KEY}".encode())
    assert KEY not in json.dumps([step.attributes, step.started.name])
    assert b"you sent [redacted:" in step.body
    assert names.WIRE_RESPONSE_BODY in json.loads(step[names.STEP_REDACTED])


def test_a_key_in_the_url_is_in_no_text() -> None:
    step = finished(b"{}", sent=head(f"https://api.example.com/x/{KEY}/rows?api_key={KEY}", "GET", ()), ask=b"")
    everything = json.dumps([step.attributes, step.started.name])
    assert KEY not in everything
    assert step[names.STEP_NAME].startswith("GET api.example.com/x/[redacted:")


def test_a_credential_in_an_exception_is_in_no_text() -> None:
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder), head(headers=(JSON, ("authorization", f"Bearer {KEY}"))))
    exchange.failed(ConnectionError(f"proxy refused {KEY}"))
    assert recorder.steps[0].ended is not None
    assert KEY not in json.dumps([recorder.steps[0].attributes, recorder.steps[0].ended.message, str(recorder.steps[0].ended.events)])


def test_a_placeholder_is_no_secret() -> None:
    redactor = Redactor(POLICY)
    learn_credentials(head(headers=(("authorization", "Bearer lm-studio"),)), redactor)
    assert redactor.text("served by lm-studio today")[1] == 0


def test_a_secret_in_a_compressed_response_is_found_and_the_body_kept_decoded() -> None:
    body = json.dumps({**chat(), "echo": f"sk-proj-{'a1B2' * 12}"}).encode()
    headers = (JSON, ("Content-Encoding", "gzip"), ("Content-Length", "99"), ("x-request-id", "r1"))
    step = finished(gzip.compress(body), headers=headers)
    assert b"a1B2a1B2" not in step.body
    kept = json.loads(step.body)
    assert kept["choices"] == chat()["choices"]
    assert json.loads(step[names.WIRE_RESPONSE_HEADERS]) == [list(JSON), ["x-request-id", "r1"]]
    assert [size for size, _ in json.loads(step[names.WIRE_RESPONSE_CHUNKS])] == [len(step.body)]
    assert json.loads(step[names.STEP_REDACTED])[names.WIRE_RESPONSE_BODY] == 1
    assert names.STEP_LOSSY not in step.attributes


def test_a_secret_in_text_that_is_no_utf8_is_found_too() -> None:
    sent = head("https://api.example.com/echo", headers=(("authorization", f"Bearer {KEY}"),))
    step = finished(f"schön {KEY}".encode("latin-1"), headers=(("content-type", "text/plain; charset=latin-1"),), sent=sent)
    assert step.body.startswith("schön [redacted:".encode("latin-1"))
    assert json.loads(step[names.STEP_LOSSY]) == [names.WIRE_RESPONSE_BODY]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_secret_said_piece_by_piece_is_kept_in_no_piece(compressed: bool) -> None:
    pieces = ["the key is sk-", "proj-a1B2a1B2a1B2", "a1B2a1B2a1B2a1B2", "a1B2a1B2a1B2", " ok"]
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in chat_chunks(*pieces)) + b"data: [DONE]\n\n"
    headers = (("content-type", "text/event-stream"), *((("content-encoding", "gzip"),) if compressed else ()))
    ask = json.dumps({**json.loads(ASK), "stream": True}).encode()
    step = finished(gzip.compress(events) if compressed else events, headers=headers, ask=ask)
    assert step.outcome == "ok"
    assert names.WIRE_RESPONSE_BODY not in step.attributes
    assert "a1B2a1B2" not in json.dumps(step.attributes)
    answer = Answer(outcome="ok", result=step[names.STEP_RESULT])
    given = reply(opened(scope("replay"), body=ask), answer, undecided)
    assert b"the key is [redacted:" in b"".join(given.chunks)


def test_binary_is_kept_as_it_is() -> None:
    body = bytes(range(256)) * 4
    step = finished(body, headers=(("content-type", "image/png"),), sent=head("https://api.example.com/a.png", "GET", ()), ask=b"")
    assert step.body == body
    assert step[names.WIRE_RESPONSE_BODY_ENCODING] == "base64"


# ---- what is kept -------------------------------------------------------------------------------------------------


def test_the_view_and_the_wire_of_a_model_call() -> None:
    step = finished(json.dumps(chat()).encode(), headers=(JSON, ("Set-Cookie", "a=b")))
    assert step.started.name == "chat gpt-4o-mini"
    assert step[names.WIRE_PROVIDER] == "openai.chat"
    assert step[names.URL_FULL] == CHAT
    assert step[names.SERVER_PORT] == 443
    assert json.loads(step[names.WIRE_REQUEST_HEADERS]) == [list(JSON)]
    assert step[names.WIRE_REQUEST_BODY] == ASK.decode()
    assert step[names.GEN_AI_RESPONSE_ID] == "chatcmpl-1"
    assert json.loads(step[names.WIRE_RESPONSE_HEADERS])[1][1] != "a=b"
    assert names.STEP_REDACTED not in step.attributes or names.WIRE_RESPONSE_BODY not in json.loads(step[names.STEP_REDACTED])


def test_a_compressed_request_is_recognised_and_kept_as_sent() -> None:
    sent = gzip.compress(ASK)
    step = finished(json.dumps(chat()).encode(), sent=head(headers=(JSON, ("content-encoding", "gzip"))), ask=sent)
    assert step[names.STEP_KIND] == "model_call"
    assert from_attribute(step[names.WIRE_REQUEST_BODY], step[names.WIRE_REQUEST_BODY_ENCODING]) == sent


def test_an_error_status_is_told_by_its_number_and_message() -> None:
    step = finished(json.dumps({"error": {"message": "no such model", "type": "invalid_request_error"}}).encode(), status=404)
    assert step.outcome == "error"
    assert step[names.ERROR_TYPE] == "404"
    assert step.ended is not None
    assert step.ended.message == "no such model"
    assert names.STEP_ERROR not in step.attributes, "nothing was raised"


def test_a_body_too_large_to_keep_is_left_out_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_exchange, "MAX_BODY", 100)
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder), head("https://api.example.com/big", "GET", ()), b"")
    exchange.responded(200, ())
    for _ in range(3):
        exchange.chunk(b"x" * 60)
    exchange.exhausted()
    (step,) = recorder.steps
    assert step.outcome == "ok"
    assert names.WIRE_RESPONSE_BODY not in step.attributes
    assert json.loads(step[names.STEP_LOSSY]) == [names.WIRE_RESPONSE_BODY]


def test_a_request_too_large_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 10)
    step = finished(b"", sent=head("https://api.example.com/up", headers=()), ask=b"x" * 11)
    assert names.WIRE_REQUEST_BODY not in step.attributes
    assert json.loads(step[names.STEP_LOSSY]) == [names.WIRE_REQUEST_BODY]


@pytest.mark.parametrize(
    ("sent", "status", "headers", "body", "outcome"),
    [
        (head(), 200, (("content-type", "text/event-stream"),), b"data: [DONE]\n\n", "ok"),
        (head(), 200, (("content-type", "text/event-stream"),), b"data: {", "abandoned"),
        (head("https://a.example/x", "GET", ()), 200, (("content-length", "4"),), b"text", "ok"),
        (head("https://a.example/x", "GET", ()), 200, (("content-length", "5"),), b"text", "abandoned"),
        (head("https://a.example/x", "HEAD", ()), 200, (("content-length", "5"),), b"", "ok"),
        (head("https://a.example/x", "GET", ()), 204, (), b"", "ok"),
        (head("https://a.example/x", "GET", ()), 200, (), b"", "abandoned"),
        (head("https://a.example/x", "GET", ()), 500, (), b"", "error"),
    ],
)
def test_a_response_closed_before_its_end_was_seen(
    sent: Head, status: int, headers: tuple[tuple[str, str], ...], body: bytes, outcome: str
) -> None:
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder), sent, ASK if sent.method == "POST" else b"")
    exchange.responded(status, headers)
    if body:
        exchange.chunk(body)
    exchange.closed()
    exchange.exhausted()
    exchange.failed(RuntimeError("late"))
    assert recorder.steps[0].outcome == outcome
    assert recorder.ends == 1


def test_attempts_are_counted_per_place_and_request() -> None:
    where = scope(recorder=(recorder := Recorder()))
    other = where.fork("sibling")

    def send(at: Scope, status: int, body: bytes = ASK) -> None:
        exchange = opened(at, body=body)
        exchange.responded(status, (JSON,))
        exchange.exhausted()

    send(where, 500)
    send(other, 200)
    send(where, 200, ASK.replace(b"hi", b"ho"))
    send(where, 400)
    send(where, 200)
    assert [s[names.STEP_ATTEMPT] for s in recorder.steps] == [1, 1, 1, 2, 1]
    assert recorder.steps[3][names.STEP_RETRY_OF] == recorder.steps[0].started.span_id


def test_failed_requests_that_are_never_sent_again_do_not_pile_up() -> None:
    where = scope()
    for number in range(200):
        opened(where, body=ASK.replace(b"hi", str(number).encode())).failed(ConnectionError())
    (failed,) = where.memo.values()
    assert isinstance(failed, dict)
    assert len(failed) <= 64


# ---- a replay that nobody watches ---------------------------------------------------------------------------------


def test_a_replay_that_only_compares_asks_for_the_same_and_builds_no_view() -> None:
    watched = opened(scope("replay", Recorder())).step
    bare = opened(scope("replay")).step
    assert (bare.path, bare.input) == (watched.path, watched.input)
    assert names.WIRE_REQUEST_BODY in watched.call.attributes
    assert names.WIRE_REQUEST_BODY not in bare.call.attributes


@pytest.mark.parametrize("provider", registry(), ids=lambda provider: provider.NAME)
def test_every_provider_names_the_model_that_the_body_names(provider: Provider) -> None:
    assert provider.request({"model": "some-model"}).model == "some-model"


@pytest.mark.parametrize(
    ("recorded", "read", "ending", "outcome"),
    [
        ("ok", 4, "exhausted", "ok"),
        ("malformed", 4, "exhausted", "malformed"),
        ("error", 4, "closed", "error"),
        ("ok", 4, "closed", "ok"),
        ("ok", 2, "closed", "abandoned"),
        ("abandoned", 4, "closed", "abandoned"),
    ],
)
def test_it_ends_as_recorded_unless_the_reader_left_earlier(recorded: OutcomeName, read: int, ending: str, outcome: str) -> None:
    exchange = opened(scope("replay"))
    exchange.answered(Answer(outcome=recorded, exchange=taped(b"text", (4,))))
    exchange.responded(200, (JSON,))
    exchange.chunk(b"text"[:read])
    getattr(exchange, ending)()
    assert exchange.step.outcome == outcome


def test_it_ends_with_the_exception_that_was_raised() -> None:
    exchange = opened(scope("replay"))
    exchange.answered(Answer(outcome="timeout"))
    exchange.failed(exchange.gave(OSError("slow")))
    assert exchange.step.outcome == "timeout"


# ---- responses that nobody closes ---------------------------------------------------------------------------------


class _Response:
    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.itself = self

    def __del__(self) -> None:
        self.exchange.closed()


def test_a_step_is_not_ended_from_inside_code_that_may_hold_a_lock() -> None:
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder))
    exchange.responded(200, (JSON,))
    _Response(exchange)
    exec("collect()", {"__name__": "spanreplay.store.journal", "collect": gc.collect})
    assert recorder.ends == 0
    end_collected()
    assert [s.outcome for s in recorder.steps] == ["abandoned"]


def test_what_was_left_over_ends_with_the_next_request() -> None:
    recorder = Recorder()
    where = scope(recorder=recorder)
    exchange = opened(where)
    exec("closed()", {"__name__": "logging", "closed": exchange.closed})
    opened(where)
    assert [s.outcome for s in recorder.steps] == ["abandoned", None]


# ---- answers ------------------------------------------------------------------------------------------------------


def taped(body: bytes, sizes: tuple[int, ...], *, complete: bool = True) -> TapedExchange:
    return TapedExchange(200, (JSON,), body, tuple((size, 0) for size in sizes), complete)


@given(st.binary(max_size=60), st.data())
@settings(max_examples=40, deadline=None)
def test_recorded_chunks_come_as_they_were_received(body: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    sizes = tuple(b - a for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True))
    chunks = chunks_of(taped(body, sizes))
    assert [len(chunk) for chunk in chunks] == list(sizes)
    assert b"".join(chunks) == body


def test_sizes_that_do_not_fit_give_the_body_in_one_piece() -> None:
    assert chunks_of(taped(b"four", (3,))) == [b"four"]
    assert chunks_of(taped(b"", ())) == []


def undecided(text: str) -> BaseException:
    return ValueError(text)


def test_an_incomplete_answer_ends_in_what_the_session_says() -> None:
    stop = KeyboardInterrupt("beyond")
    answer = Answer(outcome="abandoned", exchange=taped(b"x", (1,), complete=False), beyond=lambda: stop)
    given = reply(opened(scope()), answer, undecided)
    assert given.ending is not None
    assert given.ending() is stop


def test_a_complete_answer_just_ends() -> None:
    given = reply(opened(scope()), Answer(outcome="ok", exchange=taped(b"x", (1,))), undecided)
    assert given.ending is None
    assert not given.pends


def test_an_answer_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(NothingRecordedError, match="found neither"):
        reply(opened(scope()), Answer(outcome="unknown"), undecided)


@pytest.mark.parametrize(
    ("result", "content_type", "body"),
    [('"text"', "text/plain; charset=utf-8", b"text"), ('{"a": 1}', "application/json", b'{"a": 1}')],
)
def test_a_result_without_an_exchange_is_the_body_of_other_http(result: str, content_type: str, body: bytes) -> None:
    exchange = opened(scope(), head("https://a.example/x", "GET", ()), b"")
    given = reply(exchange, Answer(outcome="ok", result=result), undecided)
    assert (given.headers, list(given.chunks)) == ((("content-type", content_type),), [body])


# ---- bodies -------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_bytes_survive_as_an_attribute(body: bytes) -> None:
    assert from_attribute(*as_attribute(body)) == body


def _coded() -> Iterator[tuple[str, Any]]:
    yield "gzip", gzip.compress
    yield "X-Gzip", gzip.compress
    yield "deflate", zlib.compress
    yield "deflate", lambda data: zlib.compress(data)[2:-4]
    yield "identity", lambda data: data
    yield "deflate, gzip", lambda data: gzip.compress(zlib.compress(data))
    yield "gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])


@pytest.mark.parametrize(("coding", "encode"), list(_coded()))
def test_content_codings_are_undone(coding: str, encode: Any) -> None:
    assert content_decoded(encode(b"some text, some text"), coding) == b"some text, some text"
    assert content_decoded(b"", coding) == b""


@given(st.binary(min_size=1, max_size=400), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_a_cut_compressed_body_gives_what_it_holds(body: bytes, cut: int) -> None:
    decoded = content_decoded(gzip.compress(body)[:cut], "gzip")
    assert decoded is not None
    assert body.startswith(decoded)


@pytest.mark.parametrize("coding", ["unheard-of", "gzip"])
def test_what_cannot_be_decoded_is_none(coding: str) -> None:
    assert content_decoded(b"no such thing", coding) is None


def test_a_compressed_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_body, "MAX_DECODED", 1000)
    assert content_decoded(gzip.compress(bytes(100_000)), "gzip") is None


def test_an_undecodable_stream_is_kept_raw() -> None:
    step = finished(b"\xffnot gzip", headers=(JSON, ("content-encoding", "gzip")))
    assert step.body == b"\xffnot gzip"
    assert step.outcome == "malformed"


def test_events_are_read_whole_through_compression() -> None:
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in chat_chunks("Par", "is")) + b"data: [DONE]\n\n"
    step = finished(gzip.compress(events), headers=(("content-type", "text/event-stream"), ("content-encoding", "gzip")))
    assert "Paris" in step[names.GEN_AI_OUTPUT_MESSAGES]
    assert step.outcome == "ok"
