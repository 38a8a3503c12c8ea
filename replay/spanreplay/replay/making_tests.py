"""A run as a test: the text of a test module for pytest, beside which lies the recording that it uses."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanreplay.replay.model import Json, Run
from spanreplay.replay.showing import moment, safe, short_id

RECORDINGS: Final = "runs"
"""The folder of the recordings, beside the test."""
_WORD: Final = re.compile(r"\W+")
_REFERENCE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestModule:
    """A file to write."""

    text: str
    recording: Path
    """Where its recording is to be."""
    complete: bool
    """It runs as it is; else it says what to fill in."""


def is_reference(call: str) -> bool:
    """Whether a text is ``module:function``."""
    return _REFERENCE.fullmatch(call) is not None


def pytest_module(path: Path, run: Run, siblings: Sequence[Run], *, call: str | None = None) -> PytestModule:
    """The test of one run.

    Args:
        path: the file it is for: ``tests/test_refund.py``.
        run: the run.
        siblings: all runs of its command, which the recording holds too.
        call: ``module:function`` of the agent, which takes the run's input; left out, the recorded command is run.
    """
    name = _WORD.sub("_", path.stem.removeprefix("test_")).strip("_") or "run"
    recording = f"{RECORDINGS}/{name}.json"
    definition = next((r.definition for r in siblings if r.is_command and isinstance(r.definition, dict)), {})
    argv = definition.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list) and "proxy" not in definition else []
    alone = sum(bool(r.steps) or not r.is_command for r in siblings) == 1
    imports: list[str] = []
    if call is not None:
        module, _, function = call.partition(":")
        imports = ["", f"from {module} import {function}"]
        how = [recording_argument(recording), function, *([] if run.input is None else [_literal(run.input)])]
        how += [] if alone else [f"run={run.run_id!r}"]
    elif words:
        imports = ["import sys"] if _is_python(words[0]) else []
        how = [recording_argument(recording), _command(words), f"cwd={_folder(definition.get('cwd'), path)!r}"]
        how += [] if alone else [f"run={run.run_id!r}"]
    else:
        how = []
    told = f"Run {short_id(run.run_id)} of {safe(run.agent_name or 'an agent')}, recorded {moment(run.started_ns)}, as a test."
    lines = [f'"""{_docstring(told)}"""', *(["", *[line for line in imports if line]] if imports else [])]
    if not how:
        lines += ["", "import pytest", "", "# Fill in: from my_agent import answer"]
    lines += ["", "", f"def test_{name}(replay_run):", *_body(how, recording, run)]
    return PytestModule(text="\n".join(lines) + "\n", recording=path.parent / RECORDINGS / f"{name}.json", complete=bool(how))


def _body(how: Sequence[str], recording: str, run: Run) -> list[str]:
    if how:
        joined = ", ".join(how)
        call = (
            [f"    result = replay_run({joined})"]
            if len(joined) < 100
            else ["    result = replay_run(", *[f"        {w}," for w in how], "    )"]
        )
        return [*call, "    assert result.equal, str(result)"]
    asked = "" if run.input is None else f", {_literal(run.input)}"
    return [
        '    pytest.fail("fill in: the record does not say which function or command this agent is")',
        f"    result = replay_run({recording_argument(recording)}, answer{asked})",
        "    assert result.equal, str(result)",
    ]


def recording_argument(recording: str) -> str:
    """The path of a recording as Python writes it."""
    return repr(recording).replace("'", '"')


def _literal(value: Json) -> str:
    """A JSON value as Python writes it, which writes out whatever is no printing character."""
    return repr(value)


def _docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")


def _is_python(word: str) -> bool:
    return Path(word).name.startswith("python")


def _command(words: Sequence[str]) -> str:
    """The recorded command; its Python is the one that runs the test."""
    shown = [_literal(word) for word in words]
    if _is_python(words[0]):
        shown[0] = "sys.executable"
    return f"[{', '.join(shown)}]"


def _folder(cwd: object, path: Path) -> str:
    """Where the command was recorded, from the folder of the test; that folder itself, where it is not known."""
    if not isinstance(cwd, str) or "\0" in cwd or not Path(cwd).is_dir():
        return "."
    return Path(os.path.relpath(cwd, path.parent.absolute())).as_posix()
