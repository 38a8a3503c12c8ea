"""Recording a process: nothing lost, nothing doubled, and the application's own telemetry and exceptions as they were."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.util._once import Once

from spanreplay import recording
from spanreplay.boundary.session import Session, activate, deactivate
from spanreplay.exporter import DuckDBLogExporter
from spanreplay.exporter import environment_variables as env
from spanreplay.instrumentation import agent_run, tool
from spanreplay.recording import control, definition, providers
from spanreplay.recording.exits import ExitWatch
from spanreplay.recording.place import Place, find_place
from spanreplay.replay.rebuilding.runs import index
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import SpanRecord
from spanreplay.store.store import Store

BIG = "tea " * 40_000


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No provider, none of our variables, and nothing recording, before and after."""
    for name in [name for name in os.environ if name.startswith(("SPANREPLAY_", "OTEL_")) or name == "TRACEPARENT"]:
        monkeypatch.delenv(name)
    for kind in providers._KINDS:  # providers of other tests that no collection has taken yet
        kind.known.clear()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    yield
    recording.stop()


def kept(store: Path) -> list[SpanRecord]:
    with Store.open(store, create=True) as opened:
        opened.compact()
        return list(opened.traces(opened.stale_traces()))


def steps(store: Path) -> dict[str, SpanRecord]:
    """Spans by name; fails where a name comes twice. The command's own span is left out."""
    spans = [span for span in kept(store) if names.RUN_COMMAND not in span.attributes]
    found = {span.name: span for span in spans}
    assert len(found) == len(spans)
    return found


@tool(effect="read")
def brew(kind: str) -> str:
    """Brew tea."""
    with trace.get_tracer("kettle").start_as_current_span("boil", attributes={"degrees": 95}):
        pass
    return BIG


def agent() -> Any:
    with agent_run("barista", input="tea") as run:
        run.output = brew("green")
        return run.output


def whole(store: Path, *, foreign: bool = True) -> None:
    found = steps(store)
    assert set(found) == {"invoke_agent barista", "execute_tool brew"} | ({"boil"} if foreign else set())
    call = found["execute_tool brew"]
    assert json.loads(str(call.attributes[names.GEN_AI_TOOL_CALL_RESULT])) == BIG
    assert call.attributes[names.STEP_KIND] == "tool_call"
    assert call.parent_span_id == found["invoke_agent barista"].span_id
    assert all(span.end_ns is not None for span in found.values())
    assert len({span.attributes[names.RUN_ID] for span in found.values()}) == 1
    if foreign:
        assert found["boil"].parent_span_id == call.span_id


# ---- the application's providers ---------------------------------------------------------------------------------


def test_without_any_provider(tmp_path: Path) -> None:
    recording.start(store=tmp_path)
    assert agent() == BIG
    recording.stop()
    whole(tmp_path, foreign=False)
    assert trace._TRACER_PROVIDER is None


