"""Recordings as tests: each test here runs a small suite of its own."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

# What a suite imports, pytester forgets after it. These cannot be imported twice: they observe the process.
import duckdb  # noqa: F401
import pytest

import spanreplay.recording
import spanreplay.replay.reexecution.baseline
import spanreplay.replay.reexecution.engine  # noqa: F401
from spanreplay import pytest_plugin
from spanreplay.pytest_plugin import ReplayRun
from support.handmade import run, step
from support.size import FULL

pytest_plugins = ["pytester"]

AGENT = """
import os
import random

from spanreplay.instrumentation import agent_run, tool


@tool(effect="read")
def price(item):
    with open(os.environ["BODIES"], "a") as file:
        file.write(item + "\\n")
    return random.random()


def quote(item="tea"):
    with agent_run("shop", input=item) as run:
        run.output = [price(item), price(item)]
        return run.output
"""
TESTS = """
import pytest
import shop


@pytest.mark.spanreplay("runs/tea.json")
def test_tea(tmp_path):
    first, second = shop.quote()
    (tmp_path / "given").write_text("it may")
    print(f"given {first} {second}")
    assert first != second
"""


class Suite:
    """A folder with an agent and its tests."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = pytester.path
        self._pytester = pytester
        pytester.makepyfile(shop=AGENT)
        pytester.syspathinsert()
        monkeypatch.setenv("BODIES", str(self.folder / "bodies"))

    def run(self, tests: str, *arguments: str) -> tuple[int, str]:
        """The exit code of pytest and what it printed."""
        (self.folder / "test_shop.py").write_text(tests)
        done = self._pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-s", *arguments)
        return int(done.ret), f"{done.stdout}\n{done.stderr}"

    def bodies(self) -> list[str]:
        """The tools whose bodies ran since this was asked last."""
        file = self.folder / "bodies"
        ran = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return ran


def given(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("given ")]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    return Suite(pytester, monkeypatch)


def test_a_test_is_recorded_once_and_answered_from_then_on(suite: Suite) -> None:
    code, said = suite.run(TESTS)
    assert (code, suite.bodies()) == (1, [])
    assert "make it with: pytest --spanreplay=record" in said

    code, said = suite.run(TESTS, "--spanreplay=record")
    assert (code, suite.bodies()) == (0, ["tea", "tea"]), said
    recorded = given(said)
    text = (suite.folder / "runs" / "tea.json").read_text()
    assert json.loads(text)["resourceSpans"]
    assert len(text.splitlines()) > 50, "one value a line, to be compared"

    code, said = suite.run(TESTS, "--junit-xml=junit.xml")
    assert (code, suite.bodies()) == (0, []), said
    assert given(said) == recorded
    assert 'name="spanreplay.behaviour" value="sha256:' in (suite.folder / "junit.xml").read_text()

    code, said = suite.run(TESTS.replace("quote()", "quote('coffee')"))
    assert (code, suite.bodies()) == (1, [])
    assert "difference" in said
    assert "coffee" in said
    assert "Traceback" not in said


def test_a_failing_test_fails_as_it_would(suite: Suite) -> None:
    suite.run(TESTS, "--spanreplay=record")
    code, said = suite.run(TESTS.replace("first != second", "first == second"))
    assert code == 1
    assert "assert first == second" in said
    assert "difference" not in said


def test_a_failing_test_is_recorded_all_the_same_but_not_kept(suite: Suite) -> None:
    code, _ = suite.run(TESTS.replace("first != second", "first == second"), "--spanreplay=record")
    assert code == 1
    assert not (suite.folder / "runs").exists()


def test_without_a_recording_refuse_lets_no_call_out(suite: Suite) -> None:
    tests = "import shop\n\ndef test_tea():\n    shop.price('tea')\n\ndef test_sum():\n    assert 1 + 1 == 2\n"
    assert suite.run(tests)[0] == 0
    suite.bodies()
    code, said = suite.run(tests, "--spanreplay=refuse")
    assert (code, suite.bodies()) == (1, [])
    assert "1 failed, 1 passed" in said
    assert "without a recording (--spanreplay=refuse)" in said


def test_what_a_test_does_outside_is_refused_unless_it_is_allowed(suite: Suite) -> None:
    tests = TESTS.replace('(tmp_path / "given")', '__import__("pathlib").Path("there")')
    assert suite.run(tests, "--spanreplay=record")[0] == 0
    (suite.folder / "there").unlink()
    code, said = suite.run(tests)
    assert (code, (suite.folder / "there").exists()) == (1, False)
    assert "1 action on the outside refused" in said
    code, said = suite.run(tests.replace('"runs/tea.json"', '"runs/tea.json", allow_write=["there"]'))
    assert (code, (suite.folder / "there").exists()) == (0, True), said


def test_the_mark_takes_one_path(suite: Suite) -> None:
    code, said = suite.run(TESTS.replace('"runs/tea.json"', '"a", "b"'))
    assert code != 0
    assert "the mark takes one path" in said


