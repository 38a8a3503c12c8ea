"""``record``: the command's exit code is kept, and what was kept is said at once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures.runs.spans import own, own_root
from spanreplay.cli.recorded import Kept
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from support import nursery

AGENT = """
import os, sys, time
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    return {"x": x}

with agent_run("looker", input="q") as run:
    look(1)
    if "write" in sys.argv:
        open("notes.txt", "w").write("seen")
    if "wait" in sys.argv:
        print("waiting", flush=True)
        time.sleep(60)
    run.output = look(2)
print("done")
sys.exit(3 if "fail" in sys.argv else 0)
"""

PYTHON = sys.executable
SPANREPLAY = [PYTHON, "-m", "spanreplay"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPANREPLAY_STORE", raising=False)
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return nursery.spanreplay(*arguments, folder=Path.cwd())


def kept_runs() -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(run("runs", "--json").stdout)["runs"]
    return runs


def test_the_summary(folder: Path) -> None:
    done = run("record", "--", PYTHON, "agent.py", "fail", "write")
    assert (done.returncode, done.stdout) == (3, "done\n")
    first, *rest = done.stderr.splitlines()
    (kept,) = kept_runs()
    assert first == f"spanreplay: kept 2 steps of 1 run: {kept['run_id'][:12]} (looker)"
    assert any(line.startswith("  not recorded: file written ") and "--allow-write" in line for line in rest), done.stderr
    assert run("record", "-q", "--", PYTHON, "agent.py").stderr == ""


def test_json_has_standard_output_for_itself(folder: Path) -> None:
    done = run("record", "--json", "--", PYTHON, "agent.py")
    document = json.loads(done.stdout)
    assert list(document) == ["schema", "command_id", "exit_code", "runs", "steps", "processes", "inexact", "untaped", "dropped"]
    assert (document["steps"], document["processes"], document["exit_code"], document["dropped"]) == (2, 1, 0, 0)
    assert done.stderr == "done\n"


def test_no_python_reported_in(folder: Path) -> None:
    done = run("record", "-q", "--", "sh", "-c", "echo hello; exit 5")
    assert (done.returncode, done.stdout) == (5, "hello\n")
    assert done.stderr == "no Python process reported in: sh is no Python program, or starts none that has spanreplay installed\n"


def test_a_python_that_did_not_report_in_is_named_with_the_flag_that_kept_it_out(folder: Path) -> None:
    done = run("record", "--", PYTHON, "-I", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert f"the command has the flag -I, which keeps spanreplay out of {PYTHON}; leave it out" in done.stderr


def test_a_program_that_is_not_there(folder: Path) -> None:
    done = run("record", "--", "no-such-program", "--help")
    assert done.returncode == 2
    assert done.stderr == "Error: no-such-program: No such file or directory; what stands after -- is run as it is, without a shell\n"
    assert run("record", "--", str(folder)).returncode == 2


def test_a_record_inside_a_record_is_part_of_it(folder: Path) -> None:
    done = run("record", "--", *SPANREPLAY, "record", "--store", "elsewhere", "--", PYTHON, "agent.py", "fail")
    assert (done.returncode, done.stdout) == (3, "done\n")
    assert "this runs inside a command that is being recorded already; its steps are part of that" in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("spanreplay: kept")] == [
        f"spanreplay: kept 2 steps of 1 run: {kept_runs()[0]['run_id'][:12]} (looker)"
    ]
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize(("number", "to_all", "code"), [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143)])
def test_a_stopped_command_leaves_its_run(folder: Path, number: int, to_all: bool, code: int) -> None:
    line = [*SPANREPLAY, "record", "--", PYTHON, "agent.py", "wait"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    if to_all:  # as a terminal does on Ctrl-C
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "spanreplay: kept 1 step of 1 run" in err
    assert "spanreplay/cli" not in err, "a traceback of the agent's own at most"
    (kept,) = kept_runs()
    assert (kept["agent"], kept["n_steps"]) == ("looker", 1)


def test_verbose_says_where_and_by_whom(folder: Path) -> None:
    err = run("record", "-v", "--store", "here", "--", PYTHON, "agent.py").stderr
    assert f"kept in {folder / 'here'}, by 1 Python process; exit code 0" in err


# ---- the lines -------------------------------------------------------------------------------------------------------


def kept(*steps: Any, dropped: int = 0) -> Kept:
    return Kept(runs=build_runs([own_root(1), *steps]), processes=1, dropped=dropped)


def test_steps_that_will_not_replay_exactly_are_named_with_their_reason_once() -> None:
    lossy = {a.STEP_INPUT: '{"x": 1}', a.STEP_OUTCOME: None}
    lines = kept(own(2, 1, seq=1, attributes=lossy, end=None), own(3, 1, seq=3, attributes=lossy, end=None)).lines()
    assert lines[0] == "spanreplay: kept 2 steps of 1 run: 5b8efff79803 (helper)"
    (line,) = lines[1:]
    assert line.startswith("  tool_call tool_call (x2) is cut short: ")


def test_what_was_dropped_is_counted() -> None:
    assert kept(dropped=1).lines()[-1] == "  1 record could not be kept; the runs are incomplete"
    assert kept(dropped=2).to_json()["dropped"] == 2
    assert not any("could not be kept" in line for line in kept().lines())


def test_many_runs_are_not_all_named() -> None:
    records = [
        r
        for i in range(1, 11)
        for r in (
            own_root(f"{i:016x}", run=f"{i:032x}", trace=f"{i:032x}"),
            own(f"{i + 100:016x}", f"{i:016x}", run=f"{i:032x}", trace=f"{i:032x}"),
        )
    ]
    line = Kept(runs=build_runs(records), processes=1, dropped=0).lines()[0]
    assert line.startswith("spanreplay: kept 10 steps of 10 runs: ")
    assert line.endswith(" and 2 more")