@pytest.mark.parametrize("when", ["before", "after", "private"])
@pytest.mark.parametrize("options", [{}, {"span_limits": SpanLimits(max_attributes=8, max_attribute_length=10)}], ids=["plain", "limits"])
def test_with_a_provider_of_the_application(tmp_path: Path, when: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    sent = InMemorySpanExporter()

    def provide() -> TracerProvider:
        provider = TracerProvider(shutdown_on_exit=False, **options)
        provider.add_span_processor(SimpleSpanProcessor(sent))
        trace.set_tracer_provider(provider)
        return provider

    if when == "private":
        provider = TracerProvider(shutdown_on_exit=False, **options)
        provider.add_span_processor(SimpleSpanProcessor(sent))
        recording.start(store=tmp_path, tracer_provider=provider)
        trace.set_tracer_provider(provider)
    elif when == "before":
        provide()
        recording.start(store=tmp_path)
    else:
        recording.start(store=tmp_path)
        provide()
    assert recording.status().providers == 1
    agent()
    recording.stop()
    whole(tmp_path)
    assert sorted(span.name for span in sent.get_finished_spans()) == ["boil", "execute_tool brew", "invoke_agent barista"]
    theirs = next(span for span in sent.get_finished_spans() if span.name == "boil")
    assert dict(theirs.attributes or {}) == {"degrees": 95}
    assert "Attributes dict is full" not in caplog.text


@pytest.mark.parametrize("limit", [0, 1, 2, 5, 8, 16])
def test_a_span_gets_what_it_has_room_for_and_the_record_all(tmp_path: Path, limit: int, caplog: pytest.LogCaptureFixture) -> None:
    sent = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=limit))
    provider.add_span_processor(SimpleSpanProcessor(sent))
    trace.set_tracer_provider(provider)

    @tool
    def steep() -> str:
        for number in range(limit // 4):
            trace.get_current_span().set_attribute(f"leaf.{number}", number)
        return BIG

    recording.start(store=tmp_path)
    with agent_run("barista"):
        steep()
    recording.stop()
    span = next(span for span in sent.get_finished_spans() if span.name == "execute_tool steep")
    attributes = span.attributes or {}
    assert span.dropped_attributes == 0
    assert {f"leaf.{number}" for number in range(limit // 4)} <= set(attributes)
    ours = [names.GEN_AI_OPERATION_NAME, names.STEP_KIND, names.GEN_AI_TOOL_NAME, names.RUN_ID]
    assert [name for name in attributes if not name.startswith("leaf.")][: (limit + 1) // 2][:4] == ours[: (limit + 1) // 2]
    assert (names.STEP_OUTCOME in attributes) == (limit > 1)
    assert caplog.text == ""
    kept_step = steps(tmp_path)["execute_tool steep"].attributes
    assert kept_step[names.STEP_OUTCOME] == "ok"
    assert json.loads(str(kept_step[names.GEN_AI_TOOL_CALL_RESULT])) == BIG
    assert {f"leaf.{number}" for number in range(limit // 4)} <= set(kept_step)


@pytest.mark.parametrize("use", ["set as global", "asked for a tracer", "asked for a tracer before"])
def test_with_a_provider_made_before_and_used_after(tmp_path: Path, use: str) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("early")
    recording.start(store=tmp_path)
    assert recording.status().providers == 0
    if use == "asked for a tracer":
        tracer = provider.get_tracer("theirs")
    else:
        trace.set_tracer_provider(provider)
        if use == "set as global":
            tracer = trace.get_tracer("theirs")
    assert recording.status().providers == 1
    tracer.start_span("seen").end()
    recording.stop()
    tracer.start_span("unseen").end()
    assert set(steps(tmp_path)) == {"seen"}


def test_a_fork_is_named_as_a_process_that_the_agent_starts(tmp_path: Path) -> None:
    recording.start(store=tmp_path)
    with agent_run("barista"):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    recording.stop()
    untaped = json.loads(str(steps(tmp_path)["invoke_agent barista"].attributes[names.RUN_UNTAPED]))
    assert untaped == [{"what": "process started", "target": "(a copy of this process)"}]


def test_a_second_global_provider_is_refused_as_ever(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = TracerProvider(shutdown_on_exit=False), TracerProvider(shutdown_on_exit=False)
    recording.start(store=tmp_path)
    trace.set_tracer_provider(first)
    trace.set_tracer_provider(second)
    assert trace.get_tracer_provider() is first
    assert "Overriding of current TracerProvider is not allowed" in caplog.text
    assert recording.status().providers == 1


def test_with_a_sampler_that_takes_nothing(tmp_path: Path) -> None:
    trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False, sampler=ALWAYS_OFF))
    recording.start(store=tmp_path)
    agent()
    recording.stop()
    whole(tmp_path, foreign=False)


def test_with_the_sdk_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    recording.start(store=tmp_path)
    trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
    agent()
    recording.stop()
    whole(tmp_path, foreign=False)


class BrokenExporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise RuntimeError("their exporter is broken")


def test_with_a_broken_exporter_of_the_application(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(BrokenExporter()))
    trace.set_tracer_provider(provider)
    recording.start(store=tmp_path)
    assert agent() == BIG
    recording.stop()
    whole(tmp_path)


LOGFIRE = """
import sys, logfire
from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool
early = sys.argv[2] == "early"
if early:
    recording.start(store=sys.argv[1])
options = dict(send_to_logfire=False, console=False, inspect_arguments=False)
logfire.configure(**options)
logfire.configure(**options)
if not early:
    recording.start(store=sys.argv[1])
@tool
def brew(kind):
    with logfire.span("boil {kind}", kind=kind):
        return "hot"
with agent_run("barista"):
    brew("green")
"""


@pytest.mark.parametrize("order", ["early", "late"])
def test_with_logfire_configured_twice(tmp_path: Path, order: str) -> None:
    pytest.importorskip("logfire")
    script = tmp_path / "agent.py"
    script.write_text(LOGFIRE)
    run(script, tmp_path / "store", order, LOGFIRE_IGNORE_NO_CONFIG="1")
    found = steps(tmp_path / "store")
    assert set(found) == {"invoke_agent barista", "execute_tool brew", "boil {kind}"}
    assert found["boil {kind}"].parent_span_id == found["execute_tool brew"].span_id
    assert found["boil {kind}"].attributes["kind"] == "green"


@pytest.mark.parametrize("exporter", [True, False], ids=["our-exporter-too", "recorder-alone"])
def test_content_that_arrives_as_events_is_kept_once(tmp_path: Path, exporter: bool) -> None:
    recording.start(store=tmp_path)
    provider = LoggerProvider(shutdown_on_exit=False)
    if exporter:
        provider.add_log_record_processor(SimpleLogRecordProcessor(DuckDBLogExporter(tmp_path)))
    logger = provider.get_logger("theirs")
    with agent_run("barista"):
        logger.emit(LogRecord(event_name="gen_ai.user.message", body={"content": "tea"}))
        logger.emit(LogRecord(body="an ordinary line"))
    recording.stop()
    logger.emit(LogRecord(event_name="gen_ai.user.message", body="late")) if not exporter else None
    with Store.open(tmp_path) as opened:
        opened.compact()
        traces = opened.stale_traces()
        (log,) = opened.logs(traces)
        run_ids = {span.attributes[names.RUN_ID] for span in opened.traces(traces) if span.name == "invoke_agent barista"}
    assert log.body == {"content": "tea"}
    assert {log.attributes[names.RUN_ID]} == run_ids


# ---- starting and stopping ---------------------------------------------------------------------------------------


def test_stop_takes_everything_out_again(tmp_path: Path) -> None:
    def places() -> tuple[object, ...]:
        of_telemetry = (TracerProvider.__init__, TracerProvider.get_tracer, trace._set_tracer_provider, trace.set_tracer_provider)
        return (*of_telemetry, sys.excepthook, sys.exit, subprocess.Popen.__init__, os.system, dict(os.environ))

    before = places()
    provider = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(provider)
    for _ in range(2):
        recording.start(store=tmp_path)
        recording.start(store=tmp_path)
        assert len(provider._active_span_processor._span_processors) == 1
        recording.stop()
        recording.stop()
        assert not provider._active_span_processor._span_processors
        assert places() == before
    assert recording.status() == recording.Status(recording=False)
    agent()
    assert steps(tmp_path) == {}


def test_a_provider_made_while_recording_is_found_again_by_the_next_recording(tmp_path: Path) -> None:
    recording.start(store=tmp_path)
    provider = TracerProvider(shutdown_on_exit=False)  # never the global one
    recording.stop()
    recording.start(store=tmp_path)
    provider.get_tracer("theirs").start_span("later").end()
    recording.stop()
    assert set(steps(tmp_path)) == {"later"}


def test_status_counts(tmp_path: Path) -> None:
    recording.start(store=tmp_path, adapters="none")
    agent()
    found = recording.status()
    assert (found.recording, found.store, found.steps, found.dropped) == (True, tmp_path, 2, 0)
    assert "httpx" in found.adapters


def test_what_was_dropped_is_known_once_nothing_is_recorded_any_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    recording.start(store=tmp_path / "file" / "store", adapters="none")
    agent()
    before = recording.status().dropped
    recording.stop()
    assert recording.status().dropped >= before > 0
    recording.start(store=tmp_path / "store", adapters="none")
    agent()
    recording.stop()
    assert recording.status() == recording.Status(recording=False)


def test_another_store_while_recording_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recording.start(store=tmp_path / "a")
    recording.start(store=tmp_path / "b")
    assert recording.status().store == tmp_path / "a"
    assert "is not used" in caplog.text


def test_nothing_is_recorded_where_a_replay_is_on(tmp_path: Path) -> None:
    activate(Session(mode="replay", open_spans=False).root(None))
    try:
        recording.start(store=tmp_path)
        assert not recording.status().recording
    finally:
        deactivate()


@pytest.mark.parametrize(
    "wrong", [{"content": "all"}, {"run_per": "day"}, {"durability": "tape"}, {"redaction": "some"}, {"adapters": ["no-such-framework"]}]
)
def test_wrong_arguments_are_refused_by_name(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(wrong.values()))[0] if "adapters" in wrong else next(iter(wrong.values())))):
        recording.start(store=tmp_path, **wrong)
    assert not recording.status().recording


def test_wrong_variables_are_said_once_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(env, "_told", set())
    monkeypatch.setenv("SPANREPLAY_SPAN_CONTENT", "everything")
    monkeypatch.setenv("SPANREPLAY_STORE", str(tmp_path))
    for _ in range(2):
        recording.start()
        assert recording.status().store == tmp_path
        recording.stop()
    assert len([r for r in caplog.records if "everything" in r.getMessage()]) == 1


def test_session_and_user_come_from_the_environment_and_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREPLAY_SESSION", "s-1")
    monkeypatch.setenv("SPANREPLAY_USER", "ann")
    recording.start(store=tmp_path, session_attributes={"user.id": "bob"})
    agent()
    recording.stop()
    for span in kept(tmp_path):
        assert (span.attributes["session.id"], span.attributes["user.id"]) == ("s-1", "bob")


def test_attributes_of_a_later_start_are_on_the_steps_that_follow(tmp_path: Path) -> None:
    recording.start(store=tmp_path, session_attributes={"user.id": "bob"})
    agent()
    recording.start(store=tmp_path, session_attributes={"spanreplay.target": "production"})
    agent()
    recording.stop()
    steps = [span for span in kept(tmp_path) if "spanreplay.step.kind" in span.attributes]
    targets = [span.attributes.get("spanreplay.target") for span in sorted(steps, key=lambda span: span.start_ns)]
    half = len(targets) // 2
    assert targets == [None] * half + ["production"] * half
    assert half
    assert {span.attributes["user.id"] for span in steps} == {"bob"}


# ---- weather -----------------------------------------------------------------------------------------------------


def test_an_unwritable_store_leaves_the_agent_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    recording.start(store=tmp_path / "file" / "store")
    assert agent() == BIG

    class Mine(Exception):
        pass

    mine = Mine()

    @tool(effect="irreversible")
    def fail() -> None:
        raise mine

    with pytest.raises(Mine) as caught:
        fail()
    assert caught.value is mine
    assert recording.status().dropped >= 6
    told = [r for r in caplog.records if r.name.startswith("spanreplay") and r.levelno >= logging.WARNING]
    assert len(told) == 1
    recording.stop()
    assert len([r for r in caplog.records if r.name.startswith("spanreplay") and r.levelno >= logging.WARNING]) == 2  # how many, at the end


def test_a_loss_is_shown_by_the_run(tmp_path: Path) -> None:
    recording.start(store=tmp_path, adapters="none")
    assert control._current is not None
    with agent_run("told"):
        agent()
        control._current.recorder.failed("something")
        control._current.session.failed("something else")
    recording.stop()
    store = Store.open(tmp_path)
    store.compact()
    index(store)
    assert {(run.agent, run.grade, run.dropped) for run in store.find_runs()} == {("told", "incomplete", 2)}


# ---- the command -------------------------------------------------------------------------------------------------


def run(script: Path, store: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPANREPLAY_", "OTEL_"))}
    return subprocess.run(
        [sys.executable, str(script), str(store), *arguments], capture_output=True, text=True, env={**environment, **variables}, check=False
    )


def test_the_command_is_kept_with_its_definition(tmp_path: Path) -> None:
    recording.start(store=tmp_path)
    recording.stop()
    (root,) = kept(tmp_path)
    assert root.attributes[names.RUN_ROOT] is True
    assert root.attributes[names.RUN_COMMAND] is True
    assert root.end_ns is not None
    made = json.loads(str(root.attributes[names.RUN_DEFINITION]))
    assert made["argv"] == sys.orig_argv
    assert made["cwd"] == str(Path.cwd())
    assert made["versions"]["dependencies"]["count"] > 5
    assert str(root.attributes[names.RUN_DEFINITION_DIGEST]).startswith("sha256:")
    assert json.loads(str(root.attributes[names.RUN_REDACTION]))


@pytest.mark.parametrize(("ending", "code"), [("sys.exit(3)", 3), ("raise ValueError('boom')", 1), ("os.kill(os.getpid(), 9)", None)])
def test_how_a_process_ends_is_kept_where_it_can_be_known(tmp_path: Path, ending: str, code: int | None) -> None:
    script = tmp_path / "agent.py"
    script.write_text(f"import os, sys\nfrom spanreplay import recording\nrecording.start(store=sys.argv[1])\n{ending}\n")
    done = run(script, tmp_path / "store")
    (root,) = kept(tmp_path / "store")
    assert root.attributes.get(names.RUN_EXIT_CODE) == code
    assert (root.end_ns is None) == ("kill" in ending)
    assert done.returncode == (-9 if "kill" in ending else code or 0)
    assert ("ValueError: boom" in done.stderr) == ("boom" in ending)


@pytest.mark.parametrize(("status", "code"), [(None, 0), (0, 0), (3, 3), (-1, 255), ("no", 1), (True, 1)])
def test_exit_codes_are_those_of_the_operating_system(status: object, code: int) -> None:
    watch = ExitWatch()
    watch.install()
    try:
        with pytest.raises(SystemExit) as caught:
            sys.exit(status)  # type: ignore[arg-type]
    finally:
        watch.uninstall()
    assert caught.value.code is status
    assert watch.code == code


def test_the_commit_is_read_from_the_files_of_git(tmp_path: Path) -> None:
    sha = "0123456789" * 4
    inner = tmp_path / "deep" / "inner"
    inner.mkdir(parents=True)
    assert definition.commit(inner) is None or Path("/.git").exists()
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert definition.commit(inner) is None
    (git / "packed-refs").write_text(f"# pack-refs\n{sha} refs/heads/main\n")
    assert definition.commit(inner) == sha
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text("f" * 40 + "\n")
    assert definition.commit(inner) == "f" * 40
    (git / "HEAD").write_text(sha + "\n")
    assert definition.commit(inner) == sha


def test_secret_variables_stay_out_of_the_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic c2VjcmV0OnNlY3JldA==")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-" + "Q1w2E3r4" * 5)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    recording.start(store=tmp_path)
    recording.stop()
    made = json.loads(str(kept(tmp_path)[0].attributes[names.RUN_DEFINITION]))
    assert made["environment"]["PYTHONHASHSEED"] == "0"
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"c2VjcmV0" not in data
    assert b"Q1w2E3r4" not in data


def test_secrets_of_the_command_line_stay_out_of_everything(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(
        "import sys\nfrom spanreplay import recording\nfrom spanreplay.instrumentation import tool\n"
        "recording.start(store=sys.argv[1])\n"
        "@tool\ndef say(text: str) -> str:\n    return text + ' was said'\n"
        "say('the key is ' + sys.argv[2].partition('=')[2])\n"
    )
    store = tmp_path / "store"
    options = ["--api-key=CMDKEY123", "--token", "TOKEN9876", "http://me:PASSURL12@host/"]
    subprocess.run([sys.executable, script, store, *options], check=True)
    spans = {bool(span.attributes.get(names.RUN_COMMAND)): span for span in kept(store)}
    argv = json.loads(str(spans[True].attributes[names.RUN_DEFINITION]))["argv"]
    replacement = argv[3].removeprefix("--api-key=")
    assert replacement.startswith("[redacted:secret:")
    assert replacement in str(spans[False].attributes[names.GEN_AI_TOOL_CALL_ARGUMENTS])
    data = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert not [secret for secret in (b"CMDKEY123", b"TOKEN9876", b"PASSURL12") if secret in data]


# ---- fork and children -------------------------------------------------------------------------------------------

FORK = """
import os, sys
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool
trace.set_tracer_provider(TracerProvider())
recording.start(store=sys.argv[1])
@tool
def work(who):
    return who
with agent_run("forker"):
    work("before")
    pid = os.fork()
    work("child" if pid == 0 else "parent")
    if pid:
        os.waitpid(pid, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_records_into_a_journal_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(FORK)
    store = tmp_path / "store"
    done = run(script, store)
    assert done.returncode == 0, done.stderr
    assert len(list((store / "journal").iterdir())) == 2
    spans = kept(store)
    calls = {json.loads(str(span.attributes[names.GEN_AI_TOOL_CALL_RESULT])): span for span in spans if span.name == "execute_tool work"}
    assert set(calls) == {"before", "parent", "child"}
    assert calls["child"].attributes[names.STEP_PATH] == "~fork#0/tool_call:work#0"
    assert calls["parent"].attributes[names.STEP_PATH] == "tool_call:work#1"
    assert calls["child"].attributes[names.PROCESS_ID] != calls["parent"].attributes[names.PROCESS_ID]
    assert calls["child"].attributes[names.RUN_ID] == calls["parent"].attributes[names.RUN_ID]
    assert len([span for span in spans if span.name == "invoke_agent forker"]) == 1


def test_a_new_command_is_its_own_top() -> None:
    place = find_place({}, pid=1)
    assert place.top
    assert place.run_id == place.command_run
    assert len(place.trace_id) == 32


def test_a_child_is_at_the_place_where_it_was_started() -> None:
    top = find_place({}, pid=1)
    told = top.environment(1)
    child = find_place({**told, "SPANREPLAY_RUN_PATH": "~process#4", "SPANREPLAY_RUN_ID": "a" * 32}, pid=2)
    assert (child.path, child.run_id, child.command_run, child.top) == ("~process#4", "a" * 32, top.command_run, False)
    assert child.span_id == top.span_id
    # started past every seam, then past every seam again
    assert find_place(told, pid=3).path == "~process"
    assert find_place({**child.environment(2), "SPANREPLAY_RUN_PATH": "~process#4"}, pid=3).path == "~process#4/~process"
    # the same process running another program
    assert find_place(told, pid=1) == top
    assert find_place({**child.environment(2), "SPANREPLAY_RUN_PATH": "~process#4"}, pid=2).path == "~process#4"


def test_an_outer_trace_is_gone_on_with() -> None:
    place = find_place({"TRACEPARENT": f"00-{'a' * 32}-{'b' * 16}-01"}, pid=1)
    assert (place.trace_id, place.parent_span_id) == ("a" * 32, "b" * 16)


@pytest.mark.parametrize("text", ["", "x", "00-1-2-3", f"00-{'0' * 32}-{'b' * 16}-01", f"00-{'A' * 32}-{'b' * 16}-01"])
def test_a_damaged_traceparent_is_no_parent(text: str) -> None:
    assert find_place({"TRACEPARENT": text}, pid=1).parent_span_id is None


def test_a_place_survives_its_environment() -> None:
    place = Place(
        command_id="c" * 32,
        command_run="d" * 32,
        run_id="e" * 32,
        path="~a#0",
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_span_id="3" * 16,
    )
    assert find_place(place.environment(7), pid=7) == place


def test_a_provider_that_cannot_take_processors_is_left_alone(tmp_path: Path) -> None:
    recording.start(store=tmp_path, tracer_provider=object())
    assert providers.attached() == 0
