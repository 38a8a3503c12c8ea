"""A run becomes a test in one command, which passes where the agent has not changed."""

import ast
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.runs.spans import chat
from pages.console import WITHOUT
from spanreplay.replay.making_tests import pytest_module
from spanreplay.replay.rebuilding.runs import build_runs
from support import nursery
from support.command_line import CommandLine

AGENT = """
import sys
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    raise LookupError(f"no {x}")

def answer(x):
    with agent_run("looker", input=x) as run:
        try:
            look(x)
        except LookupError as error:
            run.output = str(error)
        return run.output

if __name__ == "__main__":
    answer(sys.argv[1])
    answer("twice")
"""


def outcome(folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITHOUT.split(), "tests"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_a_bad_run_becomes_a_test_that_passes_until_the_agent_changes(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert nursery.spanreplay("record", "--", sys.executable, "agent.py", "tea", folder=tmp_path).returncode == 0
    line = ["export", "last~1", "--format", "pytest", "--call", "agent:answer", "-o", "tests/test_tea.py"]
    made = nursery.spanreplay(*line, folder=tmp_path)
    assert made.returncode == 0, made
    assert made.stderr == "tests/test_tea.py: run it with: pytest tests/test_tea.py\ntests/runs/tea.json: its recording\n"
    assert "run='" in (tmp_path / "tests" / "test_tea.py").read_text(), "one of the two runs of the command"

    done = outcome(tmp_path)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    (tmp_path / "agent.py").write_text(AGENT.replace("look(x)\n        except", "look('a ' + x)\n        except"))
    done = outcome(tmp_path)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout
    assert "difference at step 1: tool_call look" in done.stdout


def test_what_the_record_does_not_say_is_to_be_filled_in(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1))
    done = spanreplay("export", path, "--format", "pytest", "-o", "test_chat.py", "--json")
    assert (done.code, done.json["recording"]) == (0, "runs/chat.json")
    text = (spanreplay.folder / "test_chat.py").read_text()
    ast.parse(text)
    again = spanreplay("export", path, "--format", "pytest", "-o", "test_chat.py")
    assert (again.code, "is there already" in again.err) == (2, True)
    assert 'pytest.fail("fill in: ' in text
    assert json.loads((spanreplay.folder / "runs" / "chat.json").read_text())["resourceSpans"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "pytest"], "a test is written to a file"),
        (["--format", "pytest", "-o", "t.py", "--call", "os.system('x')"], "wanted MODULE:FUNCTION"),
        (["--call", "a:b"], "--call is for --format pytest"),
    ],
)
def test_wrong_use(spanreplay: CommandLine, arguments: list[str], says: str) -> None:
    done = spanreplay("export", spanreplay.file("t.json", chat(1)), *arguments)
    assert (done.code, says in done.err) == (2, True), done


def test_whatever_is_in_a_trace_the_test_is_python(tmp_path: Path) -> None:
    (run,) = build_runs([chat(1)])
    run = dataclasses.replace(run, agent_name='x"""\n\\import os\u202e', input={"q": "\u202e'"})
    module = pytest_module(tmp_path / "test_1-odd name.py", run, [run], call="a.b:c")
    tree = ast.parse(module.text)
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["test_1_odd_name"]
