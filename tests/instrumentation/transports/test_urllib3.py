"""requests, and urllib3 by itself, over one seam: recorded, replayed, installed, taken out. (boto3: test_botocore.py)"""

import gc
import gzip
import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from spanreplay.boundary import boundary
from spanreplay.instrumentation.transports import urllib3 as transport
from spanreplay.semconv import attributes as names
from support.http_tape import Recorder, Tape, Turn, record, replay
from support.model_server import Drop, ModelServer, Scripted, as_events, as_json, chat, chat_chunks
from support.sdk_agents import ASK, KEY, MODEL, experiment


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    transport.install()
    yield
    transport.uninstall()


def seen(answer: requests.Response) -> Any:
    return (
        answer.status_code,
        answer.reason,
        answer.content,
        [(n, v) for n, v in answer.headers.items() if n not in ("Date", "Set-Cookie", "date", "set-cookie")],
    )


def with_requests(server: ModelServer, method: str, path: str = "/v1/search", **more: Any) -> Callable[[], Any]:
    def agent() -> Any:
        with requests.Session() as session:
            return seen(session.request(method, server.url + path, **more))

    return agent


def with_pool(server: ModelServer, method: str, **more: Any) -> Callable[[], Any]:
    def agent() -> Any:
        with urllib3.PoolManager() as pool:
            answer = pool.request(method, server.url + "/v1/search", **more)
            return (
                answer.status,
                answer.data,
                [(n, v) for n, v in answer.headers.items() if n not in ("Date", "Set-Cookie", "date", "set-cookie")],
            )

    return agent


GZIPPED = as_json({"rows": [1, 2]}, compressed=True)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", Scripted(headers={"content-type": "text/plain"}, parts=["schön".encode()])),
        ("GET", Scripted(headers={"content-type": "image/png"}, parts=[bytes(range(256)) * 100])),
        ("GET", GZIPPED),
        ("GET", Scripted(headers={"content-encoding": "gzip"}, parts=GZIPPED.parts, chunked=True)),
        ("GET", Scripted(parts=[b"a", b"bb", b"ccc"], chunked=True)),
        ("POST", as_json({"ok": True})),
        ("HEAD", Scripted(headers={"content-length": "12"})),
        ("DELETE", Scripted(status=204)),
        ("GET", Scripted(status=404, parts=[b"none"])),
        ("GET", Scripted(headers={"set-cookie": "id=1; Path=/"})),
    ],
)
@pytest.mark.parametrize("make", [with_requests, with_pool])
def test_any_exchange_replays_equal(server: ModelServer, make: Any, method: str, answer: Scripted) -> None:
    _, recorded = experiment(server, make(server, method), answer)
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step[names.STEP_NAME]) == ("io", f"{method} 127.0.0.1/v1/search")
    assert step.outcome == ("error" if answer.status >= 400 else "ok")
    assert step[names.WIRE_RESPONSE_COMPLETE] is True
    assert step.body == (b"" if method == "HEAD" else b"".join(p for p in answer.parts if isinstance(p, bytes)))


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ({"json": {"q": "ä"}}, b'{"q": "\\u00e4"}'),
        ({"data": {"a": "b"}}, b"a=b"),
        ({"data": "ü".encode()}, "ü".encode()),
        ({"data": io.BytesIO(b"from a file")}, b"from a file"),
        ({"data": (part for part in (b"in ", b"parts"))}, b"in parts"),
    ],
)
def test_a_request_body_reaches_the_server_and_the_record(server: ModelServer, more: dict[str, Any], body: bytes) -> None:
    server.script(as_json({}))
    _, recorded = record(with_requests(server, "POST", **more))
    assert server.requests[-1].body == body
    assert recorded.steps[0][names.WIRE_REQUEST_BODY] == body.decode()


def test_a_redirect_is_two_steps(server: ModelServer) -> None:
    script = [Scripted(status=302, headers={"location": "/new"}), Scripted(parts=[b"here"])]
    for make in (with_requests(server, "GET", "/old"), with_pool(server, "GET")):
        _, recorded = experiment(server, make, *script)
        assert [s[names.HTTP_RESPONSE_STATUS_CODE] for s in recorded.steps] == [302, 200]


def test_a_stream_comes_chunk_by_chunk(server: ModelServer) -> None:
    def agent() -> Any:
        with requests.Session() as session:
            answer = session.post(
                f"{server.url}/v1/chat/completions",
                headers={"authorization": f"Bearer {KEY}"},
                json={"model": MODEL, "messages": ASK, "stream": True},
                stream=True,
            )
            return list(answer.iter_content(chunk_size=None))

    value, recorded = experiment(server, agent, as_events(chat_chunks("Par", "is", "."), done=True))
    assert len(value) == 6
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome, step[names.GEN_AI_REQUEST_MODEL]) == ("model_call", "ok", MODEL)
    assert "Paris." in step[names.GEN_AI_OUTPUT_MESSAGES]
    assert KEY not in json.dumps(step.attributes, default=str)
    assert [size for size, _ in json.loads(step[names.WIRE_RESPONSE_CHUNKS])] == [len(part) for part in value]


def test_a_stream_opened_before_its_turn_waits_for_it_before_its_last_chunk(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "is_to_come", True)

    def agent(turns: list[Turn]) -> list[int]:
        with requests.get(f"{server.url}/log", stream=True) as answer:
            return [turns[0].waited if turns else len(part) for part in answer.iter_content(chunk_size=None)]

    server.script(Scripted(parts=[b"a", b"b", b"c"], chunked=True))
    _, recorded = record(lambda: agent([]))
    tape = Tape(recorded)
    assert replay(lambda: agent(tape.turns), tape)[0] == [1, 1, 2]


