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


LEFT = """
import asyncio, os, signal, subprocess, sys, tempfile
from spanreplay.instrumentation import agent_run

SLEEP = [sys.executable, "-uc", "import time; print('ready'); time.sleep(60)"]

async def cancelled():
    async def wait():
        process = await asyncio.create_subprocess_exec(*SLEEP, stdout=subprocess.PIPE)
        return await process.stdout.readline(), await process.stdout.read()
    try:
        await asyncio.wait_for(wait(), 0.5)
    except TimeoutError:
        return "cancelled"

with agent_run("starter") as run:
    server = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, text=True)
    led = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, start_new_session=True)
    told = [server.stdout.readline(), server.poll(), led.stdout.readline().decode()]
    os.killpg(os.getpgid(led.pid), signal.SIGTERM)
    told += [led.stdout.read().decode(), led.wait(), asyncio.run(cancelled())]
    with tempfile.TemporaryFile("w+") as file:
        file.write("log: ")
        file.flush()
        subprocess.run([sys.executable, "-c", "import sys; print('x' * 9, file=sys.stderr)"], stdout=file, stderr=subprocess.STDOUT)
        file.seek(0)
        told.append(file.read())
    print(told, flush=True)
server.terminate()
"""


def test_commands_left_running_stopped_as_a_group_and_writing_into_a_file_are_answered(tmp_path: Path) -> None:
    (tmp_path / "starter.py").write_text(LEFT)
    recorded = spanreplay(tmp_path, "record", "--", sys.executable, "starter.py")
    said = "['ready\\n', None, 'ready\\n', '', -15, 'cancelled', 'log: xxxxxxxxx\\n']\n"
    assert (recorded.returncode, recorded.stdout) == (0, said), recorded.stderr
    assert "cut short" not in recorded.stderr
    replayed = spanreplay(tmp_path, "replay", "last", "--json", "--", sys.executable, "starter.py")
    told: dict[str, Any] = json.loads(replayed.stdout)["replay"]
    assert (replayed.returncode, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.stderr
    assert said in replayed.stderr


IN_TEMPORARY = """
import os, shlex, subprocess, sys, tempfile
from spanreplay.instrumentation import agent_run

SAY = "import os, sys; print(len(sys.argv))"

def commands(path):
    folder = os.path.dirname(path)
    yield [sys.executable, "-c", SAY, path, f"--out={path}.txt"], {}
    yield f"{shlex.quote(sys.executable)} -c {shlex.quote(SAY)} {shlex.quote(path)}", {"shell": True}
    yield [sys.executable, "-c", SAY], {"cwd": folder}
    yield [sys.executable, "-c", SAY + "; sys.stdin.read()"], {"input": path}

with agent_run("writer") as run, tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(suffix=".json") as file:
    os.mkdir(f"{folder}/a b")
    for path in (file.name, f"{folder}/a b/task.py"):
        print([subprocess.run(words, capture_output=True, text=True, **how).stdout for words, how in commands(path)], flush=True)
"""


@pytest.mark.parametrize("beside", [False, True], ids=["elsewhere", "beside the temporary folder"])
def test_commands_on_temporary_files_are_as_recorded_though_a_replay_has_them_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, beside: bool
) -> None:
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir()
    if beside:
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "work" / "writer.py").write_text(IN_TEMPORARY)
    recorded = spanreplay(tmp_path / "work", "record", "--", sys.executable, "writer.py")
    assert (recorded.returncode, recorded.stdout.count("'")) == (0, 16), recorded.stderr
    replayed = spanreplay(tmp_path / "work", "replay", "last", "--json", "--", sys.executable, "writer.py")
    told: dict[str, Any] = json.loads(replayed.stdout)["replay"]
    assert (replayed.returncode, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.stderr
    assert recorded.stdout in replayed.stderr


GIVEN = """
import asyncio, subprocess, sys
from spanreplay.instrumentation import agent_run

SORT = [sys.executable, "-c", "import sys; print(sorted(sys.stdin))"]

def spoken():
    global kept
    kept = subprocess.Popen(SORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return kept.communicate(INPUT)

async def awaited():
    process = await asyncio.create_subprocess_exec(*SORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return await process.communicate(INPUT.encode())

def written():
    with subprocess.Popen(SORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(INPUT.encode())
        process.stdin.close()
        return process.stdout.read()

def left_open():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True, bufsize=1)
    print(INPUT, file=process.stdin, end="", flush=True)
    return process.wait()

INPUT = "b\\na\\n"
with agent_run("sorter"):
    said = [spoken(), asyncio.run(awaited()), written(), left_open()]
print(said)
"""


def test_what_an_agent_writes_to_a_command_is_compared(tmp_path: Path) -> None:
    (tmp_path / "sorter.py").write_text(GIVEN)
    recorded = spanreplay(tmp_path, "record", "--", sys.executable, "sorter.py")
    assert (recorded.returncode, "ignored" in recorded.stderr) == (0, False), recorded.stderr

    def told(*options: str) -> Any:
        replayed = spanreplay(tmp_path, "replay", "last", "--json", *options, "--", sys.executable, "sorter.py")
        assert "ignored" not in replayed.stderr
        found = json.loads(replayed.stdout)["replay"]
        return replayed.returncode, [(d["kind"], d["step"], d["field"], d["actual"]) for d in found["differences"]]

    assert told() == (0, [])
    (tmp_path / "sorter.py").write_text(GIVEN.replace('INPUT = "b\\na', 'INPUT = "b\\nc'))
    code, differences = told()
    assert (code, [d[::2] for d in differences]) == (1, [("input", "stdin")])
    code, differences = told("--all-differences")
    assert (code, [d[::2] for d in differences]) == (1, [("input", "stdin")] * 4)
    assert told("--ignore", "stdin") == (0, [])
