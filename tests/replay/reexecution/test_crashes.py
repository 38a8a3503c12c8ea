"""An agent that ends with an exception of its own: the report says so before what it did not come to."""

import subprocess
import sys
from pathlib import Path

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.crashes import crash, told
from support import nursery
from support.taped import recorded, replayed


@tool(effect="read")
def look(x: int) -> int:
    return x


def agent(broken: bool) -> None:
    with agent_run("looker", input="i"):
        look(1)
        if broken:
            raise RuntimeError("boom\n again")
        look(2)
        look(3)


def test_the_first_step_that_is_not_reached_says_why() -> None:
    tape = recorded(agent, False)
    first, *others = [one for one in replayed(tape, agent, True).differences if one.kind == "unreached"]
    line = agent.__code__.co_firstlineno + 4
    assert first.detail.startswith(f"the agent ended with RuntimeError: boom again at test_crashes.py:{line}; recorded, but")
    assert first.where == f"{__file__}:{line}"
    assert "step 2, tool_call look: the agent ended with RuntimeError" in first.summary()
    assert not any("ended with" in other.detail for other in others)


def test_an_exception_that_cannot_be_written_is_named_all_the_same() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert told(crash(Odd())) == "the agent ended with Odd"


AGENT = """
import os
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    return x

with agent_run("looker"):
    look(1)
if os.path.exists("broken"):
    raise RuntimeError("boom")
"""


def test_a_command_that_crashes_after_its_last_step(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return nursery.spanreplay(*words, "--", sys.executable, "agent.py", folder=tmp_path)

    assert run("record", "-q").returncode == 0
    (tmp_path / "broken").touch()
    done = run("replay", "last", "--github")
    assert (done.returncode, "the agent ended with RuntimeError: boom at agent.py:12" in done.stdout) == (1, True), done
    assert "::error file=agent.py,line=12" in done.stdout