@pytest.mark.parametrize("decode", [False, True])
def test_compressed_bytes_are_given_again_exactly(server: ModelServer, decode: bool) -> None:
    body = gzip.compress(b"all of it " * 50, mtime=0)

    def agent() -> Any:
        with requests.get(f"{server.url}/log", stream=True) as answer:
            parts = list(answer.raw.stream(16, decode_content=decode))
            return parts if not decode else b"".join(parts)

    answer = Scripted(headers={"content-encoding": "gzip"}, parts=[body[:20], body[20:]], chunked=True)
    value, recorded = experiment(server, agent, answer)
    assert (value if decode else b"".join(value)) == (b"all of it " * 50 if decode else body)
    assert recorded.steps[0].body == body


def leave(server: ModelServer) -> Callable[[], Any]:
    def agent() -> Any:
        with requests.get(f"{server.url}/log", stream=True) as answer:
            return next(answer.iter_content(chunk_size=None))

    return agent


def test_a_stream_left_early(server: ModelServer) -> None:
    rest = threading.Event()
    value, recorded = experiment(server, leave(server), Scripted(parts=[b"first", rest, b"second"], chunked=True))
    assert value == b"first"
    assert [(s.outcome, s.body) for s in recorded.steps] == [("abandoned", b"first")]


def test_a_response_that_nobody_reads_ends_when_it_is_collected(server: ModelServer) -> None:
    def agent() -> Any:
        with requests.Session() as session:
            answer = session.get(f"{server.url}/log", stream=True)
            status = answer.status_code
            del answer
            gc.collect()
            return status

    _, recorded = experiment(server, agent, Scripted(parts=[b"text"]))
    assert [(s.outcome, s.body) for s in recorded.steps] == [("abandoned", b"")]


# ---- failures -----------------------------------------------------------------------------------------------------


def caught(agent: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        try:
            return agent()
        except Exception as error:
            return type(error), str(error)

    return run


def test_a_stream_cut_by_the_other_side(server: ModelServer) -> None:
    for chunked in (True, False):
        answer = Scripted(headers={} if chunked else {"content-length": "20"}, parts=[b"first", Drop], chunked=chunked)
        value, recorded = experiment(server, caught(with_requests(server, "GET")), answer)
        assert value[0] is requests.exceptions.ChunkedEncodingError
        assert recorded.steps[0].outcome == "error"


def test_a_timeout(server: ModelServer) -> None:
    never = threading.Event()
    value, recorded = experiment(server, caught(with_requests(server, "GET", timeout=0.05)), Scripted(before=never))
    assert value[0] is requests.exceptions.ReadTimeout
    assert [s.outcome for s in recorded.steps] == ["timeout"]


def test_a_timeout_in_the_body(server: ModelServer) -> None:
    never = threading.Event()
    late = with_requests(server, "GET", timeout=0.5)  # the first part is to come before
    value, recorded = experiment(server, caught(late), Scripted(parts=[b"first", never], chunked=True))
    assert value[0] is requests.exceptions.ConnectionError
    assert [(s.outcome, s.body) for s in recorded.steps] == [("timeout", b"first")]


def test_a_refused_connection(server: ModelServer) -> None:
    with ModelServer() as closed:
        url = closed.url
    value, recorded = experiment(server, caught(lambda: requests.get(f"{url}/v1/search")), Scripted())
    assert value[0] is requests.exceptions.ConnectionError
    assert "Max retries exceeded" in value[1]
    assert [s.outcome for s in recorded.steps] == ["error"]


def test_each_retry_is_a_step(server: ModelServer) -> None:
    def agent() -> Any:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=Retry(total=3, status_forcelist=[503], backoff_factor=0)))
            return seen(session.get(f"{server.url}/v1/search"))

    busy = Scripted(status=503, parts=[b"busy"])
    _, recorded = experiment(server, agent, busy, busy, as_json({"ok": True}))
    assert [s.outcome for s in recorded.steps] == ["error", "error", "ok"]
    assert [s[names.STEP_ATTEMPT] for s in recorded.steps] == [1, 2, 3]
    assert recorded.steps[1][names.STEP_RETRY_OF] == recorded.steps[0].started.span_id


# ---- its place ----------------------------------------------------------------------------------------------------


def test_off_taken_out_and_put_in_again(server: ModelServer) -> None:
    assert transport.status() == "active"
    transport.install()
    server.script(as_json(chat()))
    assert boundary.here() is None
    assert with_requests(server, "GET")()[0] == 200
    transport.uninstall()
    assert transport.status() == "off"
    assert record(with_requests(server, "GET"))[1].steps == []
    transport.install()
    assert len(record(with_requests(server, "GET"))[1].steps) == 1


def test_telemetry_goes_through_while_recording_and_nowhere_in_a_replay(server: ModelServer) -> None:
    server.script(Scripted())
    export = with_requests(server, "POST", "/v1/traces", data=b"\x0a", headers={"content-type": "application/x-protobuf"})
    _, recorded = record(export)
    assert recorded.steps == []
    assert len(server.requests) == 1
    (status, _, body, _), _ = replay(export, Tape(Recorder()))
    assert (status, body, len(server.requests)) == (200, b"", 1)


def test_another_version_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    transport.uninstall()
    monkeypatch.setattr(urllib3.HTTPConnectionPool, "_make_request", lambda self, conn, method: None)
    transport.install()
    assert transport.status().startswith("unsupported: wanted HTTPConnectionPool._make_request(self, conn, method, url")
