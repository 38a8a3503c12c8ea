"""What a request is matched by, and that its credentials are in no text."""

import gzip
import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.boundary.call import Answer
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation.http_reply import reply
from spanreplay.instrumentation.http_request import Head, learn_credentials, matching_form
from spanreplay.semconv import attributes as names
from support.http_exchanges import ASK, CHAT, JSON, KEY, finished, head, opened, scope, undecided
from support.http_tape import POLICY, Recorder
from support.model_server import chat, chat_chunks

# ---- what a request is matched by ---------------------------------------------------------------------------------


def form(sent: Head, body: bytes = b"", *, model: bool = False) -> Any:
    return json.loads(matching_form(sent, sent.target, body, model=model))


def test_the_matching_form_of_a_model_call_has_no_host_no_key_and_no_header() -> None:
    one = head(CHAT + "?key=AIza1&alt=sse", headers=(JSON, ("authorization", "Bearer a")))
    two = head("http://127.0.0.1:8080/v1/chat/completions?alt=sse", headers=(JSON, ("authorization", "Bearer b")))
    assert form(one, ASK, model=True) == form(two, ASK, model=True)
    assert form(two, ASK, model=True) == {"method": "POST", "url": "/v1/chat/completions?alt=sse", "body": json.loads(ASK)}


def test_what_a_model_call_is_cached_by_is_not_matched() -> None:
    keyed = json.dumps({**json.loads(ASK), "prompt_cache_key": "run-1"}).encode()
    assert form(head(CHAT), keyed, model=True) == form(head(CHAT), ASK, model=True)
    assert form(head(CHAT), keyed) != form(head(CHAT), ASK)


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


@pytest.mark.parametrize(
    ("name", "learnt"), [("x-custom-token", True), ("X-Vault-Secret", True), ("x-request-id", False), ("idempotency-key", False)]
)
def test_credentials_in_headers_of_ones_own_are_known_in_bodies_too(name: str, learnt: bool) -> None:
    redactor = Redactor(POLICY)
    learn_credentials(head(headers=((name, "tulip-4711-meadow"),)), redactor)
    assert ("tulip-4711-meadow" not in redactor.text("it said tulip-4711-meadow")[0]) is learnt
