"""Start-up without code changes: every Python process of a recorded command, and nothing else, records."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spanreplay.recording import child_env, child_environment, finish_command
from spanreplay.recording.bootstrap import is_helper
from spanreplay.recording.children import SITE, with_site
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import SpanRecord
from spanreplay.store.store import Store

AGENT = """
from spanreplay.instrumentation import agent_run, tool
@tool
def brew(kind):
    return kind
with agent_run("barista"):
    brew("green")
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SPANREPLAY_", "OTEL_")) or name == "TRACEPARENT"]:
        monkeypatch.delenv(name)


def kept(store: Path) -> list[SpanRecord]:
    with Store.open(store, create=True) as opened:
        opened.compact()
        return list(opened.traces(opened.stale_traces()))


def script(folder: Path, text: str, name: str = "agent.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def record(store: Path, *command: str, **extra: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    environment = child_environment("c" * 32, "d" * 32, store, "record", extra)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finish_command(environment, done.returncode)
    return done, environment


def test_a_plain_script_is_recorded_and_behaves_as_before(tmp_path: Path) -> None:
    store = tmp_path / "store"
    done, environment = record(store, sys.executable, script(tmp_path, AGENT + "import sys\nprint('out')\nsys.exit(7)\n"))
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "")
    spans = {span.name: span for span in kept(store)}
    assert set(spans) == {"command agent.py", "invoke_agent barista", "execute_tool brew"}
    root = spans["command agent.py"]
    assert (root.attributes[names.RUN_ID], root.attributes[names.RUN_EXIT_CODE]) == ("d" * 32, 7)
    assert root.trace_id == environment["TRACEPARENT"].split("-")[1]
    assert root.end_ns is not None
    assert {span.attributes[names.RUN_COMMAND_ID] for span in spans.values()} == {"c" * 32}


def test_a_script_that_starts_and_stops_recording_itself_is_recorded_once(tmp_path: Path) -> None:
    text = (
        f"from spanreplay import recording\nrecording.start(store={str(tmp_path / 'other')!r})\n{AGENT}\nrecording.stop()\nbrew('late')\n"
    )
    record(tmp_path / "store", sys.executable, script(tmp_path, text))
    assert [span.name for span in kept(tmp_path / "store")].count("execute_tool brew") == 2
    assert not (tmp_path / "other").exists()


