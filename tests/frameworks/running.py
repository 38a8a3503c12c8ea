"""Running an agent of a framework in the framework's own environment: with spanreplay off, recorded, and replayed."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordings.servers import Model
from spanreplay.replay import Run, build_runs, open_source

HERE = Path(__file__).parent
_KEYS = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")
_OFTEN_NEW = re.compile(r"rolled \d+|\d{4}-\d\d-\d\d[T ][\d:.]+Z?|[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|0x[0-9a-f]+")
"""What differs between two live runs of one agent: rolls of a die, times, uuids, addresses."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended, and what the model server was asked meanwhile."""

    code: int
    out: str
    err: str
    requests: list[str]
    """Path and body of each model request, what is new every time left out."""
    others: list[tuple[str, str]]
    bodies: list[str]
    """Tools whose bodies ran, sorted."""

    @property
    def answers(self) -> list[Any]:
        """The lines of JSON that the agent printed, also among others on standard error."""
        lines = [*self.out.splitlines(), *self.err.splitlines()]
        return [json.loads(line) for line in lines if line.startswith('{"mode"')]


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A framework's agent, in a folder to run it in.

    Args:
        name: folder of the case below this one.
        python: of the environment that it runs in.
        folder: working folder.
        program: the agent, a file of the case.
    """

    name: str
    python: Path
    folder: Path
    program: str = "agent.py"

    @property
    def agent(self) -> list[str]:
        """The agent's command, without its arguments."""
        return [str(self.python), str(HERE / self.name / self.program)]

    def live(self, script: Sequence[Mapping[str, Any]], *command: object, **variables: str) -> Done:
        """Run a command with a model server beside it that gives the turns of a script."""
        with Model(script) as model:
            addresses = {
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "OPENAI_API_BASE": f"{model.url}/v1",
                "ANTHROPIC_BASE_URL": model.url,
                "GOOGLE_GEMINI_BASE_URL": model.url,
                **dict.fromkeys(_KEYS, "a-key"),
            }
            done = self.run(*command, **addresses, **variables)
        asked = [_OFTEN_NEW.sub("…", f"{path} {json.dumps(body, sort_keys=True)}") for path, body in model.requests]
        return Done(**{**_fields(done), "requests": asked, "others": model.others})

    def run(self, *command: object, **variables: str) -> Done:
        """Run a command with no server anywhere."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SPANREPLAY_", "PYTHON", "VIRTUAL_ENV")) and k not in _KEYS
        }
        bodies = self.folder / "bodies"
        bodies.unlink(missing_ok=True)
        added = {"PYTHONPATH": str(HERE), "TOOL_BODIES": str(bodies), **variables}
        done = subprocess.run(
            [str(part) for part in command], cwd=self.folder, env=kept | added, capture_output=True, text=True, timeout=300, check=False
        )
        ran = sorted(bodies.read_text(encoding="utf-8").split()) if bodies.exists() else []
        return Done(code=done.returncode, out=done.stdout, err=done.stderr, requests=[], others=[], bodies=ran)

    def spanreplay(self, *arguments: object) -> list[object]:
        """A spanreplay command."""
        return [self.python, "-m", "spanreplay", *arguments]

    def exported(self) -> Path:
        """The last recorded command as a file of OTLP JSON."""
        path = self.folder / "exported.json"
        done = self.run(*self.spanreplay("export", "last", "-o", path))
        assert done.code == 0, done.err
        return path


def _fields(done: Done) -> dict[str, Any]:
    return {name: getattr(done, name) for name in ("code", "out", "err", "requests", "others", "bodies")}


def runs_in(path: Path) -> list[Run]:
    """The runs in a file of spans."""
    return build_runs(open_source(str(path)).records)
