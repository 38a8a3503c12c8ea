"""Whoever sends too much, too slowly or nonsense gets the right answer, takes no memory, and does not keep others from sending."""

import gzip
import http.client
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from fixtures.runs.spans import agent
from spanreplay.receiver import intake, reading, upkeep
from spanreplay.receiver.unpacking import TooLargeError, unpacked
from spanreplay.spans import otlp_proto
from spanreplay.spans.errors import FormatError
from spanreplay.store.store import Store
from support.receiving import PATIENCE_S, At, Program, receiving, running
from support.size import FULL

MIB = 1 << 20
MOST = 600 * MIB
"""What the program may have in memory at any time: about 130 MiB at rest, a body packed and unpacked, and what is read of it at a time."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with running(tmp_path_factory.mktemp("receiver") / "store") as program:
        yield program


def well(program: Program) -> None:
    """It still takes spans, and never had too much in memory."""
    assert program.at.post("/v1/traces", otlp_proto.encode([agent(1)])).body == b""
    peak = next(int(line.split()[1]) for line in Path(f"/proc/{program.process.pid}/status").read_text().splitlines() if "VmHWM" in line)
    assert peak * 1024 < MOST
    assert psutil.Process(program.process.pid).num_fds() < 60


def test_a_bomb_is_refused_at_the_limit(attacked: Program) -> None:
    zstd = pytest.importorskip("backports.zstd")
    zeros = bytes((2000 if FULL else 80) * MIB)
    for encoding, body in (("gzip", gzip.compress(zeros, 1)), ("zstd", zstd.compress(zeros))):
        assert attacked.at.post("/v1/traces", body, Content_Encoding=encoding).status == 413
        assert attacked.at.post("/v1/logs", body, Content_Encoding=encoding).status == 413
    well(attacked)


def test_a_bomb_over_grpc_is_refused_too_and_not_for_the_log(attacked: Program, capfd: pytest.CaptureFixture[str]) -> None:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{attacked.at.grpc_port}", options, grpc.Compression.Gzip) as channel:
        export: Any = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as error:
            export(bytes((1000 if FULL else 80) * MIB), timeout=PATIENCE_S)
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    well(attacked)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_mb_is_refused(chunked: bool, attacked: Program) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", attacked.at.http_port, timeout=PATIENCE_S)
    parts = (bytes(MIB) for _ in range(100))
    headers = {"Content-Type": "application/x-protobuf"} | ({} if chunked else {"Content-Length": str(100 * MIB)})
    connection.request("POST", "/v1/traces", parts, headers, encode_chunked=chunked)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 413
    assert "Retry-After" not in answer.headers
    connection.close()
    well(attacked)


def test_a_large_body_is_taken(attacked: Program) -> None:
    span = agent(5, attributes={"long": "x" * ((64 if FULL else 12) * MIB - 4096)})
    assert attacked.at.post("/v1/traces", gzip.compress(otlp_proto.encode([span]), 1), Content_Encoding="gzip").body == b""
    well(attacked)


def test_json_that_would_take_forty_times_its_size_is_refused(attacked: Program) -> None:
    body = b'{"resourceSpans":[' + b"{}," * (5 * MIB) + b"{}]}"
    assert attacked.at.post("/v1/traces", gzip.compress(body, 1), "application/json", Content_Encoding="gzip").status == 413
    well(attacked)


def test_garbage_is_refused(attacked: Program) -> None:
    noise = random.Random(1)
    for number in range(300 if FULL else 30):
        data = noise.randbytes(noise.randrange(1, 400))
        kind = ("application/x-protobuf", "application/json")[number % 2]
        encoding = ("identity", "gzip", "zstd", "deflate")[number % 4]
        assert attacked.at.post("/v1/traces", data, kind, Content_Encoding=encoding).status in (200, 400)
    for line in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", attacked.at.http_port), timeout=PATIENCE_S) as raw:
            raw.sendall(line)
            assert raw.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    well(attacked)


SLOW: tuple[tuple[str, bytes, bytes], ...] = (
    ("nothing", b"", b""),
    ("half a head", b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n", b""),
    (
        "half a body",
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        b"HTTP/1.1 408",
    ),
    ("a refused body", b"POST /v1/none HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{", b"HTTP/1.1 404"),
    ("a second head", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /hea", b"HTTP/1.1 200"),
)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    with receiving(tmp_path_factory.mktemp("receiver") / "store", head_s=0.2, idle_s=0.2, body_s=0.4) as at:
        yield at


@pytest.fixture(scope="module")
def cramped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    with receiving(tmp_path_factory.mktemp("receiver") / "store", waiting_bytes=1000) as at:
        yield at


@pytest.mark.parametrize(("sent", "answered"), [(sent, answered) for _, sent, answered in SLOW], ids=[name for name, *_ in SLOW])
def test_a_client_that_does_not_go_on_is_let_go(sent: bytes, answered: bytes, hasty: At) -> None:
    with socket.create_connection(("127.0.0.1", hasty.http_port), timeout=PATIENCE_S) as raw:
        raw.sendall(sent)
        got = b""
        try:
            while part := raw.recv(4096):
                got += part
        except ConnectionResetError:
            pass
    assert got.startswith(answered)


def test_a_client_that_drips_is_let_go_too(hasty: At) -> None:
    with socket.create_connection(("127.0.0.1", hasty.http_port), timeout=PATIENCE_S) as raw:
        raw.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n")
        raw.settimeout(0.05)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            raw.sendall(b" ")
            try:
                got = raw.recv(4096)
                break
            except TimeoutError:
                continue
    assert got.startswith(b"HTTP/1.1 408")


def test_where_there_is_no_room_it_says_when_to_come_again(cramped: At) -> None:
    reply = cramped.post("/v1/traces", bytes(2000))
    assert (reply.status, reply.headers["retry-after"]) == (429, "1")
    assert cramped.post("/v1/traces", b"").status == 200


def test_room_is_given_back_whatever_happens(cramped: At) -> None:
    body = otlp_proto.encode([agent(1)])
    half = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 900\r\n\r\n" + bytes(800)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", cramped.http_port), timeout=PATIENCE_S) as raw:
            raw.sendall(half)
        cramped.post("/v1/traces", b"\xff" * 900)
        cramped.post("/v1/traces", bytes(2000))
    end = time.monotonic() + PATIENCE_S
    while (status := cramped.post("/v1/traces", body + b"\x7a\x80\x06" + bytes(768)).status) != 200:
        assert status == 429
        assert time.monotonic() < end


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: gzip.compress(data) * 3])
def test_no_more_than_the_limit_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(TooLargeError):
        unpacked(pack(bytes(1000)), "gzip", 999)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_many_pieces_is_unpacked_and_one_of_too_many_refused(encoding: str) -> None:
    pack = gzip.compress if encoding == "gzip" else pytest.importorskip("backports.zstd").compress
    pieces = [bytes([n % 251]) * (n % 7 * 500) for n in range(1000)]
    assert unpacked(b"".join(map(pack, pieces)), encoding, 10**7) == b"".join(pieces)
    with pytest.raises(FormatError, match="more than 10000 pieces"):  # to look at all of them would take minutes of a body of 6 MB
        unpacked(pack(b"") * 20_000, encoding, 100)


def test_when_the_disk_is_full_nothing_is_acknowledged_and_later_all_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = otlp_proto.encode([agent(1)])
    with receiving(tmp_path / "store") as at:
        assert at.post("/v1/traces", otlp_proto.encode([agent(2)])).status == 200
        with monkeypatch.context() as patch:
            real = os.write

            def write(descriptor: int, data: bytes) -> int:
                if b'"span"' in data:
                    raise OSError(28, "No space left on device")
                return real(descriptor, data)

            patch.setattr(os, "write", write)
            reply = at.post("/v1/traces", body)
            assert (reply.status, reply.headers["retry-after"]) == (503, "2")
            assert b"No space left" in reply.body
            health = http.client.HTTPConnection("127.0.0.1", at.http_port, timeout=PATIENCE_S)
            health.request("GET", "/healthz")
            assert health.getresponse().status == 503
            health.close()
        assert at.post("/v1/traces", body).status == 200
        assert [span.span_id for span in at.spans()] == sorted([agent(1).span_id, agent(2).span_id])


def test_a_disk_that_does_not_sync_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanreplay.store import journal_file

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with receiving(tmp_path / "store") as at:
        with monkeypatch.context() as patch:
            patch.setattr(journal_file, "_sync_file", fail)
            assert at.post("/v1/traces", otlp_proto.encode([agent(1)])).status == 503
        assert at.post("/v1/traces", otlp_proto.encode([agent(1)])).status == 200


def test_what_is_acknowledged_is_synced_whichever_file_it_went_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanreplay.store import journal_file

    monkeypatch.setattr(journal_file, "FULL_BYTES", 2_000)
    monkeypatch.setattr(upkeep, "_EVERY_S", 3600)
    synced: set[int] = set()
    real = journal_file._sync_file

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(journal_file, "_sync_file", sync)
    with receiving(tmp_path / "store") as at:
        assert (
            at.post("/v1/traces", otlp_proto.encode([agent(number, attributes={"x": "y" * 500}) for number in range(1, 30)])).status == 200
        )
        files = list((at.store / "journal").glob("*.journal"))
        assert len(files) > 3
        assert {file.stat().st_ino for file in files} <= synced


def test_a_fault_of_one_request_is_none_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with receiving(tmp_path / "store") as at:
        with monkeypatch.context() as patch:
            patch.setattr(intake, "read", fail)
            assert at.post("/v1/traces", b"").status == 500
        with monkeypatch.context() as patch:
            patch.setattr(intake.Intake, "_make_room", fail)
            assert at.post("/v1/traces", b"").status == 500
        assert at.post("/v1/traces", b"").status == 200


def test_journals_are_ended_and_loaded_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_JOURNAL_BYTES", 100)
    monkeypatch.setattr(upkeep, "_EVERY_S", 3600)
    with receiving(tmp_path / "store") as at:
        for number in range(1, 4):
            assert at.post("/v1/traces", otlp_proto.encode([agent(number)])).status == 200
        assert len(list((at.store / "journal").glob("*.journal"))) == 3
        assert len(at.spans()) == 3
        assert len(list((at.store / "journal").glob("*.journal"))) == 1
    assert not list((at.store / "journal").glob("*.journal")), "what was left is loaded at the end"


def test_upkeep_that_is_not_done_in_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_EVERY_S", 0)
    begun, go_on = threading.Event(), threading.Event()

    def settle(_: Store) -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    store = Store.open(tmp_path / "store", create=True)
    at_work = upkeep.Upkeep(store.path, lambda: -10.0, settle)
    at_work.start()
    assert begun.wait(PATIENCE_S)
    assert not at_work.stop(0.01)
    go_on.set()
    assert at_work.stop(PATIENCE_S)


def test_reading_json_is_bounded() -> None:
    assert reading.JSON_MEMORY >= 1 << 30
