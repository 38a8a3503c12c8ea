"""Any HTTP over httpx, and over httpx2, which share the seam: recorded, replayed, installed, taken out."""

import asyncio
import json
import subprocess
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import httpx2
import pytest
from opentelemetry import context as otel_context

from spanreplay.boundary.call import Answer
from spanreplay.instrumentation import httpx_family
from spanreplay.instrumentation.transports import httpx as httpx_transport
from spanreplay.instrumentation.transports import httpx2 as httpx2_transport
from spanreplay.semconv import attributes as names
from support.http_tape import Recorder, Tape, awaited, record, replay
from support.model_server import Drop, ModelServer, Scripted, as_json, chat

BOTH = pytest.mark.parametrize("lib", [httpx, httpx2])


def seen(answer: Any) -> Any:
    return answer.status_code, answer.content, [(n, v) for n, v in answer.headers.items() if n not in ("date", "set-cookie")]


def experiment(server: ModelServer, agent: Callable[[], Any], *script: Scripted) -> tuple[Any, Recorder]:
    server.script(*script)
    value, recorded = record(agent)
    assert recorded.ends == len(recorded.steps)
    before = len(server.requests)
    tape = Tape(recorded)
    again, replayed = replay(agent, tape)
    assert again == value
    assert len(server.requests) == before
    assert [(s[names.STEP_PATH], s.outcome) for s in replayed.steps] == [(s[names.STEP_PATH], s.outcome) for s in recorded.steps]
    assert [turn.given_up for turn in tape.turns] == [1] * len(tape.turns)
    unwatched = Tape(recorded)
    assert replay(agent, unwatched, sink=None)[0] == value
    assert [(s.path, s.outcome) for s in unwatched.ended_steps] == [(s.path, s.outcome) for s in tape.ended_steps]
    assert len(server.requests) == before
    return value, recorded


def both_ways(lib: Any, url: str, **request: Any) -> list[Callable[[], Any]]:
    """The same request, sent synchronously and asynchronously."""
    method = request.pop("method", "GET")

    def agent() -> Any:
        with lib.Client(verify=False, follow_redirects=True) as c:
            return seen(c.request(method, url, **request))

    async def aagent() -> Any:
        async with lib.AsyncClient(verify=False, follow_redirects=True) as c:
            return seen(await c.request(method, url, **request))

    return [agent, awaited(aagent)]


@BOTH
@pytest.mark.parametrize(
    ("request_with", "answer"),
    [
        ({}, Scripted(headers={"content-type": "text/plain; charset=iso-8859-1"}, parts=["schön".encode("latin-1")])),
        ({}, Scripted(headers={"content-type": "image/png"}, parts=[bytes(range(256))])),
        ({}, as_json({"rows": [1, 2]}, compressed=True)),
        ({}, Scripted(headers={"content-encoding": "gzip"})),
        ({}, Scripted(headers={"content-encoding": "unheard-of"}, parts=[b"\xff\x00"])),
        ({"method": "POST", "json": {"q": "ä"}}, as_json({"rows": []})),
        ({"method": "POST", "data": {"grant_type": "refresh_token"}}, as_json({"ok": True})),
        ({"method": "POST", "files": {"file": ("a.txt", b"content")}}, as_json({"id": "f1"})),
        ({"method": "POST", "content": b"\xff\xfe"}, as_json({})),
        ({"method": "HEAD"}, Scripted(headers={"content-length": "12"})),
        ({"method": "DELETE"}, Scripted(status=204)),
        ({}, Scripted(status=404, parts=[b"none"])),
        ({}, Scripted(parts=[b"a", b"b", b"c"], chunked=True)),
        ({"params": {"q": "x y", "page": "2"}}, Scripted(headers={"set-cookie": "id=1; Path=/"}, parts=[b"cookie"])),
    ],
)
def test_any_exchange_replays_equal(server: ModelServer, lib: Any, request_with: dict[str, Any], answer: Scripted) -> None:
    for agent in both_ways(lib, f"{server.url}/v1/search", **dict(request_with)):
        value, recorded = experiment(server, agent, answer)
        (step,) = recorded.steps
        assert step[names.STEP_KIND] == "io"
        assert step[names.STEP_NAME] == f"{request_with.get('method', 'GET')} 127.0.0.1/v1/search"
        assert step.outcome == ("error" if value[0] >= 400 else "ok")
        assert step[names.WIRE_RESPONSE_COMPLETE] is True
        assert step.body == (b"".join(p for p in answer.parts if isinstance(p, bytes)))
        assert step[names.SERVER_PORT] == int(server.url.rpartition(":")[2])


