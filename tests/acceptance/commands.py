"""Running ``spanreplay`` and agents as a user does: commands in a folder of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs, index
from spanreplay.store.store import Store
from support import nursery

TESTS: Final = Path(__file__).resolve().parents[1]
AGENTS: Final = Path(__file__).resolve().parent / "agents"
WIRE: Final = TESTS / "fixtures" / "wire"
MATERIAL: Final = TESTS.parents[1] / "shared" / "material" / "cassettes"

NO_MATERIAL: Final = "needs the recordings in ../shared/material, which a clone of this repository does not have"
EQUAL: Final = re.compile(r"^0 differences$", re.MULTILINE)


def agent(name: str, *arguments: str) -> list[str]:
    """The command of one of the agents beside this file."""
    return [sys.executable, str(AGENTS / f"{name}.py"), *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What an agent printed: its lines of JSON, as text."""
        return [line for line in self.out.splitlines() if line.startswith("{")]

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A working folder, with a store beside it, marks of tools that ran, and a folder for temporary files.

    Attributes:
        root: holds all four.
        environment: set for every command.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """Where commands run."""
        return self.root / "work"

    @property
    def store(self) -> Path:
        """Where ``record`` keeps."""
        return self.root / "store"

    @property
    def marks(self) -> list[str]:
        """Names of the tools whose bodies ran, sorted."""
        return sorted(file.name.rpartition("-")[0] for file in (self.root / "marks").iterdir())

    @classmethod
    def laid_out(cls, root: Path, environment: Mapping[str, str] | None = None) -> "Desk":
        """Make the folders."""
        for name in ("work", "marks", "temporary"):
            (root / name).mkdir(parents=True)
        return cls(root=root, environment=dict(environment or {}))

    def variables(self, store: Path | None = None) -> dict[str, str]:
        """The environment of every command."""
        foreign = ("SPANREPLAY_", "OTEL_", "OPENAI_", "ANTHROPIC_", "TRACEPARENT")
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(foreign)},
            "PYTHONPATH": str(TESTS),
            "PYTHONIOENCODING": "utf-8",
            "SPANREPLAY_STORE": str(store or self.store),
            "MARKS": str(self.root / "marks"),
            "TMPDIR": str(self.root / "temporary"),
            "NO_PROXY": "127.0.0.1",
            **self.environment,
        }

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> Done:
        """Run a command in :attr:`work`."""
        done = subprocess.run(command, cwd=self.work, env=variables, capture_output=True, text=True, encoding="utf-8", timeout=110)
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def spanreplay(self, *arguments: str | Path, command: Sequence[str] = (), store: Path | None = None) -> Done:
        """Run ``spanreplay ARGUMENTS [-- COMMAND]``."""
        line = [*arguments, *(["--", *command] if command else [])]
        done = nursery.spanreplay(*line, folder=self.work, environment=self.variables(store))
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def record(self, command: Sequence[str]) -> Done:
        """``spanreplay record -- COMMAND``."""
        return self.spanreplay("record", command=command)

    def carried_over(self, form: str = "otlp-json") -> Path:
        """Export the last run and import it into a store that was empty; returns that store."""
        file, other = self.root / f"run.{form}", self.root / f"store-{form}"
        exported = self.spanreplay("export", "last", "--format", form, "-o", file)
        assert exported.code == 0, exported
        imported = self.spanreplay("import", file, store=other)
        assert imported.code == 0, imported
        return other

    def replay(self, command: Sequence[str], *options: str | Path, target: str | Path = "last", store: Path | None = None) -> Done:
        """``spanreplay replay TARGET OPTIONS -- COMMAND``."""
        return self.spanreplay("replay", target, *options, command=command, store=store)


def runs_of(folder: Path) -> list[Run]:
    """Every run of a store, in the order they began."""
    with Store.open(folder) as store:
        store.compact()
        index(store)
        traces = {trace for row in store.find_runs() for trace in store.traces_of(row.run_id)}
        return sorted(build_runs([*store.traces(sorted(traces)), *store.logs(sorted(traces))]), key=lambda run: run.started_ns)


def assert_equal(recorded: Done, replayed: Done) -> None:
    """The replay answered everything, found no difference, and the agent printed the very same lines."""
    assert replayed.code == 0, str(replayed)
    assert EQUAL.search(replayed.out), str(replayed)
    assert recorded.lines, str(recorded)
    assert replayed.lines == recorded.lines
