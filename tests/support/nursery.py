"""Programs as processes of their own that are spared their imports: forks of a process that has them."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

from support.size import FULL

TESTS: Final = Path(__file__).resolve().parents[1]
_NOT_INHERITED: Final = ("SPANREPLAY_", "OTEL_", "OPENAI_", "ANTHROPIC_", "TRACEPARENT", "LOGFIRE_", "PYTHON")
_NEEDED: Final = ("duckdb", "spanreplay.cli.*", "spanreplay.replay.reexecution.*", "spanreplay.replay.dialects.*", "spanreplay.recording.*")
"""What nearly every command imports, and none of what starts a recording."""


class Nursery:
    """A process of :mod:`support.nursery_process`, started when it is first needed; one program at a time."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], place: Path, text: str = ""
    ) -> CompletedProcess[str]:
        """Run ``python ARGV`` to its end; ``text`` is its standard input. Its streams are files ``in``, ``out``, ``err`` of ``place``."""
        files = {name: place / name for name in ("in", "out", "err")}
        files["in"].write_text(text, encoding="utf-8")
        paths = {name: str(path) for name, path in files.items()}
        code = self._result_of({"argv": list(argv), "environment": dict(environment), "folder": str(folder), **paths})
        out, err = (files[name].read_text(encoding="utf-8") for name in ("out", "err"))
        return CompletedProcess(list(argv), code, out, err)

    def _result_of(self, job: Mapping[str, Any]) -> int:
        if self._process is None:
            environment = {**{n: v for n, v in os.environ.items() if not n.startswith(_NOT_INHERITED)}, "PYTHONPATH": str(TESTS)}
            line = [sys.executable, str(Path(__file__).with_name("nursery_process.py")), *self._modules]
            self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


@cache
def _nursery() -> Nursery:
    made = Nursery(*_NEEDED)
    atexit.register(made.close)
    return made


def spanreplay(*arguments: str | Path, folder: Path, environment: Mapping[str, str] | None = None, text: str = "") -> CompletedProcess[str]:
    """``python -m spanreplay ARGUMENTS`` in a process of its own; at full size in one that is started for it.

    Args:
        *arguments: what follows the program's name.
        folder: where it runs.
        environment: all of its variables; those of this process where it is not given.
        text: its standard input.
    """
    argv = ["-m", "spanreplay", *map(str, arguments)]
    variables = dict(os.environ if environment is None else environment)
    if not FULL:
        with tempfile.TemporaryDirectory() as place:
            return _nursery().run(argv, folder=folder, environment=variables, place=Path(place), text=text)
    line = [sys.executable, *argv]
    return subprocess.run(line, cwd=folder, env=variables, input=text, capture_output=True, text=True, encoding="utf-8", timeout=110)
