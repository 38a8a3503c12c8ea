"""An agent of twenty steps, model and tool in turn, against a server that answers by what it is asked; recorded, and executed again."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from spanreplay.boundary.call import StepStarted
from spanreplay.instrumentation import agent_run, tool
from spanreplay.recording import control, in_progress
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution import keeping
from spanreplay.replay.reexecution.engine import Replayer, ReplayResult
from spanreplay.replay.reexecution.policy import Policy
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import LinkRecord, LogRecord, Resource, Scope, SpanRecord
from spanreplay.store.process import ProcessInfo, current_process
from spanreplay.store.store import Store
from support.model_server import ModelServer, Scripted, as_json, chat

TURNS = 10
WRITES = (6, 14)
"""The steps that write; every other tool only reads."""
CALLS: list[tuple[str, int]] = []
"""What the bodies of tools did."""


class Echo(ModelServer):
    """A model that answers by what it is asked: the same again for the same question."""

    def next(self) -> Scripted:
        """The response to the latest request."""
        asked = json.loads(self.requests[-1].body)
        told = json.dumps([asked["messages"], asked["model"], asked.get("temperature")])
        return as_json({**chat(f"answer {hashlib.sha256(told.encode()).hexdigest()[:8]}"), "model": asked["model"]})

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of all requests."""
        return [json.loads(seen.body) for seen in self.requests]


@tool(effect="read")
def look(place: int) -> str:
    """Reads."""
    CALLS.append(("look", place))
    return f"seen {place}"


@tool(effect="write")
def note(place: int) -> str:
    """Writes."""
    CALLS.append(("note", place))
    return f"noted {place}"


def agent_of(server: ModelServer, turns: int = TURNS) -> Callable[[], list[str]]:
    """The agent: a model is asked, then a tool called, again and again. Gives what it was told by tools."""

    def agent() -> list[str]:
        told: list[str] = []
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]
        with agent_run("twenty", input="go") as run, httpx.Client(base_url=server.url, verify=False) as client:
            for turn in range(turns):
                asked = {"model": "small-1", "temperature": 1, "messages": messages}
                reply = client.post("/v1/chat/completions", json=asked).raise_for_status().json()
                messages.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
                told.append((note if 2 * turn + 2 in WRITES else look)(turn))
                messages.append({"role": "user", "content": told[-1]})
            run.output = told
        return told

    return agent


# ---- without a store ------------------------------------------------------------------------------------------------


_AT_END = (names.STEP_SEQ_END, names.STEP_OUTCOME, names.STEP_RESULT, names.GEN_AI_TOOL_CALL_RESULT, names.RUN_OUTPUT, names.RUN_EXIT_CODE)


class MemoryWriter:
    """What a journal is written by, into memory: a :class:`spanreplay.exporter.writer.Writer`."""

    def __init__(self) -> None:
        self.spans: dict[tuple[str, str], SpanRecord] = {}
        self.dropped = 0
        self.file: str | None = None

    @property
    def process(self) -> ProcessInfo:
        """Who writes."""
        return current_process()

    def open_step(self, step: StepStarted, *, kind: int, resource: Resource, scope: Scope) -> None:
        """A step has started."""
        made = SpanRecord(
            trace_id=step.trace_id,
            span_id=step.span_id,
            parent_span_id=step.parent_span_id,
            name=step.name,
            kind=kind,
            start_ns=step.start_ns,
            attributes=dict(step.attributes),
            resource=resource,
            scope=scope,
        )
        self.spans[step.trace_id, step.span_id] = made

    def open_plain(self, *_: Any) -> bool:
        """It takes records only."""
        return False

    def write_plain(self, *_: Any) -> bool:
        """It takes records only."""
        return False

    def open_span(self, record: SpanRecord) -> None:
        """A span has started."""
        self.spans[record.trace_id, record.span_id] = record

    def close_span(
        self, trace_id: str, span_id: str, *, end_ns: int, attributes: Mapping[str, Any], links: Sequence[LinkRecord] = (), **more: Any
    ) -> None:
        """A span has ended."""
        self.patch_span(trace_id, span_id, attributes=attributes, links=links)
        found = self.spans[trace_id, span_id]
        self.spans[trace_id, span_id] = replace(found, end_ns=end_ns, **more)

    def patch_span(
        self, trace_id: str, span_id: str, *, attributes: Mapping[str, Any], events: Sequence[Any] = (), links: Sequence[LinkRecord] = ()
    ) -> None:
        """Something is added to a span."""
        found = self.spans[trace_id, span_id]
        more: dict[str, Any] = {"links": (*found.links, *links), "events": (*found.events, *events)}
        more["attributes"] = {**found.attributes, **attributes}
        self.spans[trace_id, span_id] = replace(found, **more)

    def write_span(self, record: SpanRecord, origin: str) -> None:
        """A whole span."""
        self.spans[record.trace_id, record.span_id] = record

    def write_log(self, record: LogRecord) -> None:
        """Nothing looks at these."""

    def sync(self) -> None:
        """It is where it is."""

    close = sync

    def seen(self, trace_id: str, span_id: str) -> bool:
        """Whether the span was written."""
        return (trace_id, span_id) in self.spans

    def runs(self) -> list[Run]:
        """The runs that have steps."""
        return [run for run in build_runs(self.spans.values()) if run.steps]


