"""Traces are fetched from running back ends, by id and by search."""

import base64
import contextlib
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from recordings.servers import Loopback, Reply
from spanreplay.replay.inputs.input_stream import Limits
from spanreplay.replay.inputs.remote import Access, Location, locate, open_remote, registry
from spanreplay.replay.inputs.report import UnreadableSource
from support.back_end import MISSING, TRACE, TRACES, back_end, ok


def spans(url: str, access: Access | None = None) -> int:
    opened = open_remote(url, access or Access())
    assert list(opened.records)
    return opened.report.spans


_IDS = ("traceId", "spanId", "parentSpanId")


def base64_ids(document: Any) -> Any:
    """As Tempo writes them."""
    if isinstance(document, list):
        return [base64_ids(item) for item in document]
    if isinstance(document, dict):
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in ("traceId", "spanId", "parentSpanId") and value
            else base64_ids(value)
            for key, value in document.items()
        }
    return document


# ---- jaeger ------------------------------------------------------------------------------------------------------


def test_a_trace_of_jaeger_is_asked_for_as_it_was_stored() -> None:
    with back_end(lambda path, query, headers: ok({"result": TRACES})) as (url, asked):
        assert spans(f"jaeger+{url}/base/path/{TRACE}") == 2
    assert asked == [(f"/base/path/api/v3/traces/{TRACE}", {"raw_traces": ["true"]})]


def test_a_jaeger_without_version_3_is_asked_as_before() -> None:
    with back_end(lambda path, query, headers: MISSING if "/v3/" in path else ok({"resourceSpans": TRACES["resourceSpans"]})) as (
        url,
        asked,
    ):
        assert spans(f"jaeger+{url}/{TRACE}") == 2
    assert asked[1] == (f"/api/traces/{TRACE}", {"raw": ["true"]})


def test_a_search_of_jaeger_uses_the_names_that_every_version_knows() -> None:
    with back_end(lambda path, query, headers: ok({"result": TRACES})) as (url, asked):
        assert spans(f"jaeger+{url}/?service=my%20agent&since=2026-11-29T10:00:00Z&until=2026-11-29T11:00:00Z&limit=3") == 2
    ((path, query),) = asked
    assert path == "/api/v3/traces"
    assert query["query.service_name"] == ["my agent"]
    assert query["query.num_traces"] == ["3"]
    assert query["query.start_time_min"] == ["2026-11-29T10:00:00Z"]
    assert query["query.start_time_max"] == ["2026-11-29T11:00:00Z"]


# ---- tempo -------------------------------------------------------------------------------------------------------


def test_a_trace_of_tempo_of_both_versions() -> None:
    with back_end(lambda path, query, headers: ok({"trace": base64_ids(TRACES)})) as (url, asked):
        assert spans(f"tempo+{url}/{TRACE}") == 2
    assert asked[0][0] == f"/api/v2/traces/{TRACE}"
    older = {"batches": base64_ids(TRACES)["resourceSpans"]}
    with back_end(lambda path, query, headers: MISSING if "/v2/" in path else ok(older)) as (url, asked):
        assert spans(f"tempo+{url}/{TRACE}") == 2


def test_a_search_of_tempo_fetches_each_trace_and_mends_its_id() -> None:
    def answer(path: str, query: dict[str, list[str]], headers: Mapping[str, str]) -> Reply:
        if path == "/api/search":
            return ok({"traces": [{"traceID": "abc"}, {"traceID": TRACE}], "metrics": {}})
        return ok({"trace": TRACES})

    with back_end(answer) as (url, asked):
        opened = open_remote(f'tempo+{url}/?q={{ span.gen_ai.agent.name = "weather" }}&limit=5', Access())
        assert len(list(opened.records)) == 4
    assert asked[0][1]["q"] == ['{ span.gen_ai.agent.name = "weather" }']
    assert [path for path, _ in asked[1:]] == [f"/api/v2/traces/{'abc'.rjust(32, '0')}", f"/api/v2/traces/{TRACE}"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('q={ span.a = "x" && status = error }&limit=5', {"q": '{ span.a = "x" && status = error }', "limit": "5"}),
        ('q={span.a="x"&&status=error}', {"q": '{span.a="x"&&status=error}'}),
        ('since=2h&q={ name = "R & D, 50%" }', {"since": "2h", "q": '{ name = "R & D, 50%" }'}),
        ("q=%7B%20span.a%20%3D%20%22a%26b%22%20%7D&since=1h", {"q": '{ span.a = "a&b" }', "since": "1h"}),
        ("service=a+b&limit=&", {"service": "a b", "limit": ""}),
        ("", {}),
    ],
)
def test_traceql_may_stand_in_a_url_as_people_write_it(text: str, query: dict[str, str]) -> None:
    assert locate(f"tempo+http://h:1/?{text}").query == query


