"""``replay``: the document, and a command re-executed from a run."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.runs.spans import chat, fixture, span
from spanreplay.spans.record import SpanRecord
from support import nursery
from support.command_line import CommandLine

AGENT = """
import sys
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    open("looked", "a").write("x")
    return {"x": x}

with agent_run("looker", input="q") as run:
    run.output = look(int(sys.argv[1]))
print("found", run.output)
sys.exit(int(sys.argv[2]))
"""

RUN = [
    "run_id", "trace_ids", "session_id", "agent", "started_ns", "ended_ns", "outcome", "grade", "grade_reasons", "definition", "input",
    "output", "artifacts", "versions", "steps", "unclassified_spans", "orphan_spans", "behaviour",
]  # fmt: skip
STEP = [
    "seq", "kind", "name", "call_id", "span_id", "trace_id", "parent_seq", "requested_by", "attempt", "retry_of", "agent", "input",
    "output", "outcome", "error", "usage", "effect", "action_id", "decision", "target", "resources", "versions", "started_ns", "ended_ns",
    "overlaps", "grade", "dialect",
]  # fmt: skip
VERSIONS = ["prompt", "tools", "model", "skills", "code", "dependencies"]
KINDS = {"model_call", "tool_call", "agent", "handoff", "retrieval", "memory", "decision", "mcp", "io", "human"}


def checked(document: object) -> None:
    """A document of ``replay --json`` has the keys it has always had, in their order, and values of their types."""
    assert isinstance(document, dict)
    assert [k for k in document if k != "replay"] == ["schema", "source", "runs"]
    assert document["schema"] == 1
    assert list(document["source"]) == ["format", "spans", "fidelity"]
    assert all(list(entry) == ["code", "detail", "spans", "advice"] for entry in document["source"]["fidelity"])
    for run in document["runs"]:
        assert list(run) == RUN
        assert list(run["agent"]) == ["name", "version"]
        assert list(run["versions"]) == VERSIONS
        assert all(list(reason) == ["code", "step", "detail"] for reason in run["grade_reasons"])
        assert isinstance(run["started_ns"], str)
        assert run["ended_ns"] is None or isinstance(run["ended_ns"], str)
        assert [step["seq"] for step in run["steps"]] == list(range(1, len(run["steps"]) + 1))
        for step in run["steps"]:
            assert list(step) == STEP
            assert step["kind"] in KINDS
            assert isinstance(step["started_ns"], str)
            if step["kind"] == "model_call":
                assert set(step["input"]) <= {"messages", "system", "tools", "params"}
                assert step["output"] is None or set(step["output"]) <= {"messages", "finish"}
            elif step["kind"] == "tool_call":
                assert list(step["input"]) == ["arguments"]
                assert step["output"] is None or list(step["output"]) == ["result"]


def test_the_document_of_a_recorded_run(demo: CommandLine) -> None:
    checked(demo("replay", "--json").json)


def test_the_document_of_a_trace_of_others(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", *fixture("forecast.json"))
    document = spanreplay("replay", path, "--json").json
    checked(document)
    assert document["source"] == {"format": "otlp-json", "spans": 5, "fidelity": []}


def test_an_absent_value_has_its_reason(spanreplay: CommandLine) -> None:
    (run,) = spanreplay("replay", spanreplay.file("t.json", chat(1, content=False)), "--json").json["runs"]
    assert run["grade"] == "structure"
    assert run["grade_reasons"]


def test_rebuilt_only_is_said_and_no_code_runs(spanreplay: CommandLine) -> None:
    done = spanreplay("replay", spanreplay.file("t.json", chat(1)))
    assert (done.code, done.err) == (0, "rebuilt only, no code was run (1 span, 1 run)\n")


@pytest.mark.parametrize(("grade", "code"), [("exact", 125), ("semantic", 0), ("structure", 0), ("incomplete", 0)])
def test_a_grade_may_be_required(spanreplay: CommandLine, grade: str, code: int) -> None:
    done = spanreplay("replay", spanreplay.file("t.json", chat(1)), "--require", grade, "-q")
    assert done.code == code
    assert ("the grade exact is required; found semantic" in done.err) is bool(code)


# ---- re-execution: real processes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``agent.py`` and the store it was recorded into."""
    folder = tmp_path_factory.mktemp("looked")
    (folder / "agent.py").write_text(AGENT)
    done = run(folder, "record", "--", sys.executable, "agent.py", "1", "0")
    assert done.returncode == 0, done
    return folder


