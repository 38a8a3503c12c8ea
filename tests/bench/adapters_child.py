"""Runs in the environment of a framework, a process for each recorder: one agent again and again. Prints the CPU time of each round.

``adapters_child.py AGENT MODE RECORDER RUNS``, where a recorder is ``bare``, ``spanreplay``, ``spanreplay-read``, another one's
``module:Instrumentor``, or its ``module:SpanProcessor module:function``: the latter switches on the framework's own spans. When it is
ready it prints what it kept of a run, ``{"spans": …, "characters": of their attributes}``, and for each line on its standard input
``{"s": seconds a run, "spans": of all that it did}``.
The model's server is another process, and so is what other recorders export to.
"""

import contextlib
import functools
import gc
import importlib
import io
import json
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock


class Stamps(io.StringIO):
    """Standard output of the agent, which prints a line when a run is over: what a run costs without what is made once before all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = 0.0

    def write(self, text: str, /) -> int:
        """Keep when the first run was over."""
        if not self.first:
            self.first = time.process_time()
        return len(text)


class Kept:
    """How much a recorder keeps, looked at in a run that is not timed."""

    looking = False
    characters = 0

    @classmethod
    def add(cls, attributes: Any) -> None:
        """Of a span, or of its beginning or end."""
        if cls.looking:
            cls.characters += sum(len(str(value)) for value in (attributes or {}).values())


def none() -> int:
    """Nothing is left to write: it is with the operating system, or there is no recorder."""
    return 0


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """Count what is kept in this block."""
    with contextlib.ExitStack() as stack:
        recorder: Any = sys.modules.get("spanreplay.exporter.recorder")
        for name in ("started", "ended") if recorder is not None else ():
            observed = vars(recorder.Recorder)[name]

            def tells(self: Any, step: Any, observed: Callable[..., None] = observed) -> None:
                Kept.add(step.attributes)
                observed(self, step)

            stack.enter_context(mock.patch.object(recorder.Recorder, name, tells))
        Kept.looking = True
        yield
        Kept.looking = False


def ours(read: bool) -> Callable[[], int]:
    """Record into a store, as ``spanreplay record`` does.

    Args:
        read: every tool is taken for one that reads only: no intent is waited for until it is on the disk.
    """
    from spanreplay import recording
    from spanreplay.boundary import step

    if read:
        vars(step)["INTENT_EFFECTS"] = frozenset()
    recording.start(store=Path(tempfile.mkdtemp()))
    return lambda: recording.status().steps


def theirs(name: str) -> Callable[[], int]:
    """Record with another instrumentor, exported as its documentation says: OTLP, in batches, to a receiver of this machine."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    class Counting(SpanProcessor):
        spans = 0

        def on_end(self, span: Any) -> None:
            self.spans += 1
            Kept.add(span.attributes)

    provider, counting = TracerProvider(), Counting()
    made, *switches = (_named(part) for part in name.split())
    if issubclass(made, SpanProcessor):
        provider.add_span_processor(made())
    provider.add_span_processor(counting)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=os.environ["RECEIVER"])))
    if name.partition(":")[0].endswith("openai_agents"):
        importlib.import_module("agents").set_trace_processors([])  # the SDK's own, which sends to its maker
    if switches:
        trace.set_tracer_provider(provider)
    else:
        made().instrument(tracer_provider=provider)
    for switch in switches:
        switch()

    def exported() -> int:
        provider.force_flush()
        return counting.spans

    return exported


def _named(place: str) -> Any:
    module, _, path = place.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


def main() -> None:
    """Measure whenever it is asked for."""
    agent, mode, recorder, runs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    sys.path.insert(0, str(Path(agent).parent))
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print is no answer of ours
    if ":" in recorder:
        exported = theirs(recorder)
    else:
        exported = none if recorder == "bare" else ours(recorder == "spanreplay-read")

    def go(times: int) -> float:
        gc.collect()
        sys.argv = [agent, *[mode] * (times + 1)]
        with contextlib.redirect_stdout(Stamps()) as stamps:
            runpy.run_path(agent, run_name="__main__")
            exported()
        return (time.process_time() - stamps.first) / times

    go(1)
    openai_agents = sys.modules.get("agents")  # other instrumentors hear of what its own tracing tells, which the agent has switched off
    if openai_agents is not None and ":" in recorder:
        openai_agents.set_tracing_disabled(False)
    go(1)
    before = exported()
    with looking():
        go(1)
    of_two = exported() - before, Kept.characters
    print(json.dumps({"spans": of_two[0] / 2, "characters": of_two[1] / 2}), file=told, flush=True)
    for _ in sys.stdin:
        before = exported()
        took = go(runs)
        print(json.dumps({"s": took, "spans": exported() - before}), file=told, flush=True)
    os._exit(0)  # what is written when a process ends is none of a step's cost


main()
