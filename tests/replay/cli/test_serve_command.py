"""``serve``: who may send, what is said, and that every other command works while it runs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import grpc
import pytest
import requests
import trustme
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from fixtures.runs.spans import agent, chat, tool
from spanreplay.receiver.receiver import Receiver
from spanreplay.receiver.settings import ReceiverError, Settings, is_loopback, tokens_in
from spanreplay.spans import otlp_proto
from spanreplay.store import journal_file
from spanreplay.store.store import Store
from support.command_line import CommandLine
from support.receiving import Program, receiving, running, sdk_spans

RUN = [agent(1), chat(2, 1), tool(3, 1)]
TOKEN = "0123456789abcdef0123456789abcdef"
LOOPBACK = "127.0.0.1"


def refused(spanreplay: CommandLine, *arguments: object, code: int = 2) -> str:
    done = spanreplay("serve", *arguments)
    assert done.code == code, done
    return " ".join(done.err.split())


def test_other_commands_see_what_has_arrived_while_it_runs(spanreplay: CommandLine) -> None:
    with running(spanreplay.store) as program:
        at = program.at
        file = spanreplay.file("run.json", *RUN)
        assert spanreplay("send", file, "--endpoint", at.http).code == 0
        assert spanreplay("send", file, "--endpoint", f"grpc://127.0.0.1:{at.grpc_port}").code == 0
        assert [run["n_steps"] for run in spanreplay("runs", "--json").json["runs"]] == [2]
        assert spanreplay("show", "last").code == 0
        assert "rebuilt only" in spanreplay("replay", "last").err
        assert program.stop() == 0
    assert not list((spanreplay.store / "journal").glob("*.journal"))
    assert spanreplay("runs", "--json").json["runs"][0]["origin"] == "receiver"


def test_doctor_says_that_the_store_takes_nothing(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with receiving(spanreplay.store) as at:
        with monkeypatch.context() as patch:
            patch.setattr(journal_file.JournalFile, "_write", full)
            assert at.post("/v1/traces", otlp_proto.encode(RUN)).status == 503
        found = spanreplay("doctor", "--endpoint", at.http, "--json")
    assert found.code == 1
    endpoint = found.json["endpoints"][0]
    assert endpoint["kind"] == "spanreplay"
    assert {check["what"]: check["ok"] for check in endpoint["checks"]} == {"reachable": True, "message size": True, "store": False}


def test_without_the_extra_it_names_it(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'spanreplay[serve]'" in refused(spanreplay)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example", "127.0.0.1.example"])
def test_what_others_can_reach_needs_a_token_and_tls(host: str, spanreplay: CommandLine) -> None:
    said = refused(spanreplay, "--host", host)
    assert "--token-file" in said
    assert "--tls-cert" in said
    assert not spanreplay.store.exists()


def test_half_of_what_is_needed_is_not_enough(spanreplay: CommandLine, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    said = refused(spanreplay, "--host", "0.0.0.0", "--token-file", token)
    assert "TLS" in said
    assert "a token" not in said
    assert "--tls-key" in refused(spanreplay, "--tls-cert", token)


def test_a_token_file_that_others_can_read_is_told(spanreplay: CommandLine, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    assert "chmod 600" in refused(spanreplay, "--host", "0.0.0.0", "--token-file", token)
    token.chmod(0o600)
    assert "chmod" not in refused(spanreplay, "--host", "0.0.0.0", "--token-file", token)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [(f"{TOKEN}\n", 1), (f"# old\n{TOKEN}\n\n{TOKEN[::-1]}\n", 2), ("", 0), ("short", 0), (f"{TOKEN} x", 0), ("ä" * 40, 0)],
)
def test_token_files(text: str, tokens: int) -> None:
    if tokens:
        assert len(tokens_in(text)) == tokens
    else:
        with pytest.raises(ReceiverError):
            tokens_in(text)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Program, Path]]:
    """The program, open to other machines, and the certificate to trust."""
    authority = trustme.CA()
    pair = authority.issue_cert("localhost", LOOPBACK)
    pair.private_key_pem.write_to_path(tmp_path / "key.pem")
    pair.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    arguments = ("--host", "0.0.0.0", "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with running(tmp_path / "store", *arguments, environment={"SPANREPLAY_SERVE_TOKEN": TOKEN}) as program:
        yield program, tmp_path / "ca.pem"


def test_with_a_token_and_tls_it_takes_from_whoever_has_both(
    guarded: tuple[Program, Path], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # to requests, these count for more than what a session trusts
        monkeypatch.delenv(name, raising=False)
    program, trusted = guarded
    at = program.at
    over_http: Callable[..., SpanExporter] = partial(
        HttpSpans, f"https://{LOOPBACK}:{at.http_port}/v1/traces", certificate_file=str(trusted)
    )
    over_grpc: Callable[..., SpanExporter] = partial(
        GrpcSpans, f"https://localhost:{at.grpc_port}", credentials=grpc.ssl_channel_credentials(trusted.read_bytes())
    )
    with caplog.at_level("CRITICAL", "opentelemetry"):
        for number, exporter in enumerate((over_http, over_grpc)):
            for headers, result in (({"authorization": f"Bearer {TOKEN}"}, SpanExportResult.SUCCESS), ({}, SpanExportResult.FAILURE)):
                to = exporter(headers=headers)
                assert to.export(list(sdk_spans(number, 1))) is result
                to.shutdown()
    with pytest.raises(requests.ConnectionError):
        requests.post(f"http://{LOOPBACK}:{at.http_port}/v1/traces", data=otlp_proto.encode(RUN), timeout=10)
    health = requests.get(f"https://{LOOPBACK}:{at.http_port}/healthz", verify=str(trusted), timeout=10).json()
    assert str(at.store) not in json.dumps(health)
    assert len(at.spans()) == 2


def test_what_is_no_certificate_is_said(spanreplay: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no certificate")
    said = refused(spanreplay, "--tls-cert", tmp_path / "x.pem", "--tls-key", tmp_path / "x.pem", "--http-port", 0, "--grpc-port", 0)
    assert "x.pem" in said
    with pytest.raises(ReceiverError, match="no file"):
        Settings(store=tmp_path, certificate=tmp_path / "none", key=tmp_path / "none").check()


def test_a_store_that_cannot_be_made_is_said(spanreplay: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "make a store" in refused(spanreplay, "--store", tmp_path / "file" / "store", code=3)


def test_a_store_of_a_newer_version_is_refused_before_anything_is_received(spanreplay: CommandLine) -> None:
    with Store.open(spanreplay.store, create=True)._database.writing() as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', 1)")
    assert "schema 99" in refused(spanreplay, code=3)


def test_help_needs_nothing(tmp_path: Path) -> None:
    code = "import sys\nsys.modules['uvicorn'] = None\nfrom spanreplay.cli.main import main\nmain(['serve', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert "--token-file" in done.stdout


def test_it_leaves_at_once_where_a_thread_is_still_loading(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []

    def run(receiver: Receiver, _: object) -> None:
        receiver.loading = True

    monkeypatch.setattr(Receiver, "run", run)
    monkeypatch.setattr("os._exit", left.append)
    assert "not all of it is loaded yet" in spanreplay("serve").err
    assert left == [0]