def test_a_sitecustomize_that_was_there_still_runs(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import os\nos.environ['THEIRS'] = __file__\n")
    text = "import os, sitecustomize\nprint(os.environ['THEIRS'] == sitecustomize.__file__)\n"
    environment = {**child_environment("c" * 32, "d" * 32, tmp_path / "store", "record"), "PYTHONPATH": with_site(str(theirs))}
    done = subprocess.run([sys.executable, script(tmp_path, text)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_an_interpreter_without_spanreplay_runs_as_before_and_leaves_a_note(tmp_path: Path) -> None:
    store = tmp_path / "store"
    done, _ = record(store, sys._base_executable, "-c", "print('out')")  # type: ignore[attr-defined]
    if sys._base_executable == sys.executable:  # type: ignore[attr-defined]
        pytest.skip("the tests do not run in a virtual environment, so there is no interpreter without spanreplay")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")
    (note,) = (store / "reports").iterdir()
    assert json.loads(note.read_text())["executable"].startswith("/")
    assert note.name.startswith("c" * 32)


def test_a_replay_never_goes_on_where_spanreplay_is_missing(tmp_path: Path) -> None:
    if sys._base_executable == sys.executable:  # type: ignore[attr-defined]
        pytest.skip("the tests do not run in a virtual environment, so there is no interpreter without spanreplay")
    environment = child_environment("c" * 32, "d" * 32, tmp_path, "replay")
    done = subprocess.run([sys._base_executable, "-c", "print('acted')"], env=environment, capture_output=True, text=True, check=False)  # type: ignore[attr-defined]
    assert (done.returncode, done.stdout) == (125, "")
    assert "not installed in" in done.stderr


def test_a_replay_never_goes_on_where_the_installed_spanreplay_is_another_one(tmp_path: Path) -> None:
    installed = tmp_path / "spanreplay-0.0.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: spanreplay\nVersion: 0.0.1\n")
    (installed / "entry_points.txt").write_text("[spanreplay_bootstrap]\nreplay = spanreplay.replay.moved:start\n")
    environment = {**child_environment("c" * 32, "d" * 32, tmp_path, "replay"), "PYTHONPATH": with_site(str(tmp_path))}
    done = subprocess.run([sys.executable, "-c", "print('acted')"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "No module named 'spanreplay.replay.moved'; install it again" in done.stderr


PARENT = """
import os, subprocess, sys
from spanreplay.instrumentation import agent_run, tool
@tool
def delegate():
    return subprocess.run([sys.executable, sys.argv[1]], check=True).returncode
with agent_run("boss"):
    delegate()
"""
CHILD = """
from spanreplay.instrumentation import tool
@tool
def brew(kind):
    return kind
brew("green")
"""


def test_a_child_process_goes_on_with_the_run_and_the_trace(tmp_path: Path) -> None:
    store = tmp_path / "store"
    child = script(tmp_path, CHILD, "child.py")
    done, _ = record(store, sys.executable, script(tmp_path, PARENT), child)
    assert (done.returncode, done.stderr) == (0, "")
    spans = {span.name: span for span in kept(store)}
    assert set(spans) == {"command agent.py", "invoke_agent boss", "execute_tool delegate", "execute_tool brew"}
    brew, delegate = spans["execute_tool brew"], spans["execute_tool delegate"]
    assert (brew.trace_id, brew.parent_span_id) == (delegate.trace_id, delegate.span_id)
    assert brew.attributes[names.RUN_ID] == delegate.attributes[names.RUN_ID]
    assert str(brew.attributes[names.STEP_PATH]).startswith("tool_call:delegate#0/~process#0/")
    assert brew.attributes[names.PROCESS_ID] != delegate.attributes[names.PROCESS_ID]


def test_multiprocessing_helpers_do_not_record(tmp_path: Path) -> None:
    text = """
import multiprocessing as mp
from spanreplay.instrumentation import tool
@tool
def brew(kind):
    return kind
if __name__ == "__main__":
    context = mp.get_context("spawn")
    process = context.Process(target=brew, args=("green",))
    process.start()
    process.join()
"""
    store = tmp_path / "store"
    done, _ = record(store, sys.executable, script(tmp_path, text))
    assert (done.returncode, done.stderr) == (0, "")
    (brew,) = (span for span in kept(store) if span.name == "execute_tool brew")
    assert brew.attributes[names.RUN_ID] == "d" * 32


@pytest.mark.parametrize(
    ("arguments", "helper"),
    [
        (["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"], True),
        (["python", "-s", "-c", "from multiprocessing.forkserver import main; main(1)"], True),
        (["python", "/venv/bin/opentelemetry-instrument", "python", "agent.py"], True),
        (["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"], False),
        (["python", "agent.py", "from", "opentelemetry-instrument"], False),
    ],
)
def test_helpers_are_known_by_their_command_line(arguments: list[str], helper: bool) -> None:
    assert is_helper(arguments) is helper


# ---- opentelemetry-instrument ------------------------------------------------------------------------------------

TRACED = (
    AGENT
    + """
from opentelemetry import trace
with trace.get_tracer("theirs").start_as_current_span("boil"):
    pass
"""
)
INSTRUMENT = Path(sys.executable).with_name("opentelemetry-instrument")


@pytest.mark.skipif(not INSTRUMENT.exists(), reason="needs opentelemetry-distro")
@pytest.mark.parametrize("under", ["record", "alone"])
def test_under_opentelemetry_instrument(tmp_path: Path, under: str) -> None:
    store = tmp_path / "store"
    settings = {"OTEL_TRACES_EXPORTER": "duckdb", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    command = [str(INSTRUMENT), sys.executable, script(tmp_path, TRACED)]
    if under == "record":
        done, _ = record(store, *command, **settings)
    else:
        environment = {**os.environ, **settings, "SPANREPLAY_STORE": str(store)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = sorted(span.name for span in kept(store))
    assert found == ["boil", "command agent.py", "execute_tool brew", "invoke_agent barista"]


@pytest.mark.skipif(not INSTRUMENT.exists(), reason="needs opentelemetry-distro")
def test_opentelemetry_instrument_without_our_exporter_records_nothing(tmp_path: Path) -> None:
    settings = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    environment = {**os.environ, **settings, "SPANREPLAY_STORE": str(tmp_path / "store")}
    command = [str(INSTRUMENT), sys.executable, script(tmp_path, TRACED)]
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not (tmp_path / "store").exists()


# ---- environments ------------------------------------------------------------------------------------------------


def test_the_environment_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/a", SITE]))
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-00")
    monkeypatch.setenv("SPANREPLAY_PLACE", "1:~x")
    made = child_environment("c" * 32, "d" * 32, tmp_path, "record", {"EXTRA": "1"})
    assert made["PYTHONPATH"] == os.pathsep.join([SITE, "/a"])
    assert made["TRACEPARENT"].startswith(f"00-{'a' * 32}-")
    assert made["TRACEPARENT"].endswith("-00")
    assert made["SPANREPLAY_COMMAND_ROOT"].endswith("b" * 16)
    assert "SPANREPLAY_PLACE" not in made
    assert json.loads(made["SPANREPLAY_REDACTION"])
    assert (made["EXTRA"], made["SPANREPLAY_BOOTSTRAP"], made["SPANREPLAY_STORE"]) == ("1", "record", str(tmp_path))


def test_a_clean_environment_gets_back_what_its_processes_need(monkeypatch: pytest.MonkeyPatch) -> None:
    assert child_env({"A": "1"}) == {"A": "1"}
    monkeypatch.setenv("SPANREPLAY_BOOTSTRAP", "record")
    monkeypatch.setenv("SPANREPLAY_STORE", "/s")
    made = child_env({"A": "1", "PYTHONPATH": "/mine"})
    assert made == {"A": "1", "PYTHONPATH": os.pathsep.join([SITE, "/mine"]), "SPANREPLAY_BOOTSTRAP": "record", "SPANREPLAY_STORE": "/s"}


def test_the_store_of_a_command_does_not_move_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert child_environment("c" * 32, "d" * 32, Path("s"), "record")["SPANREPLAY_STORE"] == str(tmp_path / "s")
