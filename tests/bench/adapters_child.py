"""Runs in the environment of a framework: one agent again and again, bare and under each recorder in turn. Prints its CPU times as JSON.

``adapters_child.py AGENT MODE ROUNDS {"recorder": "module:Instrumentor", …}``. The model's server is another process.
"""

import contextlib
import gc
import importlib
import io
import json
import runpy
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from spanreplay import recording
from spanreplay.boundary import step

RUNS = 4
"""Runs of the agent in a round, after one that is not timed: what is done once, at the first call, is none of a step's cost."""


class Nowhere(SpanExporter):
    """What another recorder's spans go to: it costs nothing."""

    spans = 0

    def export(self, spans: Any) -> SpanExportResult:
        """Forget them."""
        Nowhere.spans += len(spans)
        return SpanExportResult.SUCCESS


PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(Nowhere()))


@contextlib.contextmanager
def bare() -> Iterator[None]:
    """Nothing watches."""
    yield


@contextlib.contextmanager
def ours() -> Iterator[None]:
    """Recorded by spanreplay, into a store."""
    with tempfile.TemporaryDirectory() as folder:
        recording.start(store=Path(folder))
        try:
            yield
        finally:
            recording.stop()


@contextlib.contextmanager
def ours_read() -> Iterator[None]:
    """The same where every tool is declared to read only: no intent is waited for until it is on the disk."""
    with mock.patch.object(step, "INTENT_EFFECTS", frozenset()), ours():
        yield


@contextlib.contextmanager
def theirs(name: str) -> Iterator[None]:
    """Recorded by another instrumentor."""
    module, _, kind = name.partition(":")
    instrumentor = getattr(importlib.import_module(module), kind)()
    instrumentor.instrument(tracer_provider=PROVIDER)
    openai_agents = sys.modules.get("agents")  # theirs hear of what its own tracing tells, which the agent here has switched off
    if openai_agents is not None:
        openai_agents.set_tracing_disabled(False)
    try:
        yield
    finally:
        if openai_agents is not None:
            openai_agents.set_tracing_disabled(True)
        instrumentor.uninstrument()


def main() -> None:
    """Measure."""
    agent, mode, rounds, others = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    sys.path.insert(0, str(Path(agent).parent))
    recorders: dict[str, Any] = {"bare": bare, "spanreplay": ours, "spanreplay, tools that read": ours_read}
    recorders |= {name: (lambda where=where: theirs(where)) for name, where in others.items()}
    found: dict[str, list[float]] = {name: [] for name in recorders}
    names, seen = list(recorders), dict.fromkeys(recorders, 0)
    for number in range(-2, rounds):
        turn = number % len(names)
        for name in (*names[turn:], *names[:turn]):
            gc.collect()
            before = Nowhere.spans
            with recorders[name](), contextlib.redirect_stdout(io.StringIO()):
                sys.argv = [agent, mode]
                runpy.run_path(agent, run_name="__main__")
                sys.argv = [agent, *[mode] * RUNS]
                start = time.process_time()
                runpy.run_path(agent, run_name="__main__")
                took = (time.process_time() - start) / RUNS
            seen[name] = Nowhere.spans - before
            if number >= 0:
                found[name].append(took)
    silent = [name for name in others if not seen[name]]
    if silent:
        raise SystemExit(f"no span of {', '.join(silent)}: nothing is compared")
    print(json.dumps(found))


main()
