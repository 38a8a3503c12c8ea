"""Which Python a command runs, and the line that installs spanreplay there."""

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*t?(?:\.exe)?", re.IGNORECASE)


def interpreter_of(argv: Sequence[str]) -> str | None:
    """The Python that runs ``argv``, as far as its first word or its script's first line tells; ``None`` for anything else."""
    found = shutil.which(argv[0])
    if found is None:
        return None
    if "python" in Path(found).name:
        return found
    try:
        with Path(found).open("rb") as script:
            first = script.readline(256)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = shlex.split(first[2:].decode("utf-8", "replace"))
    python = next((w for w in words if "python" in Path(w).name), None)
    return shutil.which(python) if python else None


def _shutting_out(argv: Sequence[str]) -> str | None:
    """The flag of a Python in a command line that keeps its ``site`` module, or the environment of spanreplay, out."""
    at = next((i for i, word in enumerate(argv) if _PYTHON.fullmatch(Path(word).name)), None)
    words = iter(argv[at + 1 :] if at is not None else ())
    for word in words:
        if not word.startswith("-") or word.startswith("--") or word == "-":
            return None
        for place, letter in enumerate(word[1:], 1):
            if letter in "SIE":
                return f"-{letter}"
            if letter in "cm":
                return None
            if letter in "XW":  # these take a value
                if place == len(word) - 1:
                    next(words, None)
                break
    return None


def nobody_reported(argv: Sequence[str]) -> str:
    """What to say when no Python process of a command reported in."""
    python = interpreter_of(argv)
    if python is None:
        return f"no Python process reported in: {argv[0]} is no Python program, or starts none that has spanreplay installed"
    flag = _shutting_out(argv)
    if flag is not None:
        return f"no Python process reported in: the command has the flag {flag}, which keeps spanreplay out of {python}; leave it out"
    return (
        f"no Python process reported in. {python} ran the command; spanreplay is not installed there.\n"
        f"Install it with: {python} -m pip install spanreplay"
    )
