"""Programs as processes of their own that are spared their imports: forks of a process that has them."""

import atexit
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from support.nursery_door import asked
from support.size import FULL

TESTS: Final = Path(__file__).resolve().parents[1]
_NOT_INHERITED: Final = ("SPANREPLAY_", "OTEL_", "OPENAI_", "ANTHROPIC_", "TRACEPARENT", "LOGFIRE_", "PYTHON")
_NEEDED: Final = ("duckdb", "spanreplay.cli.*", "spanreplay.replay.reexecution.*", "spanreplay.replay.dialects.*", "spanreplay.recording.*")
"""What nearly every command imports, and none of what starts a recording."""
_COPIED: Final = () if FULL else ("support.copied_stores",)


class Nursery:
    """A process of :mod:`support.nursery_process`, started when it is first needed."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._open = ExitStack()
        self._address = ""

    def run(
        self, argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], place: Path, text: str = ""
    ) -> CompletedProcess[str]:
        """Run ``python ARGV`` to its end; ``text`` is its standard input. Its streams are files ``in``, ``out``, ``err`` of ``place``."""
        files = {name: place / name for name in ("in", "out", "err")}
        files["in"].write_text(text, encoding="utf-8")
        with files["in"].open("rb") as given, files["out"].open("wb") as out, files["err"].open("wb") as err:
            job = {"argv": list(argv), "environment": dict(environment), "folder": str(folder)}
            code = asked(self.address(), job, [stream.fileno() for stream in (given, out, err)])
        return CompletedProcess(list(argv), code, files["out"].read_text(encoding="utf-8"), files["err"].read_text(encoding="utf-8"))

    def address(self) -> str:
        """Its socket."""
        if not self._address:
            folder = self._open.enter_context(tempfile.TemporaryDirectory())
            address = f"{folder}/socket"
            inherited = {n: v for n, v in os.environ.items() if not n.startswith(_NOT_INHERITED)}
            environment = {**inherited, "PYTHONPATH": str(TESTS), "NURSERY_FOLDER": folder}
            line = [sys.executable, str(Path(__file__).with_name("nursery_process.py")), address, *self._modules]
            process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            self._open.enter_context(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            self._address = address
        return self._address

    def close(self) -> None:
        """End it."""
        self._open.close()
        self._address = ""


@cache
def _nursery() -> Nursery:
    made = Nursery(*_NEEDED, *_COPIED)
    atexit.register(made.close)
    return made


def spanreplay(*arguments: str | Path, folder: Path, environment: Mapping[str, str] | None = None, text: str = "") -> CompletedProcess[str]:
    """``python -m spanreplay ARGUMENTS`` in a process of its own, a fork; the pages and the frameworks' agents start it, at full size.

    Args:
        *arguments: what follows the program's name.
        folder: where it runs.
        environment: all of its variables; those of this process where it is not given.
        text: its standard input.
    """
    argv = ["-m", "spanreplay", *map(str, arguments)]
    variables = dict(os.environ if environment is None else environment)
    with tempfile.TemporaryDirectory() as place:
        return _nursery().run(argv, folder=folder, environment=variables, place=Path(place), text=text)


@cache
def folder_of_commands() -> Path:
    """A folder to have first on ``PATH``: its ``spanreplay`` is the program in a fork; that of the environment at full size."""
    if FULL:
        return Path(sys.executable).parent
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    words = [sys.executable, "-SE", str(Path(__file__).with_name("nursery_door.py")), _nursery().address(), "-m", "spanreplay"]
    command = Path(folder.name) / "spanreplay"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    command.chmod(0o755)
    return Path(folder.name)
