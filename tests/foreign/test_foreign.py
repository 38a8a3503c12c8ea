"""Real agents of real frameworks, recorded by other people's instrumentation alone, and run again from their spans.

Each folder here is a case: an agent, and the versions it is run with. A model server with the weather scenario of ``tests/recordings``
answers while it is recorded; when it is run again there is none.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from foreign.environments import HERE, cases, environment
from recordings.servers import Model, Receiver
from spanreplay.replay import build_runs, open_source
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record, SpanRecord, Value

pytestmark = [
    pytest.mark.skipif(not os.environ.get("SPANREPLAY_FOREIGN"), reason="installs seven frameworks: `make foreign` runs it"),
    pytest.mark.timeout(900),
]

SCRIPT = json.loads((HERE.parent / "recordings" / "script.json").read_text(encoding="utf-8"))
QUESTION = "What is the weather in Paris and in Oslo?"
ANSWER = SCRIPT[-1]["text"]
KEYS = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def replay(self) -> Any:
        """What is under ``replay`` in the document that it printed."""
        return json.loads(self.out)["replay"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One agent, in a folder to run it in."""

    name: str
    python: Path
    folder: Path

    @property
    def bodies(self) -> list[str]:
        """The tools whose bodies ran since this was asked last."""
        file = self.folder / "bodies"
        ran = file.read_text(encoding="utf-8").split() if file.exists() else []
        file.unlink(missing_ok=True)
        return ran

    def run(self, *arguments: object, **variables: str) -> Done:
        """A command in the case's environment."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SPANREPLAY_", "PYTHON", "VIRTUAL_ENV")) and k not in KEYS
        }
        added = {"PYTHONPATH": str(HERE), "TOOL_BODIES": str(self.folder / "bodies"), **variables}
        done = subprocess.run(
            [str(self.python), *map(str, arguments)],
            cwd=self.folder,
            env=kept | added,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    def recorded(self) -> Path:
        """The file of what the agent's own instrumentation exported."""
        with Model(SCRIPT) as model, Receiver() as receiver:
            addresses = {
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "GOOGLE_GEMINI_BASE_URL": model.url,
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
                "OPENAI_API_KEY": "a-key",
                "GOOGLE_API_KEY": "a-key",
            }
            done = self.run(HERE / self.name / "agent.py", QUESTION, **addresses)
            assert (done.code, done.out.strip()) == (0, ANSWER), done
            assert (len(model.requests), model.others) == (3, [])
            assert sorted(self.bodies) == ["get_alerts", "get_weather", "get_weather"]
            records = [record for batch in receiver.batches for record in batch]
        return self.file("spans.json", records)

    def file(self, name: str, records: list[Record]) -> Path:
        """A file of spans."""
        path = self.folder / name
        path.write_text(json.dumps(otlp_json.encode(records)), encoding="utf-8")
        return path

    def replayed(self, spans: Path, question: str) -> Done:
        """The agent, run again from spans, with no server anywhere."""
        agent = [self.python, HERE / self.name / "agent.py", question]
        done = self.run("-m", "spanreplay", "replay", spans, "--json", "--", *agent)
        assert done.replay["refusals"] == [], done.err
        assert self.bodies == [], "a tool's body ran"
        return done


def steps(path: Path) -> Iterator[Any]:
    for run in build_runs(open_source(str(path)).records):
        yield from run.steps


def with_another_city(path: Path) -> list[Record]:
    """The spans, with the city changed in what the model answered the second time."""
    second = [step for step in steps(path) if step.kind == "model_call"][1]
    records: list[Record] = []
    for record in open_source(str(path)).records:
        if isinstance(record, SpanRecord) and record.span_id == second.span_id:
            events = tuple(replace(event, attributes=_answered(event.attributes)) for event in record.events)
            record = replace(record, attributes=_answered(record.attributes), events=events)
        records.append(record)
    return records


def _answered(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: value.replace("Oslo", "Bergen") if isinstance(value, str) and ("output" in name or "response" in name) else value
        for name, value in attributes.items()
    }


@pytest.mark.parametrize("name", cases())
def test_an_agent_runs_again_from_what_others_recorded(name: str, tmp_path: Path) -> None:
    case = Case(name=name, python=environment(name) / "bin" / "python", folder=tmp_path)
    spans = case.recorded()
    calls = [(step.kind, step.name, step.grade) for step in steps(spans) if step.kind in ("model_call", "tool_call")]
    assert [grade for _, _, grade in calls] == ["semantic"] * 6
    assert sorted(name for kind, name, _ in calls if kind == "tool_call") == ["get_alerts", "get_weather", "get_weather"]

    same = case.replayed(spans, QUESTION)
    assert (same.code, same.replay["equal"], same.replay["differences"]) == (0, True, []), same.err
    assert ANSWER in same.err.splitlines(), same.err
    told = same.replay["steps"]
    assert (told["matched"], told["matched_by_meaning"], told["order_relaxed"]) == (6, 6, 0)
    assert told["recorded"] == 6 + sum(told["passed"].values()), "an agent's own step needs no answer"

    word = case.replayed(spans, QUESTION.replace("What is", "What was"))
    (found,) = word.replay["differences"]
    assert (word.code, found["kind"], found["recorded"]) == (1, "input", json.dumps(QUESTION))
    assert ANSWER not in word.err

    argument = case.replayed(case.file("changed.json", with_another_city(spans)), QUESTION)
    (found,) = argument.replay["differences"]
    assert (argument.code, found["name"], found["field"], found["recorded"], found["actual"]) == (
        1,
        "tool_call get_alerts",
        "arguments.city",
        '"Oslo"',
        '"Bergen"',
    )
