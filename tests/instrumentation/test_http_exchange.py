"""What is kept of an exchange, and that it ends once."""

import gc
import gzip
import json

import pytest

from spanreplay.boundary.asked import claim
from spanreplay.boundary.call import Answer, OutcomeName
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation import http, http_exchange
from spanreplay.instrumentation.http_exchange import Exchange, end_collected
from spanreplay.instrumentation.http_request import Head
from spanreplay.instrumentation.provider import Provider, registry
from spanreplay.semconv import attributes as names
from support.http_exchanges import ASK, CHAT, JSON, finished, head, opened, scope, taped
from support.http_tape import Recorder, from_attribute
from support.model_server import chat

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


def test_the_calls_that_a_model_asks_for_wait_for_the_tool_that_makes_them() -> None:
    where = scope(recorder=Recorder())
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"city": "Paris"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    exchange = opened(where)
    exchange.responded(200, (JSON,))
    exchange.chunk(json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode())
    exchange.exhausted()
    asked = claim(where, "search", '{"city":"Paris"}')
    assert asked is not None
    assert (asked.call_id, asked.span_id) == ("call_1", exchange.step.span_id)
    assert claim(where, "search", '{"city":"Paris"}') is None


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


def test_a_request_to_another_server_is_no_further_attempt() -> None:
    recorder = Recorder()
    where = scope(recorder=recorder)
    urls = (CHAT, CHAT.replace("api.", "other."), CHAT.replace(".com", ".com:8443"), CHAT)
    for url in urls:
        exchange = opened(where, head(url))
        exchange.responded(503, (JSON,))
        exchange.exhausted()
    assert [s[names.STEP_ATTEMPT] for s in recorder.steps] == [1, 1, 1, 2]


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


def test_a_forked_copy_of_a_response_does_not_end_the_step_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder))
    monkeypatch.setattr("os.getpid", lambda: -1)
    exchange.closed()
    assert recorder.ends == 0


@pytest.mark.parametrize(
    "body",
    [
        '{"Code": "Success", "AccessKeyId": "ASIA1", "SecretAccessKey": "wJalrXUtnFEMIK7MDENG", "Token": "IQoJb3JpZ2luX2Vj=="}',
        '{"roleCredentials":{"accessKeyId":"ASIA1","secretAccessKey":"wJalrXUtnFEMIK7MDENG","sessionToken":"IQoJb3JpZ2luX2Vj=="}}',
        "<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>wJalrXUtnFEMIK7MDENG</SecretAccessKey>\n<SessionToken>IQoJb3JpZ2luX2Vj==</SessionToken>",
    ],
)
def test_credentials_that_a_response_hands_out_are_not_kept(body: str) -> None:
    kept = finished(body.encode(), sent=head("http://169.254.169.254/latest/meta-data/iam/security-credentials/role", "GET"), ask=b"")
    told = json.dumps(kept.attributes)
    assert "wJalrXUtnFEMIK7MDENG" not in told
    assert "IQoJb3JpZ2luX2Vj" not in told
    assert "ASIA" in body
    token = finished(b"AQAEAtokenOfTheInstance==", sent=head("http://169.254.169.254/latest/api/token", "PUT"), headers=(), ask=b"")
    assert "tokenOfTheInstance" not in json.dumps(token.attributes)
    plain = finished(b'{"token": "the word after", "logprob": 1}', sent=head("https://x.example/words", "GET"), ask=b"")
    assert "the word after" in plain[names.WIRE_RESPONSE_BODY]
