"""An agent of twenty steps, model and tool in turn, against a server that answers by what it is asked; recorded into a store, and forked."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from spanreplay.instrumentation import agent_run, tool
from spanreplay.recording import control
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
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
