"""An agent that does one more thing of its own, named on its command line, between two calls of a tool."""

import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanreplay.instrumentation import agent_run, tool

OUTSIDE = Path(os.environ["OUTSIDE"])
PORT = int(os.environ["PORT"])


@tool(effect="read")
def look(x: int) -> int:
    """Look something up."""
    (OUTSIDE / f"body-{x}").touch()
    return x * 2


def mail(text: str) -> None:
    """A tool that nobody has decorated."""
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        connection.sendall(text.encode())


def connects() -> None:
    mail("hello")


def connects_in_a_thread() -> None:
    thread = threading.Thread(target=mail, args=("hello",))
    thread.start()
    thread.join()


def connects_and_swallows() -> None:
    try:
        mail("hello")
    except BaseException:
        print("swallowed")


def starts_a_process() -> None:
    subprocess.run(["touch", str(OUTSIDE / "made-by-a-process")], check=True)


def writes() -> None:
    (OUTSIDE / "written").write_text("x")


def asks_for_something_else() -> None:
    look(9)


def swallows_a_difference() -> None:
    try:
        look(9)
    except BaseException:
        print("swallowed")


def differs_in_a_pool() -> None:
    from multiprocessing.pool import ThreadPool

    with ThreadPool(1) as pool:
        print(pool.map(look, [9]))


def differs_and_is_gone() -> None:
    try:
        look(9)
    finally:
        os._exit(0)


def runs_over() -> None:
    raise LookupError("the agent's own")


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def does_what_is_free() -> None:
    """What a replay leaves alone or drops: none of it is an attempt to act."""
    import ctypes
    import platform
    import sqlite3
    import tempfile

    importlib.import_module("urllib3")
    importlib.import_module("asyncio").run(_nothing())
    ctypes.CDLL(None)
    print("runs uname -p:", platform.uname().processor)
    sys.path.insert(0, str(Path.cwd()))
    importlib.import_module("fresh_module")
    memory = sqlite3.connect(":memory:")
    memory.execute("create table t (x)")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x").write_text("x")
        sqlite3.connect(Path(folder) / "db").close()
    _telemetry("http://127.0.0.1:9/v1/traces")
    _telemetry(f"http://127.0.0.1:{PORT}/v1/traces")


async def _nothing() -> None:
    return


def _telemetry(endpoint: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=1)))
    with provider.get_tracer("app").start_as_current_span("the application's own"):
        pass
    provider.force_flush(2000)
    provider.shutdown()


def main() -> None:
    """Run the agent."""
    extra: Callable[[], Any] | None = globals()[sys.argv[1]] if len(sys.argv) > 1 else None
    with agent_run("looker", input="look") as run:
        total = look(1)
        if extra is not None:
            extra()
        run.output = total + look(2)
    print("total", run.output)


if __name__ == "__main__":
    main()
