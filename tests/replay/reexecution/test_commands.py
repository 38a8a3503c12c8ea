"""Commands in a replayed command: answered, or run where they answer their own calls."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.reexecution.commands import is_python
from support import nursery

CHILD = """
import pathlib, sys
from spanreplay.instrumentation import agent_run, tool

@tool(effect="write")
def note(word):
    with open("notes", "a") as file:
        file.write(word + "\\n")
    return word.upper()

with agent_run("child", input=sys.argv[1]) as run:
    run.output = note(sys.argv[1])
print(run.output)
"""
LAUNCHER = """
import os, subprocess, sys

def run(*words, **options):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, **options).stdout.strip()

print(run(sys.executable, "child.py", "a"), run(sys.executable, "child.py", "b", env={"PATH": os.environ["PATH"]}))
print(run("sh", "-c", "echo ran >> notes; echo shell"), run(sys.executable, "-c", "open('notes', 'a').write('plain\\\\n'); print('plain')"))
print(run("sh", "-c", f"{sys.executable} child.py c"))
"""


def spanreplay(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return nursery.spanreplay(*arguments, folder=folder)


def test_programs_that_answer_their_own_calls_are_run_and_all_others_are_answered(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    recorded = spanreplay(tmp_path, "record", "--", sys.executable, "launcher.py")
    assert (recorded.returncode, recorded.stdout.split()) == (0, ["A", "B", "shell", "plain", "C"]), recorded.stderr
    notes = (tmp_path / "notes").read_text()
    assert notes.split() == ["a", "b", "ran", "plain", "c"]

    replayed = spanreplay(tmp_path, "replay", "last", "--json", "--", sys.executable, "launcher.py")
    told: dict[str, Any] = json.loads(replayed.stdout)["replay"]
    assert (replayed.returncode, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.stderr
    assert (tmp_path / "notes").read_text() == notes


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["/usr/bin/python3.11", "agent.py"], True),
        (["python", "-u", "-m", "agent"], True),
        ([sys.executable, "-c", "import S"], True),
        (["python3", "-I", "agent.py"], False),
        (["python3", "-uE", "agent.py"], False),
        (["python3", "agent.py", "-I"], True),
        (["bash", "-c", "python agent.py"], False),
        ([], False),
    ],
)
def test_only_a_python_with_the_start_up_shim_can_answer_its_calls(words: list[str], there: bool) -> None:
    assert is_python(words) is there
