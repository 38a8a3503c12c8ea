"""Level 2: what C code does outside is refused by the kernel, and named. Each act runs in a process of its own."""

import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.isolation import naming
from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.reexecution.ledger import Ledger, Totals

CONFINED = """
import sys
from pathlib import Path
from spanreplay.replay.isolation import kernel, naming
scratch = Path(sys.argv[1])
try:
    kernel.confine([scratch, *map(Path, sys.argv[2:])], naming.HandOver(scratch), ports=PORTS)
except kernel.NotOfferedError as error:
    print(f"not offered: {error}")
    raise SystemExit(77)
"""
ACTS = """
import ctypes, os, socket, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def c(function, *arguments):
    return ctypes.get_errno() if getattr(libc, function)(*arguments) < 0 else 0
def address(port):
    return struct.pack("=H", 2) + struct.pack(">H4s8x", port, bytes([127, 0, 0, 1]))
"""


def run(
    tmp_path: Path,
    act: str,
    *writable: Path,
    environment: Mapping[str, str] | None = None,
    allow_connect: Sequence[Address] = (),
) -> tuple[Any, Totals]:
    """What a confined program, which prints one JSON value, has printed; and the ledger of what was stopped."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ledger = Ledger()
    with naming.Watch(scratch, ledger, environment or {}, allow_write=writable, allow_connect=allow_connect):
        program = CONFINED.replace("PORTS", str([port for _, port in allow_connect])) + ACTS + "import json\n" + textwrap.dedent(act)
        command = [sys.executable, "-c", program, str(scratch), *map(str, writable)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), ledger.totals


EACCES = 13


@pytest.mark.parametrize(
    ("act", "stopped"),
    [
        ("s = socket.socket(); print(json.dumps(c('connect', s.fileno(), address(81), 16)))", ("connect", "127.0.0.1:81")),
        (
            "s = socket.socket(type=socket.SOCK_DGRAM); print(json.dumps(c('sendto', s.fileno(), b'x', 1, 0, address(82), 16)))",
            ("send", "127.0.0.1:82"),
        ),
        (
            """
            s = socket.socket(type=socket.SOCK_DGRAM)
            try: print(json.dumps(s.sendmsg([b"x"], [], 0, ("127.0.0.1", 83))))
            except OSError as error: print(json.dumps(error.errno))
            """,
            ("send", "127.0.0.1:83"),
        ),
        (
            """
            s = socket.socket(socket.AF_UNIX)
            print(json.dumps(c("connect", s.fileno(), struct.pack("=H", 1) + b"/run/docker.sock\\0", 19)))
            """,
            ("connect", "/run/docker.sock"),
        ),
        (
            """
            done = subprocess.run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/84 || exit 13"])
            print(json.dumps(done.returncode))
            """,
            ("connect", "127.0.0.1:84"),
        ),
    ],
    ids=["connect", "sendto", "sendmsg", "unix", "child"],
)
def test_connections_and_datagrams_are_refused_and_named(act: str, stopped: tuple[str, str], tmp_path: Path) -> None:
    given, totals = run(tmp_path, act)
    assert given in (EACCES, 1)
    assert [(refusal["action"], refusal["target"]) for refusal in totals.refusals] == [stopped]


def test_a_server_of_the_same_machine_gets_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        act = f"s = socket.socket(); print(json.dumps(c('connect', s.fileno(), address({server.getsockname()[1]}), 16)))"
        given, _ = run(tmp_path, act)
        assert given == EACCES
        with pytest.raises(BlockingIOError):
            server.accept()


def test_files_are_written_in_scratch_and_where_it_is_allowed_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "there").write_text("untouched")
    act = """
        def opened(name, flags=0o1101): return c("open", str(name).encode(), flags, 0o644)
        scratch, allowed = Path(sys.argv[1]), Path(sys.argv[2])
        found = [opened(scratch / "a"), opened(allowed / "b"), opened("/dev/null", 1)]
        found += [opened("outside"), opened("there"), c("unlink", b"there"), c("rename", b"there", b"elsewhere")]
        found += [c("mkdir", b"folder", 0o755), c("symlink", b"there", b"link"), c("truncate", b"there", 0), c("mkfifo", b"pipe", 0o644)]
        print(json.dumps(found))
    """
    given, _ = run(tmp_path, act, tmp_path / "allowed")
    assert given == [0, 0, 0, *[EACCES] * 8]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["allowed", "scratch", "there"]
    assert (tmp_path / "there").read_text() == "untouched"


def test_what_a_program_does_within_itself_goes_on(tmp_path: Path) -> None:
    act = """
        import asyncio, multiprocessing, threading
        def double(x, out): out.send(x * 2)
        a, b = socket.socketpair()
        a.sendmsg([b"hi"])
        got = b.recv(2).decode()
        server = socket.create_server(("127.0.0.1", 0))
        here, there = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(target=double, args=(21, there))
        child.start(); child.join()
        thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
        said = subprocess.run(["echo", "said"], capture_output=True, text=True).stdout.strip()
        print(json.dumps([got, here.recv(), said, asyncio.run(asyncio.sleep(0, "slept"))]))
    """
    given, totals = run(tmp_path, act)
    assert given == ["hi", 42, "said", "slept"]
    assert (totals.refusals, totals.notices) == ([], [])


def test_telemetry_and_looking_up_users_are_no_attempts(tmp_path: Path) -> None:
    act = """
        s = socket.socket()
        first = [c("connect", s.fileno(), address(4317), 16), c("connect", s.fileno(), address(5555), 16)]
        u = socket.socket(socket.AF_UNIX)
        name = b"/var/run/nscd/socket"
        print(json.dumps([*first, c("connect", u.fileno(), struct.pack("=H", 1) + name + bytes(1), 3 + len(name))]))
    """
    given, totals = run(tmp_path, act, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:5555"})
    assert given == [EACCES] * 3
    assert (totals.refusals, totals.telemetry_dropped, len(totals.notices)) == ([], 2, 1)


def test_another_process_is_not_signalled(tmp_path: Path) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        given, _ = run(tmp_path, f"print(json.dumps(c('kill', {victim.pid}, 9)))")
        assert given == 1, "EPERM"
        assert victim.poll() is None
    finally:
        assert victim.stdin is not None
        victim.stdin.close()
        victim.wait()


def test_a_signal_to_a_process_that_is_gone_reaches_nobody(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    given, totals = run(tmp_path, f"print(json.dumps(c('kill', {gone.pid}, 15)))")
    assert (given, totals.refusals) == (3, []), "ESRCH, and no attempt"


def test_where_nobody_takes_the_listener_everything_is_refused_all_the_same(tmp_path: Path) -> None:
    program = CONFINED.replace("PORTS", "()").replace("naming.HandOver(scratch)", "None") + ACTS
    program += "s = socket.socket(); print(c('connect', s.fileno(), address(81), 16))"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert int(done.stdout) in (EACCES, 38), done.stderr


def test_connections_to_named_hosts_go_through_and_no_others(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        ports = server.getsockname()[1], other.getsockname()[1]
        act = f"""
            kept = [(socket.socket(), port) for port in {ports}]
            print(json.dumps([c("connect", one.fileno(), address(port), 16) for one, port in kept]))
        """
        given, totals = run(tmp_path, act, allow_connect=[("localhost", ports[0])])
        assert given == [0, EACCES]
        assert [refusal["target"] for refusal in totals.refusals] == [f"127.0.0.1:{ports[1]}"]
