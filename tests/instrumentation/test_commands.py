"""Commands that an agent runs are steps; a replay answers them and starts none."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import commands, commands_files, shims, tool
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

COUNT = "echo $$ >> started; "
"""Leaves a line in the working folder, which tells how often the command has run."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*more: str, **options: Any) -> Any:
    done = subprocess.run(["sh", "-c", COUNT + " ".join(more)], check=False, **options)
    return done.returncode, done.stdout, done.stderr


def by_lines() -> Any:
    with subprocess.Popen(["sh", "-c", COUNT + "echo one; echo two; exit 4"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        return [line.strip() for line in child.stdout], child.wait()


def a_conversation() -> Any:
    child = subprocess.Popen(["sh", "-c", COUNT + "read a; echo got $a; read b; echo got $b"], stdin=-1, stdout=-1, text=True, bufsize=1)
    assert child.stdin is not None
    assert child.stdout is not None
    said = []
    for word in ("x", "y"):
        child.stdin.write(f"{word}\n")
        child.stdin.flush()
        said.append(child.stdout.readline())
    child.stdin.close()
    child.stdout.close()
    return said, child.wait()


def a_server() -> Any:
    child = subprocess.Popen(["sh", "-c", COUNT + "echo ready; exec sleep 60"], stdout=-1, text=True)
    assert child.stdout is not None
    ready = child.stdout.readline()
    running = child.poll()
    child.terminate()
    code = child.wait()
    child.stdout.close()
    return ready, running, code


def too_slow() -> Any:
    try:
        subprocess.run(["sh", "-c", COUNT + "exec sleep 60"], timeout=1, check=True)  # time enough for the shell to start
    except subprocess.TimeoutExpired as error:
        return type(error).__name__
    return None


def failing() -> Any:
    try:
        subprocess.run(["sh", "-c", COUNT + "echo no >&2; exit 3"], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        return error.returncode, error.stderr
    return None


def large() -> Any:
    out = subprocess.check_output(["sh", "-c", COUNT + "head -c 300000 /dev/zero"])
    return len(out), set(out)


def absent() -> Any:
    try:
        subprocess.run(["/no/such/program"], check=True)
    except FileNotFoundError as error:
        return error.errno, error.filename
    return None


def popen() -> Any:
    with os.popen(f"{COUNT} echo x") as reading:
        return reading.read()


def popen_unclosed() -> Any:
    return os.popen(f"{COUNT} date +%N").read()


def timed_out() -> Any:
    told = []
    for more in ({}, {"capture_output": True}, {}):
        try:
            subprocess.run(["sh", "-c", f"{COUNT} exec sleep 30"], timeout=0.05, **more)  # type: ignore[call-overload]
        except subprocess.TimeoutExpired as error:
            told.append(str(error))
    return told


CHANCE = {"popen unclosed", "timed out"}
"""What these see differs at each execution."""


async def on_a_loop() -> Any:
    child = await asyncio.create_subprocess_exec("sh", "-c", COUNT + "cat; echo no >&2; exit 5", stdin=-1, stdout=-1, stderr=-1)
    return await child.communicate(b"hello"), child.returncode


async def several_on_a_loop() -> Any:
    async def one(text: str) -> Any:
        child = await asyncio.create_subprocess_shell(f"{COUNT} echo {text}", stdout=-1)
        assert child.stdout is not None
        return (await child.stdout.readline()).decode(), await child.wait()

    return await asyncio.gather(one("a"), one("b"), one("b"))


async def a_server_on_a_loop() -> Any:
    child = await asyncio.create_subprocess_exec("sh", "-c", COUNT + "echo ready; exec sleep 60", stdout=-1)
    assert child.stdout is not None
    ready = await child.stdout.readline()
    child.terminate()
    return ready, await child.wait()


AGENTS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "run": (lambda: run("echo out; echo err >&2", capture_output=True, text=True), ["ok"]),
    "bytes": (lambda: run(r"printf '\377\000'", capture_output=True), ["ok"]),
    "input": (lambda: run("cat", input="hello", capture_output=True, text=True), ["ok"]),
    "not taken": (lambda: run("echo"), ["ok"]),
    "nowhere": (lambda: run("echo", stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT), ["ok"]),
    "mixed": (lambda: run("echo a; echo b >&2", stdout=-1, stderr=-2), ["ok"]),
    "shell": (lambda: subprocess.check_output(f"{COUNT} echo $X", shell=True, env={**os.environ, "X": "1"}), ["ok"]),
    "call": (lambda: subprocess.call(["sh", "-c", COUNT + "exit 2"]), ["tool_error"]),
    "getoutput": (lambda: subprocess.getstatusoutput(f"{COUNT} echo a; exit 7"), ["tool_error"]),
    "system": (lambda: os.system(f"{COUNT} exit 3"), ["tool_error"]),
    "popen": (popen, ["ok"]),
    "popen unclosed": (popen_unclosed, ["abandoned"]),
    "timed out": (timed_out, ["tool_error"] * 3),
    "check": (failing, ["tool_error"]),
    "lines": (by_lines, ["tool_error"]),
    "conversation": (a_conversation, ["ok"]),
    "server": (a_server, ["tool_error"]),
    "timeout": (too_slow, ["tool_error"]),
    "large": (large, ["ok"]),
    "absent": (absent, ["error"]),
    "loop": (on_a_loop, ["tool_error"]),
    "several": (several_on_a_loop, ["ok", "ok", "ok"]),
    "server on a loop": (a_server_on_a_loop, ["tool_error"]),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", AGENTS)
def test_a_command_is_a_step_and_a_replay_does_not_run_it(name: str) -> None:
    agent, outcomes = AGENTS[name]
    off: list[Any] = []
    live: list[Any] = []

    def kept(into: list[Any]) -> Callable[[], Any]:
        async def asynchronous() -> Any:
            into.append(await agent())
            return into[0]

        def synchronous() -> Any:
            into.append(agent())
            return into[0]

        return asynchronous if asyncio.iscoroutinefunction(agent) else synchronous

    made = kept(off)()
    if asyncio.iscoroutine(made):
        asyncio.run(made)
    tape = recorded(kept(live))
    assert live == off or name in CHANCE, "recording changes what the agent sees"
    assert tape.outcomes == outcomes
    assert {step[names.STEP_KIND] for step in tape.steps} == {"io"}
    assert all(run.grade == "exact" for run in tape.runs())
    ran = Path("started").read_text() if name != "absent" else ""

    result = replayed(tape, kept([]), guard=True)
    assert result.equal, (result.differences, result.error, result.verdict)
    assert result.value == live[0]
    assert (Path("started").read_text() if name != "absent" else "") == ran


def test_what_is_kept_of_a_command(folder: Path) -> None:
    (folder / "kept.txt").write_text("as it was")
    (folder / "gone.txt").write_text("old")

    def agent() -> None:
        (folder / "sub").mkdir()
        command = ["/bin/sh", "-c", "rm gone.txt; echo new > sub/made.txt; cat; exit 1", "x", "--api-key", "abcd1234efgh"]
        subprocess.run(
            command, input="told", text=True, capture_output=True, env={"TOKEN": "s3cret", "PATH": os.environ["PATH"]}, check=False
        )

    (step,) = recorded(agent).steps
    asked, result = json.loads(step[names.STEP_INPUT]), json.loads(step[names.STEP_RESULT])
    assert (step[names.STEP_NAME], asked["command"][0], asked["stdin"]) == ("sh", "sh", "told")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (1, "told", "")
    assert result["files"]["gone.txt"] == {"change": "deleted"}
    assert {k: v for k, v in result["files"]["sub/made.txt"].items() if k != "sha256"} == {"change": "created", "size": 4, "text": "new\n"}
    assert set(result["files"]) == {"gone.txt", "sub/made.txt"}
    assert step[names.ENVIRONMENT_DIGEST].startswith("sha256:")
    assert commands.environment_digest({"A": "1", "TMPDIR": "/here", "SPANREPLAY_PLAN": "x"}) == commands.environment_digest({"A": "1"})
    assert step[names.STEP_EFFECT] == "unknown"
    assert "abcd1234" not in json.dumps(step)
    assert "s3cret" not in json.dumps(step)


def test_another_argument_is_a_difference() -> None:
    words = ["echo", "a"]

    def agent() -> None:
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)

    tape = recorded(agent)
    words[1] = "b"
    (difference,) = replayed(tape, agent).differences
    assert (difference.field, difference.recorded, difference.actual) == ("command[1]", '"a"', '"b"')


def test_a_temporary_path_is_no_difference() -> None:
    import tempfile

    def agent() -> str:
        with tempfile.TemporaryDirectory() as made:
            return subprocess.check_output(["sh", "-c", f"echo {made}"], text=True)

    assert replayed(recorded(agent), agent).equal


def test_a_command_inside_a_tool_belongs_to_the_tool() -> None:
    @tool
    def shell() -> str:
        return subprocess.check_output(["sh", "-c", COUNT + "echo a"], text=True)

    tape = recorded(shell)
    assert [step[names.STEP_KIND] for step in tape.steps] == ["tool_call"]
    result = replayed(tape, shell, guard=True)
    assert (result.equal, result.value, len(Path("started").read_text().split())) == (True, "a\n", 1)


def test_a_long_output_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "LIMIT", 1000)
    seen: list[int] = []
    tape = recorded(lambda: seen.append(len(subprocess.check_output(["head", "-c", "5000", "/dev/zero"]))))
    assert seen == [5000], "the agent gets all of it"
    assert len(json.dumps(tape.steps)) < 15_000
    (run,) = tape.runs()
    assert (run.steps[0].grade, "lossy" in str(run.steps[0].reasons)) == ("semantic", True)


def test_what_is_read_past_the_file_object_is_known_to_be_missing() -> None:
    seen: list[bytes] = []

    def agent() -> None:
        with subprocess.Popen(["echo", "a"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            seen.append(os.read(child.stdout.fileno(), 100))

    (run,) = recorded(agent).runs()
    assert (seen, run.steps[0].grade) == ([b"a\n"], "semantic")


def test_a_large_folder_is_not_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands_files, "MOST", 2)
    for name in ("a", "b", "c"):
        (folder / name).touch()
    assert commands_files.snapshot() is None
    (folder / "node_modules").mkdir()
    for name in ("a", "b"):
        (folder / name).rename(folder / "node_modules" / name)
    found = commands_files.snapshot()
    assert found is not None
    assert set(found.files) == {"c"}


def test_off_and_taken_out_nothing_is_left() -> None:
    before = {name: vars(subprocess.Popen).get(name) for name in ("__init__", "_execute_child", "communicate", "wait", "poll", "__del__")}
    shims.install()
    assert run("echo a", capture_output=True, text=True) == (0, "a\n", "")
    shims.uninstall()
    assert {name: vars(subprocess.Popen).get(name) for name in before} == before


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"exit_code": "x", "stdout": 5, "signals": None, "polls": []}])
def test_an_odd_record_counts_as_empty(odd: Any) -> None:
    found = commands.Result(odd)
    assert (found.code, found.stream("stdout"), tuple(found.signals), found.polls) == (0, b"", (), 0)


def test_this_python_is_named_as_any_other() -> None:
    (step,) = recorded(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)).steps
    assert json.loads(step[names.STEP_INPUT])["command"] == [Path(sys.executable).name, "-c", "pass"]
