"""What ordinary programs do besides their work does not trip the guard; telemetry is dropped and counted."""

import sys
from typing import Any

import pytest

from spanreplay.instrumentation.probes import LIBRARY_PROBES, PROBES, WRAPPERS
from spanreplay.replay.isolation.known import TELEMETRY

HARMLESS = """
import asyncio, contextvars, ctypes, ctypes.util, email.utils, logging, logging.handlers, mmap, multiprocessing, os, platform, shutil
import socket, sqlite3, sys, tempfile, threading, uuid, webbrowser, zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

def logs():
    handler = logging.handlers.RotatingFileHandler(scratch / "agent.log", maxBytes=20, backupCount=2)
    for _ in range(5):
        handler.emit(logging.makeLogRecord({"msg": "hello hello hello"}))
    handler.close()

def checkpoints():
    for name in (":memory:", "", scratch / "state.db", os.fsencode(scratch / "b.db")):
        db = sqlite3.connect(name)
        db.execute("create table t (a)")
        db.commit()
        db.close()
    for uri in ("file::memory:?cache=shared", "file:x?mode=memory", f"file:{outside}/read.db?mode=ro"):
        sqlite3.connect(uri, uri=True).execute("select 1")

def temporary():
    with tempfile.TemporaryDirectory() as name, tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile():
        Path(name, "a", "b").mkdir(parents=True)
        Path(name, "a", "f").write_text("x")
        shutil.copytree(Path(name, "a"), Path(name, "c"))
        os.symlink("a", Path(name, "l"))
        os.link(Path(name, "a", "f"), Path(name, "second"))
        os.rename(Path(name, "c"), Path(name, "d"))
        Path(name, "a", "f").chmod(0o600)
        os.utime(Path(name, "a", "f"))
        assert Path(name).is_relative_to(scratch) and Path(file.name).is_relative_to(scratch)

def streams():
    for name in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/2", f"/proc/{os.getpid()}/fd/1", "/dev/null"):
        open(name, "a").close()
    with open(1, "w", closefd=False) as out:
        out.write("")
    reader, writer = os.pipe()
    open(f"/dev/fd/{writer}", "w").close()
    os.fchmod(writer, 0o600)
    open(reader).close()

def sockets():
    a, b = socket.socketpair()
    a.sendmsg([b"x"])
    b.sendall(b"y")
    for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0)), (socket.AF_INET, ("localhost", 0))):
        try:
            with socket.socket(family) as s:
                s.bind(address)
        except OSError as error:
            assert family == socket.AF_INET6, error
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(scratch / "s"))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("\\0spanreplay-test")

def names():
    for host in (None, "", "127.0.0.1", "::1", "10.0.0.1", b"127.0.0.1", "localhost"):
        try:
            socket.getaddrinfo(host, 80)
        except socket.gaierror:
            pass
    socket.gethostbyname("localhost")

def nothing_to_do():
    os.makedirs(outside, exist_ok=True)
    (outside / "missing").unlink(missing_ok=True)
    attempt(os.rmdir, outside / "missing")
    attempt(os.rename, outside / "missing", outside / "other")
    try:
        os.symlink("x", outside / "read.db")
    except FileExistsError:
        pass
    attempt(open, "nul\\0byte", "w")
    os.kill(os.getpid(), 0)

def loops():
    async def agent():
        await asyncio.to_thread(len, "x")
        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 1)
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        server.close()
    asyncio.run(agent())

def threads():
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(len, ["a", "bb"])) == [1, 2]
    multiprocessing.get_context("fork").Lock()

def reading():
    (outside / "read.db").read_bytes()
    os.listdir(outside)
    mmap.mmap(-1, 10)
    os.ftruncate(os.memfd_create("m"), 5)

def allowed():
    (scratch.parent / "allowed" / "f").write_text("x")

def probes():
    platform.processor()
    platform.architecture()
    ctypes.util.find_library("c")
    ctypes.CDLL(None)
    uuid.getnode()
    email.utils.make_msgid()
    socket.getfqdn()
    attempt(socket.gethostbyname, socket.gethostname())
    attempt(webbrowser.get)

def main():
    return {f.__name__: [attempt(f), guard.attempts]
        for f in (logs, checkpoints, temporary, streams, sockets, names, nothing_to_do, loops, threads, reading, allowed, probes)}
"""


@pytest.mark.parametrize("mode", ["armed", "process"])
def test_harmless_acts(run: Any, mode: str) -> None:
    ran = run(HARMLESS, mode=mode, files={"outside/read.db": ""})
    assert ran.result == {name: ["ok", 0] for name in ran.result}
    assert len(ran.result) == 12
    assert ran.refusals == []
    assert {notice["action"] for notice in ran.notices} <= {"process", "lookup"}
    assert "uname -p" in {notice["target"] for notice in ran.notices}
    assert {path.name for path in ran.scratch.iterdir()} >= {"agent.log", "agent.log.1", "state.db"}