@BOTH
def test_a_redirect_is_two_steps(server: ModelServer, lib: Any) -> None:
    for agent in both_ways(lib, f"{server.url}/old"):
        _, recorded = experiment(server, agent, Scripted(status=302, headers={"location": "/new"}), Scripted(parts=[b"here"]))
        assert [s[names.STEP_NAME] for s in recorded.steps] == ["GET 127.0.0.1/old", "GET 127.0.0.1/new"]


@BOTH
def test_a_streamed_upload_reaches_the_server_and_the_record(server: ModelServer, lib: Any) -> None:
    def parts() -> Iterator[bytes]:
        yield b'{"big": '
        yield b"1}"

    async def aparts() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    def agent() -> Any:
        with lib.Client(verify=False) as c:
            return seen(c.post(f"{server.url}/upload", content=parts()))

    async def aagent() -> Any:
        async with lib.AsyncClient(verify=False) as c:
            return seen(await c.post(f"{server.url}/upload", content=aparts()))

    for run in (agent, awaited(aagent)):
        _, recorded = experiment(server, run, as_json({}))
        assert server.requests[-1].body == b'{"big": 1}'
        assert recorded.steps[0][names.WIRE_REQUEST_BODY] == '{"big": 1}'


@BOTH
def test_an_upload_that_fails_to_read_raises_as_without_us(server: ModelServer, lib: Any) -> None:
    def parts() -> Iterator[bytes]:
        yield b"a"
        raise RuntimeError("no more")

    def agent() -> Any:
        with lib.Client(verify=False) as c, pytest.raises(RuntimeError, match="no more"):
            c.post(f"{server.url}/upload", content=parts())

    server.script(Scripted())
    assert record(agent)[1].steps == []


@BOTH
@pytest.mark.parametrize("part", [1, 2])
def test_a_streamed_download_left_early(server: ModelServer, lib: Any, part: int) -> None:
    rest = threading.Event()

    def agent() -> Any:
        with lib.Client(verify=False) as c, c.stream("GET", f"{server.url}/log") as answer:
            chunks = answer.iter_raw()
            return [next(chunks) for _ in range(part)]

    async def aagent() -> Any:
        async with lib.AsyncClient(verify=False) as c, c.stream("GET", f"{server.url}/log") as answer:
            chunks = answer.aiter_raw()
            got = [await anext(chunks) for _ in range(part)]
            await chunks.aclose()
            return got

    for run in (agent, awaited(aagent)):
        value, recorded = experiment(server, run, Scripted(parts=[b"one", b"two", rest, b"three"], chunked=True))
        assert value == [b"one", b"two"][:part]
        assert recorded.steps[0].outcome == "abandoned"
        assert recorded.steps[0].body == b"".join(value)


@BOTH
def test_a_body_read_whole_but_closed_before_its_end_was_seen_is_complete(server: ModelServer, lib: Any) -> None:
    def agent() -> Any:
        with lib.Client(verify=False) as c, c.stream("GET", f"{server.url}/log") as answer:
            return next(answer.iter_raw())

    _, recorded = experiment(server, agent, Scripted(parts=[b"all of it"]))
    assert recorded.steps[0].outcome == "ok"