# ---- langfuse and phoenix ----------------------------------------------------------------------------------------


def fetched(url: str, pages: Mapping[str, list[Any]]) -> tuple[list[bytes], list[tuple[str, dict[str, Any]]]]:
    """What a back end gives for a URL, with the answers by path, the last one again and again."""
    asked: list[tuple[str, dict[str, Any]]] = []
    left = {path: list(answers) for path, answers in pages.items()}

    def fetch(url: str, params: Mapping[str, Any] | None = None) -> bytes | None:
        path = urlsplit(url).path
        asked.append((path, {k: v for k, v in (params or {}).items() if v is not None}))
        answers = left.get(path)
        if not answers:
            return None
        return json.dumps(answers.pop(0) if len(answers) > 1 else answers[0]).encode()

    location = locate(url)
    return [body for _, body in registry()[location.scheme].documents(location, fetch)], asked


def test_traces_of_a_langfuse_session_page_by_page() -> None:
    ids = [f"t{number}" for number in range(60)]
    pages: dict[str, list[Any]] = {"/api/public/traces": [{"data": [{"id": i} for i in ids[:50]]}, {"data": [{"id": i} for i in ids[50:]]}]}
    pages |= {f"/api/public/traces/{i}": [{"id": i, "observations": []}] for i in ids}
    found, asked = fetched("langfuse+http://h/?session=s1&limit=100", pages)
    assert [json.loads(body)["id"] for body in found] == ids
    assert [params["page"] for path, params in asked if path == "/api/public/traces"] == [1, 2]
    assert asked[0][1]["sessionId"] == "s1"
    assert fetched("langfuse+http://h/t1", pages)[0] == [b'{"id": "t1", "observations": []}']


def test_spans_of_a_phoenix_trace_page_by_page() -> None:
    one = {"context": {"trace_id": TRACE, "span_id": "00000000000000aa"}}
    pages = {"/v1/projects/my%20app/spans": [{"data": [one], "next_cursor": "c2"}, {"data": [one], "next_cursor": None}]}
    found, asked = fetched(f"phoenix+http://h/my%20app/{TRACE}", pages)
    assert len(found) == 2
    assert [params.get("cursor") for _, params in asked] == [None, "c2"]
    assert {params["trace_id"] for _, params in asked} == {TRACE}


def test_a_phoenix_search_finds_traces_by_their_roots() -> None:
    one = {"context": {"trace_id": TRACE, "span_id": "00000000000000aa"}}
    found, asked = fetched(
        "phoenix+http://h/?project=default&since=1h", {"/v1/projects/default/spans": [{"data": [one, one], "next_cursor": None}]}
    )
    assert len(found) == 1
    assert asked[0][1]["parent_id"] == "null"
    assert asked[1][1]["trace_id"] == TRACE


