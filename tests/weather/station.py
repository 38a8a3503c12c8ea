"""Running agents in bad weather, with and without recording, and reading what was kept."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from spanreplay.content.redaction import mask
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import SpanRecord
from spanreplay.store.store import Store
from support import nursery
from support.model_server import ModelServer, as_json, chat
from support.nursery import Nursery

TESTS: Final = Path(__file__).resolve().parents[1]
AGENTS: Final = Path(__file__).resolve().parent / "agents"
NEEDED: Final = (
    "httpx",
    "logfire",
    "openai.resources.chat.completions",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk.trace",
)
"""What agents in the nursery need not import: nothing of ours, so that each decides itself when recording starts."""
CITY: Final = '{"city": "Paris"}'
ANSWERS: Final = (
    as_json(chat(None, [("call_1", "forecast", CITY), ("call_2", "book", CITY)])),
    as_json({"error": {"message": "no such city", "type": "bad", "param": None, "code": "bad"}}, status=400),
    as_json(chat("Take an umbrella.")),
)
"""What the model says to :mod:`weather.agents.travel`: two tool calls, an error, an answer."""

STEPS: Final = [
    ("model_call", "gpt-4o-mini", "ok"),
    ("tool_call", "forecast", "ok"),
    ("tool_call", "book", "error"),
    ("model_call", "gpt-4o-mini", "error"),
    ("model_call", "gpt-4o-mini", "ok"),
]
"""Kind, name and outcome of what it does then."""

_INHERITED: Final = ("SPANREPLAY_", "OTEL_", "OPENAI_", "TRACEPARENT", "LOGFIRE_", "PYTHON")
_OURS: Final = re.compile(r"^spanreplay (could|does)|^\d+ record.* could not be kept")


def agent(name: str, *arguments: str) -> list[str]:
    """The command of an agent beside this file."""
    return [sys.executable, str(AGENTS / f"{name}.py"), *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """Lines on stderr that are ours: log lines, which the standard library prints where no logging is set up."""
        return [line for line in self.err.splitlines() if _OURS.search(line)]

    def after_nursery(self) -> str:
        """What is on stderr, without the lines that ``record`` ends with and the frames in which the nursery starts an agent."""
        kept = re.sub(r"^spanreplay: kept .*\n(  .*\n)*", "", self.err, flags=re.MULTILINE)
        return re.sub(r'  File "(.*nursery_process.py|<frozen runpy>)".*\n(    .*\n)*', "", kept)

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A working folder, a store beside it, and a model on loopback."""

    root: Path
    model: ModelServer
    nursery: Nursery
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        """Where runs are kept."""
        return Path(self.environment.get("SPANREPLAY_STORE", self.root / "store"))

    def at(self, store: Path) -> "Station":
        """The same with another store."""
        return replace(self, environment={**self.environment, "SPANREPLAY_STORE": str(store)})

    @property
    def work(self) -> Path:
        """Where commands run."""
        return self.root / "work"

    def with_path(self, folder: Path) -> "Station":
        """The same with another folder on ``PYTHONPATH``."""
        return replace(self, environment={**self.environment, "PYTHONPATH": os.pathsep.join([str(folder), str(TESTS)])})

    def variables(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of every command: none of the variables that the tests themselves were started with."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(_INHERITED)},
            "PYTHONPATH": str(TESTS),
            "SPANREPLAY_STORE": str(self.store),
            "THEIR_SPANS": str(self.root / "their-spans.jsonl"),
            "NO_PROXY": "127.0.0.1",
            **self.environment,
            **(extra or {}),
        }

    def run(self, command: Sequence[str], variables: Mapping[str, str] | None = None, **options: Any) -> Done:
        """Run a command as it is."""
        self.model.script(*ANSWERS)
        (self.root / "their-spans.jsonl").unlink(missing_ok=True)
        done = subprocess.run(
            command, cwd=self.work, env=self.variables(variables), capture_output=True, text=True, timeout=100, check=False, **options
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def fork(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> Done:
        """Run an agent in a fork of the nursery, which spares it its imports."""
        self.model.script(*ANSWERS)
        (self.root / "their-spans.jsonl").unlink(missing_ok=True)
        done = self.nursery.run(command[1:], folder=self.work, environment=self.variables(variables), place=self.root)
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def record(self, command: Sequence[str], variables: Mapping[str, str] | None = None, **options: Any) -> Done:
        """``spanreplay record -- COMMAND``."""
        if options:
            return self.run([sys.executable, "-m", "spanreplay", "record", "--", *command], variables, **options)
        return self.spanreplay("record", "--", *command, variables=variables)

    def spanreplay(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Done:
        """Any other command of ours."""
        self.model.script(*ANSWERS)
        (self.root / "their-spans.jsonl").unlink(missing_ok=True)
        done = nursery.spanreplay(*arguments, folder=self.work, environment=self.variables(variables))
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def apart(self, name: str) -> "Station":
        """Another station on the same model."""
        return build(self.root / name, self.model, self.nursery, self.environment)

    def their_spans(self) -> list[dict[str, Any]]:
        """What the application's own file exporter has got in the last command."""
        path = self.root / "their-spans.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def kept(self, store: Path | None = None) -> "Kept":
        """Everything in the store."""
        with Store.open(store or self.store) as opened:
            opened.compact()
            traces = [str(row[0]) for row in opened.query("SELECT DISTINCT trace_id FROM spans").rows]
            spans = list(opened.traces(traces))
            processes = sorted({str(span.attributes[names.PROCESS_ID]) for span in spans if names.PROCESS_ID in span.attributes})
            return Kept(spans=spans, runs=build_runs(spans, losses=opened.losses(processes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a store has."""

    spans: Sequence[SpanRecord]
    runs: Sequence[Run]

    @property
    def agents(self) -> list[Run]:
        """The runs of agents; that of the command is left out."""
        return [run for run in self.runs if not run.is_command]

    def one(self) -> Run:
        """The only run of an agent."""
        (run,) = self.agents
        return run

    def command(self) -> Run:
        """The run that the command is."""
        (run,) = (run for run in self.runs if run.is_command)
        return run

    @property
    def steps(self) -> list[SpanRecord]:
        """Spans of steps and agents."""
        return [span for span in self.spans if names.STEP_PATH in span.attributes]

    def foreign(self) -> list[SpanRecord]:
        """Spans that are the application's own."""
        return [span for span in self.spans if span.scope.name != names.SCOPE_NAME]

    def payloads(self) -> dict[str, dict[str, Any]]:
        """All content of every step, by causal path: whatever does not change from one run to the next."""
        found: dict[str, dict[str, Any]] = {}
        for span in self.spans:
            if names.STEP_PATH in span.attributes:
                found[str(span.attributes[names.STEP_PATH])] = {
                    name: _lasting(name, value) for name, value in span.attributes.items() if name not in _CHANGING
                }
        return found

    def assert_nothing_doubled(self, *, paths: bool = True) -> None:
        """No span twice, no step twice: two runs may have the same ``paths``, in one run they differ."""
        ids = [(span.trace_id, span.span_id) for span in self.spans]
        assert len(ids) == len(set(ids))
        places = [(span.attributes[names.STEP_PATH], None if paths else span.attributes[names.RUN_ID]) for span in self.steps]
        assert len(places) == len(set(places))


_CHANGING: Final = frozenset(
    {
        names.PROCESS_ID,
        names.STEP_PARENT,
        names.STEP_REQUESTED_BY,
        names.RUN_ID,
        names.RUN_COMMAND_ID,
        names.RUN_REDACTION,
        names.RUN_SEED,
        names.RUN_HASH_SEED,
    }
)


def _lasting(name: str, value: Any) -> Any:
    if name == names.WIRE_RESPONSE_CHUNKS:
        return [size for size, _ in json.loads(value)]
    if name == names.WIRE_RESPONSE_HEADERS:
        return [header for header in json.loads(value) if header[0] != "Date"]
    return mask(value) if isinstance(value, str) else value


def steps(run: Run) -> list[tuple[str, str, str]]:
    """Kind, name and outcome of every step of a run, in order."""
    return [(step.kind, step.name, step.outcome) for step in run.steps]


def build(root: Path, model: ModelServer, nursery: Nursery, environment: Mapping[str, str] | None = None) -> Station:
    """A station with empty folders."""
    (root / "work").mkdir(parents=True)
    return Station(root=root, model=model, nursery=nursery, environment=dict(environment or {}))