@BOTH
def test_failures_replay_as_the_same_exceptions(server: ModelServer, lib: Any) -> None:
    never = threading.Event()

    def failing(error: Any) -> list[Callable[[], Any]]:
        def agent() -> Any:
            with lib.Client(verify=False, timeout=lib.Timeout(5, read=0.05)) as c, pytest.raises(error) as caught:
                c.get(f"{server.url}/x")
            return type(caught.value), str(caught.value), str(caught.value.request.url)

        async def aagent() -> Any:
            async with lib.AsyncClient(verify=False, timeout=lib.Timeout(5, read=0.05)) as c:
                with pytest.raises(error) as caught:
                    await c.get(f"{server.url}/x")
            return type(caught.value), str(caught.value), str(caught.value.request.url)

        return [agent, awaited(aagent)]

    for agent in failing(lib.ReadTimeout):
        _, recorded = experiment(server, agent, Scripted(before=never))
        assert recorded.steps[0].outcome == "timeout"
        _, recorded = experiment(server, agent, Scripted(parts=[b"part", never], chunked=True))
        assert recorded.steps[0].outcome == "timeout"
        assert recorded.steps[0].body == b"part"
    for agent in failing(lib.RemoteProtocolError):
        _, recorded = experiment(server, agent, Scripted(headers={"content-length": "10"}, parts=[b"part", Drop]))
        assert recorded.steps[0].outcome == "error"


@BOTH
def test_the_exception_is_the_object_that_the_transport_raised(lib: Any) -> None:
    original = lib.ConnectError("nobody there")

    def fail(request: Any) -> Any:
        raise original

    def agent() -> Any:
        with lib.Client(transport=lib.MockTransport(fail)) as c:
            try:
                c.get("http://example.com")
            except lib.ConnectError as error:
                return error

    value, recorded = record(agent)
    assert value is original
    assert recorded.steps[0][names.ERROR_TYPE].endswith("ConnectError")


@pytest.mark.parametrize("gone", [False, True])
def test_a_run_recorded_with_one_library_raises_the_exception_of_the_other(gone: bool) -> None:
    def agent(lib: Any) -> Any:
        def fail(request: Any) -> Any:
            raise lib.ConnectError("nobody there")

        with lib.Client(transport=lib.MockTransport(fail)) as c:
            try:
                c.get("http://example.com")
            except Exception as error:
                return type(error), str(error)

    def change(answer: Answer) -> Answer:
        """As read by a program that has not got the class."""
        error = (answer.error or "").replace("ConnectError", "ConnectError" if not gone else "_gone.ConnectError")
        return replace(answer, error=error)

    _, recorded = record(lambda: agent(httpx2))
    again, _ = replay(lambda: agent(httpx), Tape(recorded, change))
    assert again == (httpx.ConnectError, "nobody there")


@BOTH
def test_nested_instrumentation_is_a_child_of_the_step(lib: Any) -> None:
    from opentelemetry import trace

    from spanreplay.boundary.boundary import here

    found: list[Any] = []

    def answer(request: Any) -> Any:
        scope = here()
        found.append((trace.get_current_span().get_span_context().span_id, scope.step.span_id if scope and scope.step else None))
        return lib.Response(200)

    def agent() -> Any:
        with lib.Client(transport=lib.MockTransport(answer)) as c:
            return c.get("http://example.com").status_code

    _, recorded = record(agent)
    span_id = recorded.steps[0].started.span_id
    assert found == [(int(span_id, 16), span_id)]


# ---- installing ---------------------------------------------------------------------------------------------------


@BOTH
def test_off_costs_nothing(lib: Any) -> None:
    with lib.Client(verify=False) as c:
        assert c._transport_for_url(lib.URL("http://example.com")) is c._transport


@BOTH
def test_the_observed_transport_still_has_what_the_real_one_has(lib: Any) -> None:
    with lib.Client(verify=False) as c:
        observed, _ = record(lambda: c._transport_for_url(lib.URL("http://example.com")))
        assert observed is not c._transport
        assert observed._pool is c._transport._pool
        with pytest.raises(AttributeError):
            _ = observed.nothing_of_the_kind


def test_installing_twice_and_uninstalling_restores_the_original() -> None:
    installed = httpx.Client._transport_for_url
    httpx_transport.install()
    assert httpx.Client._transport_for_url is installed
    assert httpx_transport.status() == httpx2_transport.status() == "active"
    httpx_transport.uninstall()
    httpx_transport.uninstall()
    assert httpx_transport.status() == "off"
    assert httpx.Client._transport_for_url is installed.__wrapped__  # type: ignore[attr-defined]
    assert httpx.Client._transport_for_url.__module__ == "httpx._client"
    assert hasattr(httpx2.Client._transport_for_url, "__wrapped__"), "the other library is untouched"


