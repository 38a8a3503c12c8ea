"""Runs agent code under a guard in a process of its own, because an audit hook can never be removed."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HARNESS = '''
import importlib.util, json, os, sys
from pathlib import Path

from spanreplay.replay.isolation.guard import Guard, OutsideActionRefused

agent_file, mode, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
here = Path(agent_file).parent
scratch, outside = here / "scratch", here / "outside"
guard = Guard(scratch=scratch, allow_write=[here / "allowed"], **json.loads(sys.argv[4]))
os.environ.update(guard.environment())

def attempt(function, *args):
    """The type name of what the function raises, else "ok"."""
    try:
        function(*args)
    except BaseException as error:
        return type(error).__name__
    return "ok"

code = compile(Path(agent_file).read_text(), agent_file, "exec")
names = dict(__name__="agent", guard=guard, scratch=scratch, outside=outside, port=port, attempt=attempt)
names["OutsideActionRefused"] = OutsideActionRefused
exec(code, names)
main = names["main"]
if mode == "armed":
    with guard.armed():
        result = main()
elif mode == "process":
    guard.arm_process()
    result = main()
    guard.disarm_process()
else:
    result = main()

def plain(refusal):
    return {name: getattr(refusal, name) for name in ("event", "action", "target", "fatal", "where", "thread")}

print("\\n" + json.dumps({
    "result": result,
    "refusals": [plain(r) for r in guard.refusals],
    "notices": [plain(r) for r in guard.notices],
    "attempts": guard.attempts,
    "telemetry": guard.telemetry_dropped,
}))
'''


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What the agent's process said, and the witnesses beside it."""

    result: Any
    refusals: list[dict[str, Any]]
    notices: list[dict[str, Any]]
    attempts: int
    telemetry: int
    stderr: str
    scratch: Path
    outside: Path
    agent: Path


Runner = Callable[..., Ran]


class Witness:
    """A loopback server that sees whoever connects or sends."""

    def __init__(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.tcp.setblocking(False)
        self.udp.setblocking(False)

    def visited(self) -> bool:
        """Tell whether anybody came since the last call."""
        came = False
        for take in (self.tcp.accept, lambda: self.udp.recv(1)):
            try:
                take()[0].close() if take == self.tcp.accept else take()
                came = True
            except BlockingIOError:
                pass
        return came

    def close(self) -> None:
        """Stop listening."""
        self.tcp.close()
        self.udp.close()


@pytest.fixture(scope="session")
def witness() -> Iterator[Witness]:
    """A loopback server, the same for all tests."""
    server = Witness()
    yield server
    server.close()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, witness: Witness) -> Runner:
    """Give the function that runs `code` (which defines `main()`) in a process of its own and returns what it said."""

    def runner(code: str, *, mode: str = "armed", guard: str = "{}", stdin: str = "", files: dict[str, str] | None = None) -> Ran:
        here = tmp_path_factory.mktemp("guard")
        for name in ("scratch", "outside", "allowed"):
            (here / name).mkdir()
        agent, harness = here / "agent.py", here / "harness.py"
        agent.write_text(textwrap.dedent(code))
        harness.write_text(HARNESS)
        for name, text in (files or {}).items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(textwrap.dedent(text))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
        for name in list(environment):
            if name.startswith(("OTEL_", "PYTEST_", "COV_", "PYTHONDONTWRITE")):
                del environment[name]
        done = subprocess.run(
            [sys.executable, str(harness), str(agent), mode, str(witness.port), guard],
            cwd=here,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        return Ran(
            result=said["result"],
            refusals=said["refusals"],
            notices=said["notices"],
            attempts=said["attempts"],
            telemetry=said["telemetry"],
            stderr=done.stderr,
            scratch=here / "scratch",
            outside=here / "outside",
            agent=agent,
        )

    return runner