PROBE_WITHOUT_SCRATCH = """
import ctypes.util, shutil, tempfile
def main():
    shutil.which = lambda name: "/somewhere/" + name  # a machine with a compiler
    tempfile.tempdir = str(outside)
    return ctypes.util.find_library("nothing-of-this-name")
"""


def test_a_probe_has_its_temporary_file_and_nobody_else_one(run: Any) -> None:
    ran = run(PROBE_WITHOUT_SCRATCH)
    assert (ran.result, ran.refusals) == (None, [])
    assert list(ran.outside.iterdir()) == []
    assert {notice["action"] for notice in ran.notices} == {"process"}
    ran = run("import tempfile\ndef main():\n    tempfile.tempdir = str(outside)\n    return attempt(tempfile.NamedTemporaryFile)\n")
    assert [refusal["action"] for refusal in ran.refusals] == ["write"]


def test_bytecode_is_written(run: Any) -> None:
    ran = run("def main():\n    import fresh.module\n", files={"fresh/module.py": "x = 1", "fresh/__init__.py": ""})
    assert len(list(ran.agent.parent.glob("fresh/__pycache__/*.pyc"))) == 2
    assert (ran.refusals, ran.notices) == ([], [])


SDKS = """
import json
def main():
    import asyncio, ctypes, urllib3
    import anthropic, httpx, httpx2, openai

    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=reply))
    client = openai.OpenAI(api_key="k", base_url="http://model.invalid/v1", http_client=openai.DefaultHttpxClient(transport=transport))
    first = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}]).choices[0].message.content

    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=message))
    client = anthropic.Anthropic(api_key="k", http_client=anthropic.DefaultHttpxClient(transport=transport))
    second = client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}]).content[0].text

    async def agent():
        client = openai.AsyncOpenAI(api_key="k", base_url="http://model.invalid/v1",
            http_client=openai.DefaultAsyncHttpxClient(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json=reply))))
        return (await client.chat.completions.create(model="m", messages=[])).choices[0].message.content
    return [first, second, asyncio.run(agent())]
"""


def test_model_sdks_import_and_call(run: Any) -> None:
    ran = run(SDKS, mode="process")
    assert ran.result == ["hello"] * 3
    assert ran.refusals == []


TELEMETRY_AGENT = """
import socket
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult

class Own(SpanExporter):
    def export(self, spans):
        try:
            socket.create_connection(("127.0.0.1", port))
        except OSError:
            return SpanExportResult.FAILURE

def main():
    provider = TracerProvider()
    for host in ("127.0.0.1", "collector.invalid"):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"http://{host}:{port}/v1/traces", timeout=0.2)))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=0.2)))
    provider.add_span_processor(SimpleSpanProcessor(Own()))
    with provider.get_tracer("agent").start_as_current_span("step"):
        pass
    provider.shutdown()
    before = guard.telemetry_dropped
    with provider.get_tracer("agent").start_as_current_span("tool"):
        said = attempt(socket.create_connection, ("127.0.0.1", port))
    return [before, said, guard.telemetry_dropped - before]
"""


def test_exporters_are_dropped_and_counted(run: Any, witness: Any) -> None:
    ran = run(TELEMETRY_AGENT)
    before, said, after = ran.result
    assert before >= 4
    assert (said, after) == ("OutsideActionRefused", 0)
    assert (ran.attempts, ran.notices) == (1, [])
    assert not witness.visited()


VENDORS = [
    ("sentry_sdk.transport", "_send_request", True),
    ("posthog.request", "batch_post", True),
    ("posthog.request", "flags", False),
    ("posthog.requests", "batch_post", False),
    ("langsmith._internal._background_thread", "tracing_control_thread_func", True),
    ("langsmith.run_helpers", "wrapper", False),
    ("agents.tracing.processors", "export", True),
    ("opentelemetry_exporter.mine", "export", False),
]


def test_vendors_by_caller(run: Any, witness: Any) -> None:
    files: dict[str, str] = {}
    for module, function, _ in VENDORS:
        name = f"site-packages/{module.replace('.', '/')}.py"
        files[name] = files.get(name, "import socket\n") + f"def {function}(port): socket.create_connection(('127.0.0.1', port))\n"
    ran = run(
        f"""
        import importlib, sys
        sys.path.insert(0, str(scratch.parent / "site-packages"))
        def main():
            said = []
            for module, function, _ in {VENDORS}:
                before = guard.telemetry_dropped
                said.append([attempt(getattr(importlib.import_module(module), function), port), guard.telemetry_dropped - before])
            return said
        """,
        files=files,
    )
    assert ran.result == [["ConnectionRefusedError", 1] if drop else ["OutsideActionRefused", 0] for _, _, drop in VENDORS]
    assert not witness.visited()