def test_somebody_elses_patch_on_top_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = httpx.Client._transport_for_url

    def on_top(self: Any, url: Any) -> Any:
        return ours(self, url)

    monkeypatch.setattr(httpx.Client, "_transport_for_url", on_top)
    httpx_transport.uninstall()
    assert httpx.Client._transport_for_url is on_top


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "found neither"),
        ({"Client": type("Client", (), {}), "AsyncClient": type("AsyncClient", (), {})}, "wanted a method Client._transport_for_url"),
        (
            {name: type(name, (), {"_transport_for_url": lambda self, url, proxy: None}) for name in ("Client", "AsyncClient")},
            "found the parameters (self, url, proxy)",
        ),
    ],
)
def test_another_library_under_the_name_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, content: dict[str, Any], reason: str
) -> None:
    module = types.ModuleType("made_up_http")
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, "made_up_http", module)
    seam = httpx_family.Seam("made_up_http")
    seam.install()
    assert seam.status.startswith("unsupported: ")
    assert reason in seam.status
    assert reason in caplog.text
    seam.uninstall()


def test_a_library_imported_later_is_observed_then() -> None:
    script = """
import sys
from spanreplay.instrumentation.transports import httpx, httpx2
httpx.install(); httpx2.install()
assert "httpx" not in sys.modules and "httpx2" not in sys.modules, "an adapter imported its library"
assert httpx.status() == httpx2.status() == "waiting"
import httpx2 as lib
lib.alias_httpx()
import httpx as alias
assert alias is lib
first = lib.Client._transport_for_url
assert httpx2.status() == "active" and hasattr(first, "__wrapped__")
httpx.uninstall(); httpx.install()
assert lib.Client._transport_for_url is first, "patched twice"
httpx.uninstall()
assert lib.Client._transport_for_url is first, "taken out though httpx2 is still wanted"
httpx2.uninstall()
assert lib.Client._transport_for_url is first.__wrapped__
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- telemetry ----------------------------------------------------------------------------------------------------


@BOTH
def test_telemetry_is_no_step_and_is_not_sent_by_a_replay(server: ModelServer, lib: Any) -> None:
    from spanreplay.boundary.session import RunContext, Session, entered
    from spanreplay.instrumentation.http_telemetry import dropped

    def agent() -> Any:
        with lib.Client(verify=False) as c:
            return c.post(f"{server.url}/otlp/v1/traces", content=b"\x0a", headers={"content-type": "application/x-protobuf"}).status_code

    async def aagent() -> Any:
        async with lib.AsyncClient(verify=False) as c:
            return (await c.post(f"{server.url}/api/public/ingestion", json={"batch": []})).status_code

    server.script(Scripted())
    for run in (agent, awaited(aagent)):
        server.requests.clear()
        value, recorded = record(run)
        assert (value, recorded.steps, len(server.requests)) == (200, [], 1)
        session = Session(mode="replay", interceptors=[Tape(recorded)], open_spans=False)
        with entered(session.root(RunContext(run_id="1" * 32, name="agent"))):
            assert run() == 200
        assert len(server.requests) == 1
        assert dropped(session) == {server.url.removeprefix("http://"): 1}


@BOTH
def test_a_suppressed_request_is_no_step_and_is_not_sent_by_a_replay(server: ModelServer, lib: Any) -> None:
    key = otel_context._SUPPRESS_INSTRUMENTATION_KEY

    def agent() -> Any:
        token = otel_context.attach(otel_context.set_value(key, True))
        try:
            with lib.Client(verify=False) as c:
                return c.post(f"{server.url}/collect", json={}).status_code
        finally:
            otel_context.detach(token)

    server.script(Scripted(status=202))
    value, recorded = record(agent)
    assert (value, recorded.steps) == (202, [])
    assert replay(agent, Tape(recorded))[0] == 200
    assert len(server.requests) == 1


@BOTH
def test_a_suppressed_model_call_is_a_step_all_the_same(server: ModelServer, lib: Any) -> None:
    key = otel_context._SUPPRESS_INSTRUMENTATION_KEY

    def agent() -> Any:
        token = otel_context.attach(otel_context.set_value(key, True))
        try:
            with lib.Client(verify=False) as c:
                return c.post(f"{server.url}/v1/chat/completions", json={"model": "m", "messages": []}).status_code
        finally:
            otel_context.detach(token)

    server.script(Scripted())
    value, recorded = record(agent)
    assert (value, [s[names.WIRE_PROVIDER] for s in recorded.steps]) == (200, ["openai.chat"])
    assert replay(agent, Tape(recorded))[0] == 200
    assert len(server.requests) == 1


@BOTH
def test_a_suppressed_request_to_a_models_path_that_is_no_model_call_is_no_step(server: ModelServer, lib: Any) -> None:
    key = otel_context._SUPPRESS_INSTRUMENTATION_KEY

    def agent() -> Any:
        token = otel_context.attach(otel_context.set_value(key, True))
        try:
            with lib.Client(verify=False) as c:
                return c.post(f"{server.url}/v1/chat/completions", content=b"no JSON").status_code
        finally:
            otel_context.detach(token)

    server.script(Scripted(status=202))
    value, recorded = record(agent)
    assert (value, recorded.steps) == (202, [])
    assert replay(agent, Tape(recorded))[0] == 200
    assert len(server.requests) == 1


@BOTH
def test_an_event_loop_closed_under_a_response_ends_the_step(server: ModelServer, lib: Any) -> None:
    async def agent() -> Any:
        c = lib.AsyncClient(transport=lib.MockTransport(lambda _: lib.Response(200, content=endless())))
        answer = await c.send(c.build_request("GET", "http://example.com"), stream=True)
        await anext(answer.aiter_raw())
        await answer.aclose()
        await c.aclose()
        return answer.status_code

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await asyncio.sleep(0)

    _, recorded = record(awaited(agent))
    assert [s.outcome for s in recorded.steps] == ["abandoned"]


@BOTH
def test_what_an_application_of_this_process_is_asked_is_no_step_but_what_it_asks_is(server: ModelServer, lib: Any) -> None:
    asked: list[str] = []

    def wsgi(environ: Any, start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        start_response("200 OK", [("content-type", "application/json")])
        with lib.Client() as c:
            return [json.dumps(c.get(f"{server.url}/weather").json()).encode()]

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        async with lib.AsyncClient() as c:
            body = (await c.get(f"{server.url}/weather")).content
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    def agent() -> Any:
        with lib.Client(transport=lib.WSGITransport(app=wsgi), base_url="http://app") as c:
            return c.post("/ask", json={"city": "Paris"}).json()

    async def aagent() -> Any:
        async with lib.AsyncClient(transport=lib.ASGITransport(app=asgi), base_url="http://app") as c:
            return (await c.post("/ask", json={"city": "Paris"})).json()

    for run in (agent, awaited(aagent)):
        asked.clear()
        value, recorded = experiment(server, run, as_json({"sky": "clear"}))
        assert value == {"sky": "clear"}
        assert [step[names.STEP_NAME].partition("/")[2] for step in recorded.steps] == ["weather"]
        assert len(asked) == 3, "it runs in a replay as the rest of the program does"


@BOTH
def test_a_model_that_is_an_application_of_this_process_is_a_step(lib: Any) -> None:
    asked: list[str] = []

    def model(environ: Any, start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        start_response("200 OK", [("content-type", "application/json")])
        return [json.dumps(chat()).encode()]

    def agent() -> Any:
        with lib.Client(transport=lib.WSGITransport(app=model), base_url="http://model") as c:
            body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello."}]}
            return c.post("/v1/chat/completions", json=body).json()

    value, recorded = record(agent)
    assert [step[names.STEP_NAME] for step in recorded.steps] == ["gpt-4o-mini"]
    assert replay(agent, Tape(recorded))[0] == value
    assert len(asked) == 1
