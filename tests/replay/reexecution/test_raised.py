"""A run, or a command, that ends with another exception than it did."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.engine import Replayer
from support import nursery
from support.taped import recorded, replayed


@tool(effect="read")
def look(x: int) -> int:
    return x


class Odd(Exception):
    pass


def agent(made: Callable[[], BaseException]) -> None:
    with agent_run("looker", input="i"):
        look(1)
        raise made()


def told(before: Callable[[], BaseException], now: Callable[[], BaseException], *ignore: str) -> list[tuple[str | None, ...]]:
    runs = recorded(agent, before).runs()
    found = Replayer(runs, ignore=list(ignore)).replay(agent, now).differences if ignore else replayed(runs, agent, now).differences
    return [(one.kind, one.field, one.recorded, one.actual) for one in found]


def test_another_text_or_class_is_a_difference_that_names_both() -> None:
    assert told(lambda: ValueError("boom"), lambda: ValueError("boom")) == []
    assert told(lambda: ValueError("boom"), lambda: ValueError("boom2")) == [("outcome", "error.message", '"boom"', '"boom2"')]
    expected = [("outcome", "error", '"ValueError: boom"', "\"KeyError: 'boom'\"")]
    assert told(lambda: ValueError("boom"), lambda: KeyError("boom")) == expected
    assert told(lambda: Odd(), lambda: ValueError())[0][2:] == (f'"{__name__}.Odd"', '"ValueError"')


def test_what_is_inside_a_group_counts_in_any_order() -> None:
    def group(*texts: str) -> Callable[[], BaseException]:
        return lambda: ExceptionGroup("all", [ValueError(text) for text in texts])

    assert told(group("a", "b"), group("b", "a")) == []
    assert told(group("a", "b"), group("b", "c")) == [("outcome", "error.message", '"a"', '"b"')]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("<object at 0x7f870f7a51b0>", "<object at 0x7f76bd2c54e0>"),
        ("no /tmp/tmpab12cd_9/x", "no /scratch/tmp/tmpzz12cd_9/x"),
        ("took 0.123456 seconds", "took 0.2 seconds"),
        ("at 2026-01-02 03:04:05.6", "at 2026-01-02T04:04:05+00:00"),
        ("process 12 died, pid=7", "process 1234 died, pid=9"),
    ],
)
def test_what_differs_each_time_is_no_difference(before: str, now: str) -> None:
    assert told(lambda: ValueError(before), lambda: ValueError(now)) == []
    assert told(lambda: ValueError(before), lambda: ValueError(f"{now}!")) != []


def test_what_the_user_lets_differ_is_none() -> None:
    made = (lambda: ValueError("boom 1"), lambda: ValueError("boom 2"))
    assert told(*made, "/boom [0-9]/") == []
    assert told(*made, "error.message") == []
    assert told(*made, "error.type") != []


AGENT = """
import os, sys
from spanreplay.instrumentation import tool

@tool(effect="read")
def look(x):
    return x

look(1)
how = open("how").read()
if how == "exit":
    sys.exit(1)
raise ValueError(how)
"""


def test_a_command_that_ends_with_another_exception_or_none(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)

    def run(how: str, *words: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "how").write_text(how)
        return nursery.spanreplay(*words, "--", sys.executable, "agent.py", folder=tmp_path)

    assert run("boom", "record", "-q").returncode == 1
    assert run("boom", "replay", "last").returncode == 0
    other = run("boom2", "replay", "last")
    assert (other.returncode, "the agent ended with ValueError: boom2 at agent.py:13" in other.stdout) == (1, True), other
    assert '    recorded: "boom"\n    actual:   "boom2"' in other.stdout
    left = run("exit", "replay", "last")
    assert (left.returncode, "no exception has ended the agent" in left.stdout) == (1, True), left