def test_telemetry_hosts_and_threads_after_the_end(run: Any, witness: Any) -> None:
    ran = run(
        """
        import socket, threading
        from spanreplay.replay.isolation.guard import Guard
        def main():
            watched = Guard(scratch=scratch, telemetry_hosts=lambda host, number: (host, number) == ("127.0.0.1", port))
            said, go = [], threading.Event()
            def late():
                go.wait(30)
                said.append(attempt(socket.create_connection, ("127.0.0.1", port)))
                said.append(attempt(socket.getaddrinfo, "example.invalid", port))
            with watched.armed():
                said.append(attempt(socket.create_connection, ("127.0.0.1", port)))
                thread = threading.Thread(target=late)
                thread.start()
            go.set(); thread.join()
            return [said, watched.telemetry_dropped, watched.attempts]
        """,
        mode="off",
    )
    assert ran.result == [["ConnectionRefusedError", "ok", "OutsideActionRefused"], 1, 1]
    assert witness.visited()


def test_environment_leads_to_scratch(run: Any) -> None:
    ran = run("def main():\n    import tempfile\n    return [tempfile.gettempdir(), guard.environment()]\n")
    assert ran.result[0] == str(ran.scratch)
    assert set(ran.result[1].values()) == {str(ran.scratch)}
    assert {"TMPDIR", "SQLITE_TMPDIR"} <= set(ran.result[1])


_ASKS = "import subprocess\n"
_GIT = """def {name}():
    try:
        return subprocess.check_output(["git", "rev-parse", "HEAD"])
    except OSError as error:
        return type(error).__name__
"""
LOOKS = [
    ("logfire._internal.config", "get_git_revision_hash", True),
    ("logfire._internal.config", "other", False),
    ("sentry_sdk.utils", "get_git_revision", True),
    ("langsmith.env._git", "exec_git", True),
    ("langsmith.client", "exec_git", False),
    ("joblib.externals.loky.backend.context", "_count_physical_cores", True),
    ("dspy.clients.model_metadata", "_load", True),
    ("dspy.clients.lm", "_load", False),
    ("somebody", "get_git_revision", False),
]


def test_packages_that_look_at_the_machine(run: Any) -> None:
    files: dict[str, str] = {}
    for module, function, _ in LOOKS:
        name = f"site-packages/{module.replace('.', '/')}.py"
        files[name] = files.get(name, _ASKS) + _GIT.format(name=function)
        parts = module.split(".")[:-1]
        files.update({f"site-packages/{'/'.join(parts[: depth + 1])}/__init__.py": "" for depth in range(len(parts))})
    ran = run(
        f"""
        import importlib, sys
        sys.path.insert(0, str(scratch.parent / "site-packages"))
        def main():
            said = []
            for module, function, _ in {LOOKS}:
                try:
                    said.append(getattr(importlib.import_module(module), function)())
                except BaseException as error:
                    said.append(type(error).__name__)
            return said
        """,
        files=files,
    )
    assert ran.result == ["PermissionError" if look else "OutsideActionRefused" for _, _, look in LOOKS]
    assert [notice["target"] for notice in ran.notices] == ["git rev-parse HEAD"] * sum(look for _, _, look in LOOKS)
    assert ran.attempts == sum(not look for _, _, look in LOOKS)


def test_a_probe_through_a_package_that_wraps_popen(run: Any) -> None:
    wrapper = """
    import subprocess
    original = subprocess.Popen.__init__
    def sentry_patched_popen_init(self, *args, **kwargs):
        return original(self, *args, **kwargs)
    subprocess.Popen.__init__ = sentry_patched_popen_init
    """
    ran = run(
        """
        import platform, subprocess, sys
        sys.path.insert(0, str(scratch.parent / "site-packages"))
        def main():
            import sentry_sdk.integrations.stdlib
            return [attempt(platform.processor), attempt(subprocess.run, ["true"])]
        """,
        files={"site-packages/sentry_sdk/integrations/stdlib.py": wrapper},
    )
    assert ran.result == ["ok", "OutsideActionRefused"]


def test_the_agents_own_git_is_an_attempt_whatever_its_function_is_called(run: Any) -> None:
    ran = run(
        "import subprocess\n" + _GIT.format(name="get_git_revision_hash") + "def main():\n    return attempt(get_git_revision_hash)\n"
    )
    assert ran.result == "OutsideActionRefused"


def test_logfire_is_configured_in_a_replay(run: Any) -> None:
    pytest.importorskip("logfire")
    ran = run(
        """
        import warnings
        def main():
            import logfire
            warnings.simplefilter("ignore")
            logfire.configure(send_to_logfire=False, console=False)
            with logfire.span("alive"):
                return attempt(logfire.shutdown)
        """
    )
    assert ran.result == "ok"
    assert ran.attempts == 0
    assert [notice["target"] for notice in ran.notices if "git" in notice["target"]] == ["git rev-parse HEAD"]


def test_tables_name_modules_not_whole_vendors() -> None:
    assert all("." in name for name in LIBRARY_PROBES if LIBRARY_PROBES[name])
    assert all(functions for functions in LIBRARY_PROBES.values())
    assert not set(WRAPPERS) & {*PROBES, *TELEMETRY}
    assert all("." in name and "instrumentation" not in name for name in TELEMETRY)
    assert set(PROBES) <= {*sys.stdlib_module_names, "ctypes.util", "multiprocessing.resource_tracker"}
