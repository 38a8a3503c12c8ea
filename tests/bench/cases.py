"""What is measured. Each case makes its own two callables and tears down what it set up."""

import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import openai
import wrapt
from opentelemetry import trace
from opentelemetry.sdk.trace import SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from bench.measure import Rate, Ratio, ratio
from spanreplay import recording
from spanreplay.boundary import session as sessions
from spanreplay.boundary.scope import process
from spanreplay.boundary.session import RunContext, entered
from spanreplay.exporter.recorder import Recorder
from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.answering import prepared
from spanreplay.replay.reexecution.ledger import Ledger

_WORDS = "the agent asked a tool for what it needed and the model went on with the answer it was given".split()


def text(size: int, seed: int = 0) -> str:
    """Prose of about ``size`` characters."""
    chance = random.Random(seed)
    words = [chance.choice(_WORDS) + str(chance.randrange(1000)) for _ in range(size // 6)]
    return " ".join(words)[:size]


@contextmanager
def recorded(provider: TracerProvider | None = None, session_attributes: dict[str, str] | None = None) -> Iterator[Path]:
    """A recording into a store of its own; ``provider`` is one that it joins although it is not the application's."""
    with tempfile.TemporaryDirectory() as folder:
        recording.start(store=Path(folder) / "store", tracer_provider=provider, session_attributes=session_attributes)
        try:
            yield Path(folder) / "store"
        finally:
            recording.stop()


ASKED, ANSWERED = text(2000), text(500, 1)


def _span_by_hand(tracer: Tracer) -> Callable[[], None]:
    """A tool span as people write it with the SDK alone."""
    arguments, result = json.dumps({"query": ASKED}), json.dumps(ANSWERED)

    def bare() -> None:
        with tracer.start_as_current_span("execute_tool search") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", "search")
            span.set_attribute("gen_ai.tool.call.arguments", arguments)
            span.set_attribute("gen_ai.tool.call.result", result)
            span.set_attribute("gen_ai.agent.name", "bench")

    return bare


def _application_provider() -> TracerProvider:
    """The tracer provider of this process; it can be set but once."""
    found = trace.get_tracer_provider()
    if not isinstance(found, TracerProvider):
        found = TracerProvider()
        trace.set_tracer_provider(found)
    return found


SESSION = {
    "session.id": "4711",
    "user.id": "ana",
    "gen_ai.conversation.id": "conversation-4711",
    "deployment.environment.name": "production",
    "service.version": "2026.11.29",
    "app.tenant": "north",
    "app.request.id": "5f0c2d9e",
}
"""What an application adds to each of its spans; with it a tool step has the 27 attributes that the store was measured with."""


def seen_content() -> Ratio:
    """A recorded tool step of 27 attributes and 6 kB against a span of the bare SDK that is given the same attributes, in one call."""
    provider, bare_provider = _application_provider(), TracerProvider()
    ended = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(ended))
    tracer = bare_provider.get_tracer("bench")  # asked for before the recording, which would join a provider that is asked later
    asked, answered = text(4200), text(1800, 1)

    @tool(effect="read", name="search")
    def search(query: str) -> str:
        """Search the company's documents."""
        return answered

    with recorded(session_attributes=SESSION), agent_run("bench"):
        search(asked)
        attributes = next(dict(span.attributes or {}) for span in ended.get_finished_spans() if span.name == "execute_tool search")
        heard = provider._active_span_processor
        heard._span_processors = tuple(each for each in heard._span_processors if isinstance(each, Recorder))

        def bare() -> None:
            with tracer.start_as_current_span("execute_tool search") as span:
                span.set_attributes(attributes)

        return ratio(
            "recorded step, content seen / bare SDK span with the same attributes",
            bare,
            lambda: search(asked),
            goal=3.5,
            times=200,
            pairs=150,  # it is close: a narrow interval decides it
            note=f"{len(attributes)} attributes",
        )


def small_span() -> Ratio:
    """The smallest recorded tool step against a span with the five attributes that people set by hand."""
    _application_provider()
    bare_provider = TracerProvider()
    bare = _span_by_hand(bare_provider.get_tracer("bench"))

    @tool(effect="read", name="search")
    def search(query: str) -> str:
        return ANSWERED

    with recorded(), agent_run("bench"):
        bare_provider._active_span_processor = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]  # stays bare
        return ratio("recorded step / bare SDK span with five attributes", bare, lambda: search(ASKED), goal=None, times=200)