# ---- access and errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "scheme", "header", "value"),
    [
        (Access(bearer="tok"), "jaeger", "authorization", "Bearer tok"),
        (Access(basic=("pk", "sk")), "langfuse", "authorization", "Basic " + base64.b64encode(b"pk:sk").decode()),
        (Access(headers={"X-Extra": "1"}), "tempo", "x-extra", "1"),
        (Access(tenant="blue"), "tempo", "x-scope-orgid", "blue"),
        (Access(tenant="blue"), "jaeger", "x-tenant", "blue"),
    ],
)
def test_who_asks_is_in_the_headers(access: Access, scheme: str, header: str, value: str) -> None:
    def answer(path: str, query: dict[str, list[str]], headers: Mapping[str, str]) -> Reply:
        return ok({"result": TRACES}) if headers.get(header) == value else (401, "text/plain", b"who are you")

    with back_end(answer) as (url, _):
        assert spans(f"{scheme}+{url}/{TRACE}", access) == 2
        with pytest.raises(UnreadableSource, match="expected to be let in, found 401 Unauthorized: who are you; give --bearer-token-env"):
            spans(f"{scheme}+{url}/{TRACE}")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (MISSING, "expected a trace of that id, found none"),
        ((500, "text/plain", b"broken"), "found 500 Internal Server Error: broken"),
        ((200, "text/html", b"<html>"), "expected a trace"),
        ((302, "text/html", b""), "found 302 Found"),
        (ok({"result": {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}}), "traceId"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_what_is_no_trace_is_said(reply: Reply, expected: str) -> None:
    with back_end(lambda path, query, headers: reply) as (url, _), pytest.raises(UnreadableSource) as error:
        spans(f"jaeger+{url}/{TRACE}")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jaeger+http://h/", "…/TRACEID or …/?service=NAME"),
        ("jaeger+http://h/?servce=x", "expected a search by service, operation"),
        ("jaeger+http://h/?service=x&limit=0", "a limit such as limit=20"),
        ("jaeger+http://h/?service=x&since=yesterday", "since=2h or since="),
        ("jaeger+http://me:secret@h/abc", "without user and password"),
        ("jaeger+http:///abc", "a URL with a host"),
        ("phoenix+http://h/abc", "…/PROJECT/TRACEID"),
        ("zipkin+http://h/abc", "a URL of a back end (jaeger+http://"),
        ("jaeger+ftp://h/abc", "expected jaeger+http:// or jaeger+https://, found ftp://"),
    ],
)
def test_a_url_that_does_not_say_what_is_wanted(url: str, expected: str) -> None:
    with pytest.raises(UnreadableSource) as error:
        open_remote(url, Access())
    assert expected in str(error.value)
    assert "secret" not in str(error.value)


def test_an_answer_without_end_is_left() -> None:
    with back_end(lambda path, query, headers: ok({"result": TRACES, "more": "x" * 100_000})) as (url, _):
        with pytest.raises(UnreadableSource, match="at most 50000 bytes"):
            open_remote(f"jaeger+{url}/{TRACE}", Access(), limits=Limits(document=50_000))


def test_a_trace_that_nobody_asked_for_is_told() -> None:
    with back_end(lambda path, query, headers: ok({"result": TRACES})) as (url, _):
        opened = open_remote(f"jaeger+{url}/{'bb' * 16}", Access())
        assert len(list(opened.records)) == 2
        assert ("other-trace", 2) in [(entry["code"], entry["spans"]) for entry in opened.report.fidelity]
        asked = open_remote(f"jaeger+{url}/{TRACE}", Access())
        assert len(list(asked.records)) == 2
        assert "other-trace" not in [entry["code"] for entry in asked.report.fidelity]


def test_an_answer_that_drips_in_has_to_be_whole_in_time() -> None:
    enough = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            while not enough.wait(0.05):
                connection.sendall(b"1\r\n \r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection:
                drip(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            with pytest.raises(UnreadableSource, match=r"expected an answer within 0\.3 s"):
                spans(f"jaeger+http://127.0.0.1:{server.getsockname()[1]}/{TRACE}", Access(timeout_s=0.3))
        finally:
            enough.set()
            thread.join()


def test_a_certificate_of_ones_own_authority(tmp_path: Any) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with Loopback(lambda *_: ok({"result": TRACES}), tls=context) as server:
        url = server.url.replace("http://", "jaeger+https://")
        assert spans(f"{url}/{TRACE}", Access(ca=ca)) == 2
        with pytest.raises(UnreadableSource, match="expected a certificate that is trusted"):
            spans(f"{url}/{TRACE}")


def test_the_place_of_a_search_is_a_folder_of_the_server() -> None:
    assert Location(text="", scheme="", base="http://h", path=("a",), query={"q": "x"}).under("b") == "http://h/a/b"
    assert locate("tempo+http://h:1/a/b").under("c") == "http://h:1/a/c"
