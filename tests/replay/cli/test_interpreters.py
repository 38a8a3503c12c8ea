"""What to say where no Python process reported in."""

import sys

import pytest

from spanreplay.cli.interpreters import nobody_reported


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["-S", "a.py"], "-S"),
        (["-I", "a.py"], "-I"),
        (["-uE", "-m", "agent"], "-E"),
        (["-X", "dev", "-W", "error", "-S", "a.py"], "-S"),
        (["-Xdev", "-IS", "a.py"], "-I"),
    ],
)
def test_a_flag_that_keeps_spanreplay_out_is_named(flags: list[str], told: str) -> None:
    said = nobody_reported([sys.executable, *flags])
    assert f"the command has the flag {told}, which keeps spanreplay out" in said
    assert "install" not in said


@pytest.mark.parametrize("rest", [["a.py", "-S"], ["-c", "-S"], ["-m", "agent", "-I"], ["-WS", "a.py"], ["-", "-E"], []])
def test_a_flag_of_the_program_is_none_of_python(rest: list[str]) -> None:
    said = nobody_reported([sys.executable, *rest])
    assert "keeps spanreplay out" not in said
    assert f"Install it with: {sys.executable} -m pip install spanreplay" in said