def foreign_span() -> Ratio:
    """A span of other instrumentation that the recorder keeps, against the same span where nobody listens."""
    bare_provider, provider = TracerProvider(), TracerProvider()
    bare, heard = _span_by_hand(bare_provider.get_tracer("bench")), _span_by_hand(provider.get_tracer("bench"))

    with recorded(provider):
        bare_provider._active_span_processor = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]  # stays bare
        return ratio("somebody else's span, recorded / the same one bare", bare, heard, goal=None, times=200, note="2.5 is wanted")


def new_content() -> Ratio:
    """What new content adds to a recorded step, against ``json.dumps`` of the same text."""
    numbers = itertools.count()
    body = text(64_000)

    def fresh() -> str:
        return f"{next(numbers)} {body}"

    @tool(effect="read", name="read_page")
    def read_page(page: str) -> None:
        return None

    with recorded(), agent_run("bench"):
        return ratio(
            "recorded step with new content / json.dumps of it",
            lambda: json.dumps({"page": fresh()}),
            lambda: read_page(fresh()),
            goal=5,
            times=20,
            note="64 kB of text",
        )


def off() -> Ratio:
    """A tool with spanreplay off against an empty wrapt wrapper."""
    process.active = False

    def plain(query: str) -> str:
        return query

    @wrapt.decorator
    def nothing(wrapped, instance, args, kwargs):  # type: ignore[no-untyped-def]
        return wrapped(*args, **kwargs)

    wrapped, ours = nothing(plain), tool(effect="read")(plain)
    return ratio("call with the Boundary off / empty wrapt wrapper", lambda: wrapped("x"), lambda: ours("x"), goal=1.5, times=20_000)


REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": text(500)}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
}
MESSAGES = [{"role": "system", "content": text(300)}, {"role": "user", "content": text(700, 2)}]


def _client(replies: httpx2.MockTransport) -> openai.OpenAI:
    return openai.OpenAI(api_key="bench", base_url="http://model.test/v1", http_client=httpx2.Client(transport=replies))


def model_step() -> Ratio:
    """A replayed model step against the same SDK call over its own mock transport."""
    client = _client(httpx2.MockTransport(lambda _: httpx2.Response(200, json=REPLY)))

    def ask() -> object:
        return client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGES)  # type: ignore[arg-type]

    rounds = 20
    pairs = 40
    run = _recorded_run(lambda: [ask() for _ in range(1)])
    many = _repeated(run, (rounds + 10) * (pairs + 4))
    session = prepared([many], Ledger()).session
    scope = session.root(RunContext(run_id="replay", name="replay", fallback=True))

    def replayed() -> object:
        with entered(scope):
            return ask()

    return ratio("replayed model step / SDK over its mock transport", ask, replayed, goal=1.25, times=rounds, pairs=pairs)


def stubbed_tools() -> Rate:
    """Stubbed tool steps a second on one core."""
    import time

    @tool(effect="read")
    def look_up(key: int) -> dict[str, int]:
        raise AssertionError("the body must not run")

    @tool(effect="read", name="look_up")
    def live(key: int) -> dict[str, int]:
        return {"key": key}

    run = _recorded_run(lambda: [live(1)])
    steps = 5000
    rates = []
    for _ in range(5):
        session = prepared([_repeated(run, steps)], Ledger()).session
        with entered(session.root(RunContext(run_id="replay", name="replay", fallback=True))):
            start = time.process_time()
            for _ in range(steps):
                look_up(1)
            rates.append(steps / (time.process_time() - start))
    return Rate(name="stubbed tool steps a second", goal=5000, median=statistics.median(rates), slowest=min(rates))


def _recorded_run(body: Callable[[], object]) -> Run:
    from spanreplay.cli.target import load

    with recorded() as store:
        body()
        recording.stop()
        return load("last", store).one()


def _repeated(run: Run, times: int) -> Run:
    """The run with its one step recorded over and over, one after the other."""
    from dataclasses import replace

    step = run.steps[0]
    base = step.path.rpartition("#")[0] if step.path else ""
    steps = [
        replace(step, seq=i + 1, path=f"{base}#{i}", seq_start=2 * i + 1, seq_end=2 * i + 2, parent_seq=None, overlaps=())
        for i in range(times)
    ]
    return replace(run, steps=tuple(steps))


def help_time() -> Ratio:
    """``spanreplay --help`` against ``python -c "import click"``, in processes of their own."""
    import resource

    program = str(Path(sys.executable).parent / "spanreplay")

    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def run(*argv: str) -> None:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    return ratio(
        "spanreplay --help / python -c 'import click'",
        lambda: run(sys.executable, "-c", "import click"),
        lambda: run(program, "--help"),
        goal=2,
        times=1,
        pairs=30,
        clock=children,
    )


def deactivate() -> None:
    """Leave nothing active behind."""
    sessions.deactivate()
