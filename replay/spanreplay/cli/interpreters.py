"""Which Python a command runs, and the line that installs spanreplay there."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path


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


def nobody_reported(argv: Sequence[str]) -> str:
    """What to say when no Python process of a command reported in."""
    python = interpreter_of(argv)
    if python is None:
        return f"no Python process reported in: {argv[0]} is no Python program, or starts none that has spanreplay installed"
    return (
        f"no Python process reported in. {python} ran the command; spanreplay is not installed there, or it ran with -I, -E or -S.\n"
        f"Install it with: {python} -m pip install spanreplay"
    )