FIXTURES = """
import asyncio
import random
import threading
import time
import uuid

import pytest
import shop
from spanreplay.instrumentation import agent_run


def test_it(record_run, replay_run):
    with record_run("runs/tea.json") as made:
        given = shop.quote()
    assert [step.name for step in made.runs[0].steps] == ["price", "price"]
    result = replay_run("runs/tea.json", shop.quote)
    assert (result.equal, result.value) == (True, given)
    assert not replay_run("runs/tea.json", shop.quote, "coffee").equal


def test_held(record_run, replay_run):
    def worker():
        shop.price(f"{uuid.uuid4()} {time.time_ns()}")

    def agent():
        with agent_run("workers"):
            shop.price(str(random.random()))
            workers = [threading.Thread(target=worker) for _ in range(2)]
            for one in workers:
                one.start()
            for one in workers:
                one.join()

    for file in ("runs/first.json", "runs/second.json"):  # what a replay leaves in the process moves nothing of the next recording
        with record_run(file):
            agent()
        result = replay_run(file, agent)
        assert result.equal, str(result)
    result = replay_run("runs/first.json", agent)
    assert result.equal, str(result)


@pytest.mark.anyio
@pytest.mark.spanreplay("runs/tea.json")
async def test_asynchronous(anyio_backend):
    await asyncio.sleep(0)
    shop.quote()
"""


def test_the_fixtures_and_an_asynchronous_test(suite: Suite) -> None:
    code, said = suite.run(FIXTURES, "-k", "test_it")
    assert (code, suite.bodies()) == (0, ["tea", "tea"]), said
    code, said = suite.run(FIXTURES, "-k", "test_held")
    assert (code, len(suite.bodies())) == (0, 10), said
    code, said = suite.run(FIXTURES, "-k", "asynchronous and asyncio", "-p", "anyio")
    assert (code, suite.bodies()) == (0, []), said


def test_a_changed_recording_is_accepted_with_a_reason_that_it_keeps(suite: Suite) -> None:
    (suite.folder / "shop.py").write_text(AGENT.replace("random.random()", "len(item)"))
    tests = TESTS.replace("first != second", "first == second")
    suite.run(tests, "--spanreplay=record")
    file = suite.folder / "runs" / "tea.json"
    first = file.read_bytes()

    code, said = suite.run(tests, "--spanreplay=record")
    assert (code, file.read_bytes() == first) == (0, True), "the same behaviour is no news, though its ids and times are"

    other = tests.replace("quote()", "quote('coffee')")
    code, said = suite.run(other, "--spanreplay=record")
    assert (code, file.read_bytes() == first) == (1, True), said
    assert 'step 1 tool_call price.input.arguments.item: was "tea", now "coffee"' in said
    assert "--spanreplay-reason" in said

    code, said = suite.run(other, "--spanreplay=record", "--spanreplay-reason", "we sell coffee now")
    assert code == 0, said
    (decision,) = json.loads(file.read_text())["spanreplay"]["decisions"]
    assert (decision["why"], decision["replaces"]) == ("we sell coffee now", f"sha256:{hashlib.sha256(first).hexdigest()}")
    assert decision["who"]
    assert decision["when"].endswith("+00:00")


@pytest.mark.parametrize("reason", ["", " \t"])
def test_a_reason_says_something(suite: Suite, reason: str) -> None:
    code, said = suite.run(TESTS, "--spanreplay=record", f"--spanreplay-reason={reason}")
    assert code == int(pytest.ExitCode.USAGE_ERROR)
    assert "--spanreplay-reason is empty" in said


def test_a_reason_is_for_recording(suite: Suite) -> None:
    code, said = suite.run(TESTS, "--spanreplay-reason", "why")
    assert (code, "is for --spanreplay=record" in said) == (4, True)


RUNS = """
import shop


async def later():
    return shop.quote()


def test_function(replay_run):
    result = replay_run("runs/tea.json", later)
    assert result.equal, str(result)
    assert [step.name for step in replay_run.runs("runs/tea.json")[0].steps] == ["price", "price"]


def test_command(replay_run):
    import sys
    import spanreplay.instrumentation as api
    code = f"import shop, {api.__name__} as api\\nwith api.agent_run('quotes'): shop.quote()"
    result = replay_run("runs/command.json", [sys.executable, "-c", code])
    assert result.equal, str(result)
    assert result.value == 0
    assert [run.agent_name for run in replay_run.runs("runs/command.json")] == ["quotes"]


def test_other_command(replay_run):
    import sys
    other = replay_run("runs/command.json", [sys.executable, "-c", "import shop; shop.quote('milk')"])
    assert "milk" in str(other)
    assert not other.equal


def test_nothing_that_can_be_judged(replay_run):
    replay_run("runs/command.json", ["true"])
"""


def test_a_command_all_of_whose_calls_are_of_agents_is_no_run_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(step(1, "tool_call:t#0", "1"))
    command = replace(made, run_id="c", is_command=True)
    replay_run = object.__new__(ReplayRun)
    replay_run._folder = Path()
    for found, kept in (([replace(command, steps=()), made], [made]), ([command, made], [command, made])):
        monkeypatch.setattr(pytest_plugin, "_read", lambda _, found=found: found)
        assert replay_run.runs("runs/a.json") == kept


def test_a_function_and_a_command_are_recorded_and_replayed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(suite.folder))
    code, said = suite.run(RUNS, "--spanreplay=record", "-k", "function")
    assert (code, suite.bodies()) == (0, ["tea", "tea"]), said
    code, said = suite.run(RUNS, "--spanreplay=refuse", "-k", "function")
    assert (code, suite.bodies()) == (0, []), said
    if not FULL:  # what follows takes a process for each command
        return
    code, said = suite.run(RUNS, "--spanreplay=record", "-k", "test_command")
    assert (code, suite.bodies()) == (0, ["tea", "tea"]), said
    code, said = suite.run(RUNS, "-k", "other_command or judged")
    assert (code, suite.bodies()) == (1, []), said
    assert "1 failed, 1 passed" in said
    assert "true cannot be judged:" in said