class Scene:
    """An agent that was recorded, and is executed again; without a store."""

    def __init__(self, agent: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent = agent
        self.writer = writer = MemoryWriter()
        for module in (in_progress, keeping):
            monkeypatch.setattr(module, "get_writer", lambda *_, **__: writer)
        monkeypatch.setattr(in_progress, "compact_at_end", lambda *_: None)
        monkeypatch.setattr(keeping, "make_folder", lambda _: None)
        control.start(store="not-there")
        try:
            self.value: Any = agent()
        except Exception as error:
            self.value = error
        finally:
            control.stop()
        (self.run,) = writer.runs()

    def crash(self, seq: int) -> None:
        """Make the record what it would be if the process had been killed in this step: nothing has ended since, nothing more began."""
        at = next(step for step in self.run.steps if step.seq == seq)
        limit = at.seq_start or 0
        for key, span in list(self.writer.spans.items()):
            started, ended = (int(str(span.attributes.get(name, 0))) for name in (names.STEP_SEQ_START, names.STEP_SEQ_END))
            if started > limit:
                del self.writer.spans[key]
            elif ended > limit or names.RUN_COMMAND in span.attributes:
                began = {name: value for name, value in span.attributes.items() if name not in _AT_END}
                self.writer.spans[key] = replace(span, end_ns=None, attributes=began)
        (self.run,) = self.writer.runs()

    def replayer(self, **options: Any) -> Replayer:
        """What executes it again."""
        CALLS.clear()
        return Replayer(self.run, store="not-there", **options)

    def fork(self, agent: Callable[[], Any] | None = None, **options: Any) -> ReplayResult:
        """Fork it."""
        return self.replayer().fork(**options).replay(agent or self.agent)

    def mixed(self, agent: Callable[[], Any] | None = None, **policy: Any) -> ReplayResult:
        """Execute it again, with this policy."""
        return self.replayer(policy=Policy(**policy)).replay(agent or self.agent)

    def made(self, result: ReplayResult) -> Run:
        """The run that a re-execution was kept as."""
        (run_id,) = result.runs
        return next(run for run in self.writer.runs() if run.run_id == run_id)


# ---- with one -------------------------------------------------------------------------------------------------------


@contextmanager
def recorded_into(store: Path) -> Iterator[None]:
    """What is called in this block is recorded into a store."""
    control.start(store=store)
    try:
        yield
    finally:
        control.stop()


def runs_in(store: Path) -> list[Run]:
    """The runs of a store that are no bare command, as they began."""
    with Store.open(store) as opened:
        opened.compact()
        traces = opened.stale_traces()
        found = build_runs([*opened.traces(traces), *opened.logs(traces)])
    return [run for run in found if run.steps]
