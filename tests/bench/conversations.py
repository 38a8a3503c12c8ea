"""Conversations that grow by a message and an answer a turn, every request with all that was said before: what keeping them takes."""

import contextvars
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import duckdb
import httpx2

from bench.cases import recorded
from spanreplay import recording
from spanreplay.instrumentation import agent_run
from spanreplay.replay.rebuilding.runs import index
from spanreplay.store.store import Store
from support.size import FULL

URL = "http://model.test/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How many times more the one takes than the other."""

    name: str
    goal: float
    """Met at or above this."""
    median: float
    other: float
    ours: float
    unit: str
    note: str = ""

    @property
    def verdict(self) -> Literal["met", "missed", "reported"]:
        """At sizes below those that are claimed, only reported; so is what could not be measured."""
        if not FULL or not self.ours:
            return "reported"
        return "met" if self.median >= self.goal else "missed"

    def line(self) -> str:
        """One line for people."""
        note = f"  ({self.note})" if self.note else ""
        return (
            f"{self.verdict:9}  {self.name}: {self.median:.1f}  goal >= {self.goal:g}"
            f"  other {self.other:.1f} {self.unit}, ours {self.ours:.1f} {self.unit}{note}"
        )

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {**asdict(self), "verdict": self.verdict}


def source_text() -> str:
    """A few megabytes of what people write: the sources of the standard library."""
    folder = Path(json.__file__).parent.parent
    return "".join(path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.py")))


def _slices(turns: int, chance: random.Random, source: str) -> Iterator[str]:
    for _ in range(2 * turns):
        start, size = chance.randrange(len(source) - 4000), chance.randrange(200, 2200)
        yield source[start : start + size]


@contextmanager
def kept(turns: int, runs: int) -> Iterator[tuple[Store, list[str], list[tuple[str, int, str]]]]:
    """A store with interleaved conversations, the traces that they are, and every request: trace, turn, body."""
    source, bodies = source_text(), list[tuple[str, int, str]]()
    answers: list[str] = []

    def reply(_: httpx2.Request) -> httpx2.Response:
        message = {"role": "assistant", "content": answers[-1]}
        return httpx2.Response(
            200,
            json={
                "id": f"chatcmpl-{len(bodies)}",
                "object": "chat.completion",
                "model": "gpt-4o-mini",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10},
            },
        )

    with recorded() as store:
        client = httpx2.Client(transport=httpx2.MockTransport(reply))
        talks = []
        for number in range(runs):
            context = contextvars.copy_context()
            run = agent_run(f"agent {number}")
            context.run(run.__enter__)
            talks.append((context, run, [{"role": "system", "content": source[:3000]}], _slices(turns, random.Random(number), source)))
        for turn in range(turns):
            for number, (context, _, messages, said) in enumerate(talks):
                messages.append({"role": "user", "content": next(said)})
                answers.append(next(said))
                body = json.dumps({"model": "gpt-4o-mini", "messages": messages}, ensure_ascii=False)
                bodies.append((str(number), turn, body))
                context.run(client.post, URL, content=body.encode(), headers={"content-type": "application/json"}).json()
                messages.append({"role": "assistant", "content": answers.pop()})
        for context, run, _, _ in talks:
            context.run(run.__exit__, None, None, None)
        recording.stop()
        opened = Store.open(store)
        opened.compact()
        index(opened)
        traces = [
            str(trace)
            for (trace,) in opened.query("SELECT trace_id FROM spans WHERE step_kind = 'agent' ORDER BY CAST(agent[7:] AS INT)").rows
        ]
        yield opened, traces, bodies


@contextmanager
def whole(bodies: list[tuple[str, int, str]], path: Path) -> Iterator[Path]:
    """A table of whole requests, as compressed as DuckDB can."""
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE prompts (run VARCHAR, turn INT, prompt VARCHAR USING COMPRESSION zstd)")
    appender = connection.appender("prompts", columns=["run", "turn", "prompt"])
    for start in range(0, len(bodies), 512):
        appender.append_rows(bodies[start : start + 512])
        appender.flush()
    connection.execute("CHECKPOINT")
    connection.close()
    yield path


def _empty(folder: Path) -> int:
    store = Store.open(folder / "empty", create=True)
    store.find_runs()
    return (store.path / "runs.duckdb").stat().st_size


@cache
def measure(turns: int, runs: int, goal: float) -> tuple[Times, Times]:
    """Size of the store, and the time to load a run of it."""
    found: list[Times] = []
    with tempfile.TemporaryDirectory() as folder, kept(turns, runs) as (store, traces, bodies):
        with whole(bodies, Path(folder) / "whole.duckdb") as path:
            used, theirs = (store.path / "runs.duckdb").stat().st_size, path.stat().st_size
            raw = sum(len(body.encode()) for _, _, body in bodies)
            found.append(
                Times(
                    name=f"{turns}-turn conversations: table of whole prompts / the store",
                    goal=goal,
                    median=theirs / used,
                    other=theirs / 1e6,
                    ours=used / 1e6,
                    unit="MB",
                    note=f"{runs} interleaved, {raw / 1e6:.0f} MB of prompts; an empty store has {_empty(Path(folder)) / 1e6:.1f} MB",
                )
            )
            mine, others = [], []
            for number in range(min(runs, 5)):
                start = time.process_time()
                connection = duckdb.connect(str(path), read_only=True)
                rows = connection.execute("SELECT prompt FROM prompts WHERE run = $1 ORDER BY turn", [str(number)]).fetchall()
                connection.close()
                others.append(time.process_time() - start)
                start = time.process_time()
                spans = list(store.traces([traces[number]]))
                bodies_of = [
                    span.attributes["spanreplay.wire.request.body"] for span in spans if "spanreplay.wire.request.body" in span.attributes
                ]
                mine.append(time.process_time() - start)
                assert len(bodies_of) == len(rows)
            assert all(mine == theirs or "[redacted:" in str(mine) for mine, (theirs,) in zip(bodies_of, rows, strict=True))
            ours, other = sorted(mine)[len(mine) // 2], sorted(others)[len(others) // 2]
            found.append(
                Times(
                    name=f"{turns}-turn conversations: loading a run of whole prompts / of the store",
                    goal=10,
                    median=other / ours,
                    other=other * 1e3,
                    ours=ours * 1e3,
                    unit="ms",
                )
            )
    size, load = found
    return size, load


def size_50() -> Times:
    """Conversations of 50 turns, interleaved: the whole store against whole prompts in a compressed column."""
    return measure(50, 64 if FULL else 8, 8)[0]


def load_50() -> Times:
    """All that was recorded of one of them, and its requests as texts, against its whole prompts."""
    return measure(50, 64 if FULL else 8, 8)[1]


def size_200() -> Times:
    """The same of 200 turns."""
    return measure(200, 12 if FULL else 2, 12)[0]


def load_200() -> Times:
    """The same of 200 turns."""
    return measure(200, 12 if FULL else 2, 12)[1]