def run(folder: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return nursery.spanreplay(*arguments[:1], "--store", folder / "store", *arguments[1:], folder=folder, text=text)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["1", "0"], 0, "0 differences"),
        (["2", "0"], 1, "difference at step 1: tool_call look"),
        (["1", "5"], 1, "exit code"),
    ],
)
def test_the_exit_code_is_the_result(looked: Path, arguments: list[str], code: int, says: str) -> None:
    done = run(looked, "replay", "last", "-v", "--", sys.executable, "agent.py", *arguments)
    assert done.returncode == code, done
    assert says in done.stdout
    assert "1 Python process took part" in done.stderr
    assert (looked / "looked").read_text() == "x", "the tool ran while recording only"


def test_json_stays_one_document_whatever_the_command_prints(looked: Path) -> None:
    done = run(looked, "replay", "last", "--json", "--", sys.executable, "agent.py", "1", "0")
    document = json.loads(done.stdout)
    checked(document)
    assert (document["replay"]["equal"], document["replay"]["exit_code"], document["replay"]["command_exit_code"]) == (True, 0, 0)
    assert "found {'x': 1}" in done.stderr


def test_rerun_shows_the_command_and_asks(looked: Path) -> None:
    done = run(looked, "replay", "--rerun", text="n\n")
    assert done.returncode == 2
    assert f"recorded command: {sys.executable} agent.py 1 0" in done.stderr
    assert "not run; --yes runs it without asking" in done.stderr
    assert run(looked, "replay", "--rerun").returncode == 2, "nobody to ask"
    again = run(looked, "replay", "--rerun", "--yes")
    assert (again.returncode, "0 differences" in again.stdout) == (0, True)


def test_rerun_is_for_runs_of_the_own_store(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1))
    done = spanreplay("replay", path, "--rerun", "--yes")
    assert done.code == 2
    assert "--rerun takes runs of your own store only" in done.err
    spanreplay("import", path)
    assert "--rerun takes runs of your own store only" in spanreplay("replay", "--rerun", "--yes").err, "imported is not recorded"


def test_a_command_without_python_cannot_be_judged(looked: Path) -> None:
    done = run(looked, "replay", "last", "--", "true")
    assert done.returncode == 125, done
    assert "nothing was replayed" in done.stdout
    assert "no Python process reported in: true is no Python program" in done.stderr


def test_a_command_that_is_not_there(looked: Path) -> None:
    done = run(looked, "replay", "last", "--", "no-such-program")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-program: No such file or directory; what stands after -- is run as it is, without a shell" in done.stderr


# ---- a trace of others ---------------------------------------------------------------------------------------------


def of_others(dropped: int) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.arguments": '{"x": 1}',
        "gen_ai.tool.call.result": '{"x": 7}',
    }
    return span(1, name="execute_tool look", attributes=attributes, dropped_attributes=dropped)


@pytest.mark.parametrize(
    ("dropped", "options", "code", "says"),
    [
        (0, [], 0, "1 of 1 recorded steps answered a call, found by their meaning"),
        (1, [], 125, "--accept-incomplete lets it answer with what there is"),
        (1, ["--accept-incomplete"], 0, "the record is cut short and is judged as far as it goes"),
    ],
)
def test_a_trace_of_others_answers_by_meaning(
    looked: Path, spanreplay: CommandLine, dropped: int, options: list[str], code: int, says: str
) -> None:
    path = spanreplay.file("t.json", of_others(dropped))
    done = run(looked, "replay", str(path), *options, "--", sys.executable, "agent.py", "1", "0")
    assert done.returncode == code, done
    assert says in done.stdout
    assert ("found {'x': 7}" in done.stdout) is (code == 0)
    assert (looked / "looked").read_text() == "x", "the tool ran while recording only"


def test_a_command_that_fails_by_itself_says_so_and_is_equal(looked: Path, spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", of_others(0))
    done = run(looked, "replay", str(path), "--", sys.executable, "agent.py", "1", "5")
    assert (done.returncode, "the command itself exited with 5" in done.stderr) == (0, True), done


def test_traces_that_are_joined_answer_as_the_one_run_that_they_are(looked: Path, spanreplay: CommandLine) -> None:
    whole = of_others(0)
    shared = {**whole.attributes, "gen_ai.conversation.id": "c"}
    asked = dataclasses.replace(whole, trace_id="b" * 32, start_ns=5, attributes={**shared, "gen_ai.tool.call.arguments": '{"x": 2}'})
    path = spanreplay.file("t.json", dataclasses.replace(whole, attributes=shared), asked)
    done = run(looked, "replay", str(path), "--join", "conversation", "--", sys.executable, "agent.py", "1", "0")
    assert (done.returncode, "found {'x': 7}" in done.stdout) == (1, True), done
    assert "1 of 2 recorded steps answered a call" in done.stdout
