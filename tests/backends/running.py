"""A Collector and a Jaeger that run on free loopback ports, with the shipped configurations and no other."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, TypeVar

from backends import binaries

CONFIGURATIONS: Final = Path(__file__).parents[2] / "collector-config"
PATIENCE_S: Final = 60.0
"""How long anything is waited for before a test fails."""

T = TypeVar("T")


def listening(port: str) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(what: str, look: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """Looks again and again, until there is something to see."""
    end = time.monotonic() + patience_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"still not there after {patience_s:g} s: {what}"
        time.sleep(0.02)


def get(url: str) -> bytes | None:
    """What an URL gives; ``None`` where it gives nothing (yet)."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return bytes(answer.read())
    except OSError:
        return None


@dataclass(slots=True)
class Running:
    """A process that serves."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    health: str = ""
    """URL of a page that it has when it is well; empty where it has none."""
    listens: Sequence[str] = ()
    """Ports of loopback that it listens on when it has started."""
    _process: "subprocess.Popen[bytes] | None" = None
    _log: IO[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Starts it, and waits until it says that it is well."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = (self.folder / "log").open("ab")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self._process = subprocess.Popen(
            self.command, cwd=self.folder, env={**inherited, **self.environment}, stdout=self._log, stderr=self._log
        )

        def well() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log[-4000:]
            return all(map(listening, self.listens)) and (not self.health or get(self.health) is not None)

        until(f"{self.command[0]} that has started", well)

    def kill(self) -> None:
        """Ends it at once, as a machine that loses power does to its processes."""
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """Ends it in order."""
        self._end(lambda process: process.terminate())

    def _end(self, how: "Callable[[subprocess.Popen[bytes]], None]") -> None:
        if self._process is not None:
            how(self._process)
            self._process.wait(PATIENCE_S)
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None


@dataclass(slots=True)
class Collector:
    """A Collector with one or more of the shipped configurations."""

    running: Running
    http: str
    """OTLP over HTTP."""
    grpc: str
    """OTLP over gRPC, ``grpc://HOST:PORT``."""
    traces: Path
    """What its file exporter writes."""

    @property
    def waiting(self) -> int:
        """Bytes that wait for the place to look at."""
        page = (get(f"http://127.0.0.1:{self.running.environment['METRICS_PORT']}/metrics") or b"").decode()
        found = re.search(r'^otelcol_exporter_queue_size\{[^}]*exporter="otlp_http/view"[^}]*\} (\S+)$', page, re.MULTILINE)
        return int(float(found[1])) if found else 0

    @property
    def lines(self) -> list[str]:
        """The messages in that file, and in those it was rotated to."""
        return [line for path in sorted(self.traces.parent.glob("traces*.jsonl")) for line in path.read_text("utf-8").splitlines()]


@dataclass(slots=True)
class Jaeger:
    """A Jaeger with the shipped configuration."""

    running: Running
    http: str
    """OTLP over HTTP."""
    grpc: str
    query: str
    """Its API, ``http://HOST:PORT``."""

    def services(self) -> list[str]:
        """Names of the services that it has spans of."""
        return list(json.loads(get(f"{self.query}/api/v3/services") or b"{}").get("services") or [])

    def spans(self, trace: str) -> dict[str, dict[str, object]]:
        """Span id to what it has of a trace, as its third API gives it; empty where it does not know it."""
        found = json.loads(get(f"{self.query}/api/v3/traces/{trace}?raw_traces=true") or b"{}")
        resources = found.get("result", {}).get("resourceSpans", [])
        return {span["spanId"]: span for r in resources for s in r["scopeSpans"] for span in s["spans"]}


