"""What keeping a span takes, against arize-phoenix, which takes OTLP into SQLite: in an environment of its own, on the same spans."""

import os
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from bench.conversations import Times
from bench.writing import SPANS, ours, spans_of
from support.environments import environment
from support.size import FULL

_PAIRS: Final = 10 if FULL else 2
_HERE: Final = Path(__file__).parent
_SECONDS: Final = 180.0
"""Longer than its start, or its taking in of a round, ever takes."""
_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def phoenix_ingest() -> Times:
    """CPU from the first span to the last one in the database, a span: client and server of theirs, all of ours; the two in turn."""
    name = "CPU of a span, exported to phoenix and by it into SQLite / recorded and loaded into the database"
    try:
        python = environment("bench-phoenix", _HERE / "phoenix.txt", checkout=False) / "bin" / "python"
        with ExitStack() as stack:
            server = stack.enter_context(_server(python))
            keep = stack.enter_context(ours(load=True))
            theirs, mine = list[float](), list[float]()
            for _ in range(_PAIRS + 1):
                theirs.append(server.round() / SPANS * 1e6)
                start = time.process_time()
                spans = keep()
                mine.append((time.process_time() - start) / spans * 1e6)
    except (subprocess.CalledProcessError, OSError) as error:
        return Times(name=name, goal=20, median=0, other=0, ours=0, unit="us", note=f"skipped: phoenix does not run here ({error})")
    ratios = sorted(other / own for other, own in zip(theirs[1:], mine[1:], strict=True))
    return Times(
        name=name,
        goal=20,
        median=statistics.median(ratios),
        other=statistics.median(theirs[1:]),
        ours=statistics.median(mine[1:]),
        unit="us",
        note=f"{_PAIRS} pairs, from {ratios[0]:.1f} to {ratios[-1]:.1f}; the first ones left out",
    )


class _Server:
    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, port: int) -> None:
        self._process = process
        self._database = folder / "phoenix.db"
        self._provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=4 * SPANS))
        self._end = spans_of(self._provider)

    def round(self) -> float:
        """Seconds of CPU, of client and server, until as many spans more are in its database."""
        before = self.kept()
        client, server = time.process_time(), self._cpu()
        self._end()
        self._provider.force_flush()
        client = time.process_time() - client
        self._until(lambda: self.kept() >= before + SPANS)
        return client + self._cpu() - server

    def started(self) -> None:
        """Wait until it answers."""
        self._until(lambda: self._database.exists() and self.kept() == 0)

    def kept(self) -> int:
        """Spans in its database; -1 while there is no table of them."""
        try:
            with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
                ((count,),) = connection.execute("SELECT count(*) FROM spans").fetchall()
                return int(count)
        except sqlite3.Error:
            return -1

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not reached():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise OSError("phoenix ended, or took too long")
            time.sleep(0.2)


@contextmanager
def _server(python: Path) -> Iterator[_Server]:
    with tempfile.TemporaryDirectory() as name, socket.socket() as found, socket.socket() as other:
        folder = Path(name)
        found.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, grpc = found.getsockname()[1], other.getsockname()[1]
        found.close()
        other.close()
        more = {
            "PHOENIX_WORKING_DIR": name,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(python), "-m", "phoenix.server.main", "serve"]
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **more}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            server = _Server(process, folder, port)
            server.started()
            _listening(process, port)
            yield server
        finally:
            process.kill()
            process.wait()


def _listening(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise OSError("phoenix does not listen")
