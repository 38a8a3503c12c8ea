"""What becomes of a request, without any client library."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call, Kind
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Mode
from spanreplay.instrumentation import agent_run, http, http_telemetry
from spanreplay.instrumentation.http import Course
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_sending import asend, send
from spanreplay.instrumentation.shims import untaped
from support.http_exchanges import ASK, CHAT, JSON, head, opened, scope
from support.http_tape import Recorder
from support.taped import recording


@pytest.mark.parametrize(
    ("url", "content_type", "is_telemetry"),
    [
        ("http://localhost:4318/v1/traces", "application/x-protobuf", True),
        ("https://otlp.example.com/otlp/v1/logs", "application/json; charset=utf-8", True),
        ("https://logfire-us.pydantic.dev/v1/metrics", "application/x-protobuf", True),
        ("https://api.openai.com/v1/traces/ingest", "application/json", True),
        ("https://eu.api.smith.langchain.com/runs/multipart", "multipart/form-data; boundary=x", True),
        ("https://config.mlflow-telemetry.io/3.17.2.json", "", True),
        ("https://us.i.posthog.com/batch/", "application/json", True),
        ("https://o1.ingest.us.sentry.io/api/2/envelope/", "application/x-sentry-envelope", True),
        ("https://sentry.example.com/api/2/envelope/", "application/x-sentry-envelope", True),
        ("https://langfuse.example.com/api/public/ingestion", "application/json", True),
        ("https://api.example.com/v1/traces", "text/csv", False),
        ("https://api.smith.langchain.com/commits/owner/prompt/latest", "", False),
        ("https://api.smith.langchain.com/api/v1/runs/query", "application/json", False),
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


@pytest.mark.parametrize(
    ("method", "path", "agent", "is_telemetry"),
    [
        ("GET", "/info", "langsmith-py/0.15.1-httpx", True),
        ("PATCH", "/api/v1/runs/1b4e28ba-2fa1-11d2-883f-0016d3cca427", "langsmith-py/0.4.0", True),
        ("GET", "/runs/1b4e28ba-2fa1-11d2-883f-0016d3cca427", "langsmith-py/0.15.1-httpx", False),
        ("GET", "/commits/-/tone/latest", "langsmith-py/0.15.1-httpx", False),
        ("GET", "/info", "python-httpx/0.28.1", False),
    ],
)
def test_a_library_that_reports_to_its_users_host_is_known_by_its_name(method: str, path: str, agent: str, is_telemetry: bool) -> None:
    request = head("https://smith.example.com" + path, method, headers=(("User-Agent", agent),))
    assert http_telemetry.is_telemetry(request) is is_telemetry


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


@pytest.mark.parametrize(("url", "named"), [("http://h:4318/v1/traces", {}), (CHAT, {("connection made", "h:1"): None})])
def test_a_connection_for_telemetry_is_no_act_of_the_agent(url: str, named: dict[tuple[str, str], None]) -> None:
    def connect() -> None:
        untaped.note(untaped.CONNECTION, "h:1")

    async def aconnect() -> None:
        connect()

    async def body() -> bytes:
        return b""

    with recording(), agent_run("a"):
        here = boundary.here()
        assert here is not None
        assert here.run is not None
        request: Any = SimpleNamespace(scope=here, head=head(url, headers=(("Content-Type", "application/json"),)))
        if named:
            connect()
        else:
            send(request, bytes, connect)
            asyncio.run(asend(request, body, aconnect))
        assert here.run.untaped == named