@dataclass(slots=True)
class Peers:
    """Starts them; ends them all at the end of a test."""

    folder: Path
    _stack: ExitStack = field(default_factory=ExitStack)
    _count: int = 0

    def collector(
        self, *names: str, view: str = "http://127.0.0.1:9", folder: Path | None = None, start: bool = True, **more: str
    ) -> Collector:
        """A Collector with the configurations of these names.

        Args:
            names: ``gateway``, ``dev`` …
            view: where it sends the copy to look at.
            folder: where it keeps its files, a new one by default.
            start: whether to start it.
            more: further variables of its environment.
        """
        at = folder or self._next("collector")
        ports = {name: str(free_port()) for name in ("OTLP_GRPC_PORT", "OTLP_HTTP_PORT", "HEALTH_PORT", "METRICS_PORT")}
        environment = {**ports, "VIEW_ENDPOINT": view, "DECISION_WAIT": "200ms", **more}
        files = [f"--config=file:{CONFIGURATIONS / name}.yaml" for name in names]
        has_health = "health_check" in (CONFIGURATIONS / f"{names[0]}.yaml").read_text("utf-8")
        health = f"http://127.0.0.1:{ports['HEALTH_PORT']}/" if has_health else f"http://127.0.0.1:{ports['METRICS_PORT']}/metrics"
        listens = (ports["OTLP_GRPC_PORT"], ports["OTLP_HTTP_PORT"])
        running = Running([str(binaries.collector()), *files], environment, at, health, listens)
        made = Collector(
            running=running,
            http=f"http://127.0.0.1:{ports['OTLP_HTTP_PORT']}",
            grpc=f"grpc://127.0.0.1:{ports['OTLP_GRPC_PORT']}",
            traces=at / "traces.jsonl",
        )
        self._started(running, start)
        return made

    def file_reader(self, traces: Path, view: str) -> Running:
        """A Collector with ``replay-from-file``, which sends what a file holds once more.

        Args:
            traces: pattern of the files.
            view: where it sends them.
        """
        file = CONFIGURATIONS / "replay-from-file.yaml"
        environment = {"SPANREPLAY_TRACES": str(traces), "VIEW_ENDPOINT": view}
        running = Running([str(binaries.file_collector()), f"--config=file:{file}"], environment, self._next("files"))
        self._started(running, start=True)
        return running

    def jaeger(self, *, start: bool = True, **more: str) -> Jaeger:
        """A Jaeger.

        Args:
            start: whether to start it.
            more: further variables of its environment.
        """
        names = (
            "JAEGER_QUERY_PORT",
            "JAEGER_QUERY_GRPC_PORT",
            "JAEGER_HEALTH_PORT",
            "JAEGER_METRICS_PORT",
            "JAEGER_OTLP_GRPC_PORT",
            "JAEGER_OTLP_HTTP_PORT",
        )
        ports = {name: str(free_port()) for name in names}
        running = Running(
            [str(binaries.jaeger()), f"--config=file:{CONFIGURATIONS / 'jaeger.yaml'}"],
            {**ports, **more},
            self._next("jaeger"),
            f"http://127.0.0.1:{ports['JAEGER_HEALTH_PORT']}/status",
            [port for name, port in ports.items() if "QUERY" in name or "OTLP" in name],
        )
        made = Jaeger(
            running=running,
            http=f"http://127.0.0.1:{ports['JAEGER_OTLP_HTTP_PORT']}",
            grpc=f"grpc://127.0.0.1:{ports['JAEGER_OTLP_GRPC_PORT']}",
            query=f"http://127.0.0.1:{ports['JAEGER_QUERY_PORT']}",
        )
        self._started(running, start)
        return made

    def _next(self, name: str) -> Path:
        self._count += 1
        return self.folder / f"{name}-{self._count}"

    def _started(self, running: Running, start: bool) -> None:
        self._stack.callback(running.kill)
        if start:
            running.start()

    def end(self) -> None:
        """Ends everything that was started."""
        self._stack.close()


@contextmanager
def peers(folder: Path) -> Iterator[Peers]:
    """``with peers(folder) as p:``."""
    made = Peers(folder)
    try:
        yield made
    finally:
        made.end()
