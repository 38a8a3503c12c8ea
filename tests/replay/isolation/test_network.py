"""A network of its own: nothing of the machine's is there, and what a process does within itself goes on."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.reexecution.command import replay_command
from spanreplay.replay.reexecution.options import Options
from support.handmade import run

LEFT = """
import json, os, socket, sys, threading
from spanreplay.replay.isolation.kernel import NotOfferedError
from spanreplay.replay.isolation.network import leave_network
try:
    leave_network()
except NotOfferedError as error:
    print(error)
    raise SystemExit(77)
with socket.socket() as s:
    outside = s.connect_ex(("127.0.0.1", int(sys.argv[1])))
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as there:
    inside = server.accept()[0].send(b"x")
print(json.dumps({"names": [name for _, name in socket.if_nameindex()], "outside": outside, "inside": inside, "user": os.getuid()}))
"""


@pytest.mark.parametrize("user", [None, 65534], ids=["as-it-is", "nobody"])
def test_a_process_that_has_left_has_its_own_loopback_and_no_more(user: int | None) -> None:
    if user is not None and os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    if user is not None and not os.access(sys.executable, os.X_OK):
        pytest.skip("the interpreter is root's alone")
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [sys.executable, "-c", LEFT, str(server.getsockname()[1])]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, user=user, cwd="/")
        except PermissionError:
            pytest.skip("nobody may not run this interpreter")
    if done.returncode == 77:
        pytest.skip(done.stdout)
    if user is not None and "ermission" in done.stderr:
        pytest.skip("nobody may not read this checkout")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said == {"names": ["lo"], "outside": 111, "inside": 1, "user": os.getuid() if user is None else user}


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are those of Linux")
def test_a_command_is_replayed_in_one_and_the_result_says_so(tmp_path: Path) -> None:
    code = "import socket, sys; sys.stderr.write(','.join(name for _, name in socket.if_nameindex()))"
    with (tmp_path / "errors").open("w+") as errors:
        done = replay_command([run()], [], [sys.executable, "-c", code], options=Options(isolate="net"), errors=errors)
        errors.seek(0)
        said = errors.read()
    if "allows no network namespace" in said:
        assert done.exit_code == 125
        pytest.skip(said)
    assert said == "lo"
    assert done.verdict.isolation.startswith("level 2")
    assert done.verdict.isolation.endswith("; a network of its own")
