"""``--until``, ``--from``, ``--break-at`` and ``--fast``: real processes, the debugger on a terminal of its own."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support import nursery
from support.command_line import CommandLine
from support.size import FULL

AGENT = """
import asyncio
import os
import sys
import time

from spanreplay.instrumentation import agent_run, tool

NAP = float(os.environ["NAP"])


@tool(effect="read")
async def look(x):
    return {"x": x}


@tool(effect="read")
def put(y):
    return y


@tool(effect="read")
async def late():
    await asyncio.sleep(60)


async def agent(word, more):
    async with agent_run("looker", input=word) as run:
        found = await look(word)
        time.sleep(NAP)
        kept = put(more)
        await asyncio.sleep(NAP)
        try:
            await asyncio.wait_for(late(), 0.05)
        except TimeoutError:
            pass
        await asyncio.to_thread(put, "thread")
        await asyncio.sleep(NAP)
        run.output = kept


asyncio.run(agent(*sys.argv[1:]))
print("done")
"""


def words(folder: Path, *arguments: str) -> list[str]:
    return [*arguments[:1], "--store", str(folder / "store"), *arguments[1:]]


def run(folder: Path, *arguments: str, nap: str = "0.01") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NAP": nap}
    return nursery.spanreplay(*words(folder, *arguments), folder=folder, environment=environment)


def command(word: str = "tea", more: str = "milk") -> list[str]:
    return ["--", sys.executable, "agent.py", word, more]


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looked")
    (folder / "agent.py").write_text(AGENT)
    done = run(folder, "record", *command())
    assert done.returncode == 0, done
    return folder


def test_an_agent_is_stopped_after_a_step(looked: Path) -> None:
    done = run(looked, "replay", "--until", "1", "--json", *command(more="oil"))
    replay = json.loads(done.stdout)["replay"]
    assert (done.returncode, replay["differences"], replay["steps"]["recorded"], replay["steps"]["matched"]) == (0, [], 1, 1), done
    assert "stopped here: step 1 is answered, as asked" in done.stderr
    assert "done" not in done.stderr
    if FULL:
        assert run(looked, "replay", "--until", "2", *command(more="oil")).returncode == 1, "it is in the part that counts"


def test_the_step_is_that_of_the_run_that_was_asked_for(tmp_path: Path) -> None:
    code = "from spanreplay.instrumentation import agent_run, tool\nput = tool(effect='read')(lambda y: y)\nput(1)\n"
    (tmp_path / "two.py").write_text(code + "with agent_run('second'):\n    put(2)\n")
    of_two = ["--", sys.executable, "two.py"]
    assert run(tmp_path, "record", *of_two).returncode == 0
    done = run(tmp_path, "replay", "last~1", "--until", "1", "--json", *of_two)
    replay = json.loads(done.stdout)["replay"]
    assert (done.returncode, replay["differences"], replay["steps"]["recorded"], replay["steps"]["matched"]) == (0, [], 1, 1), done
    done = run(tmp_path, "fork", "last", "--at", "9", *of_two)
    assert (done.returncode, "has steps 1 to 1; there is no step 9" in done.stderr) == (2, True), done


def test_what_comes_before_a_step_does_not_count(looked: Path) -> None:
    done = run(looked, "replay", "--from", "2", *command(word="coffee"))
    assert (done.returncode, "done" in done.stdout) == (0, True), done
    assert "compared: the steps from 2 on" in done.stderr
    assert "3 of 3 recorded steps answered a call" in done.stdout
    other = run(looked, "replay", "--from", "2", *command(word="coffee", more="oil"))
    assert (other.returncode, "difference at step 2" in other.stdout, "step 1" in other.stdout) == (1, True, False), other


def test_an_hour_takes_no_time(looked: Path) -> None:
    done = run(looked, "replay", "--fast", *command(), nap="3600")
    assert (done.returncode, "0 differences" in done.stdout) == (0, True), done


def at_the_debugger(folder: Path, typed: str) -> tuple[int, str]:
    """``--break-at 2`` on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spanreplay", *words(folder, "replay", "--break-at", "2", *command())],
        cwd=folder,
        env={**os.environ, "NAP": "0.01", "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # the terminal is closed
            break
    os.close(ours)
    return process.wait(), said.decode().replace("\r", "")


def test_the_debugger_opens_in_the_frame_of_the_agent(looked: Path) -> None:
    code, said = at_the_debugger(looked, "p ('it is', found['x'])\nn\np ('and', kept)\nc\n")
    assert "before step 2, tool_call put, is answered" in said
    assert "-> kept = put(more)" in said
    assert "('it is', 'tea')" in said
    assert "-> await asyncio.sleep(NAP)" in said, "the next line of the agent, not one of ours"
    assert "('and', 'milk')" in said
    assert (code, "0 differences" in said) == (0, True), said


def test_leaving_the_debugger_ends_the_replay_there(looked: Path) -> None:
    code, said = at_the_debugger(looked, "q\n")
    assert (code, "1 of 1 recorded steps answered a call" in said) == (0, True), said
    assert "done\n" not in said
    code, said = at_the_debugger(looked, "n\nq\n")
    assert (code, "2 of 2 recorded steps answered a call" in said, "0 differences" in said) == (0, True, True), said
    assert "done\n" not in said


def test_a_debugger_needs_a_terminal_and_a_step(looked: Path) -> None:
    done = run(looked, "replay", "--break-at", "2", *command())
    assert (done.returncode, "needs a terminal" in done.stderr) == (2, True)
    done = run(looked, "replay", "--break-at", "9", *command())
    assert (done.returncode, "there is no step 9 (--break-at)" in done.stderr) == (2, True)


def test_without_a_command_a_part_is_shown(demo: CommandLine) -> None:
    (part,) = demo("replay", "--from", "2", "--until", "3", "--json").json["runs"]
    assert [step["seq"] for step in part["steps"]] == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--until", "2", "--from", "3"], "--until 2 is before --from 3"),
        (["--fast"], "are for a re-execution"),
        (["--break-at", "1"], "are for a re-execution"),
        (["--until", "2", "--all", "--", "true"], "leave out --all"),
        (["--check-determinism", "2"], "replays one command"),
    ],
)
def test_options_that_do_not_go_together(spanreplay: CommandLine, arguments: list[str], says: str) -> None:
    done = spanreplay("replay", *arguments)
    assert (done.code, says in done.err) == (2, True), done


@pytest.mark.parametrize("bisect", [(), ("--bisect",)])
@pytest.mark.parametrize("option", ["--from", "--until"])
def test_a_step_that_is_not_there_is_wrong_use(demo: CommandLine, option: str, bisect: tuple[str, ...]) -> None:
    done = demo("replay", *bisect, option, "99", "--", "true")
    assert (done.code, "has steps 1 to " in done.err, "there is no step 99" in done.err) == (128 if bisect else 2, True, True), done
