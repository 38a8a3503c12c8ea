"""The recorder: each span once, whole, whatever the application does with its telemetry."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from spanreplay.boundary import reports
from spanreplay.boundary.boundary import begin
from spanreplay.boundary.call import Call, StepEnded, StepStarted
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunContext, Session, entered
from spanreplay.content import codec
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter.convert import Converter
from spanreplay.exporter.recorder import Recorder
from spanreplay.semconv import attributes as names
from spanreplay.spans import record
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, SpanRecord, Value
from spanreplay.store.record_text import step_record


class Journal:
    """A writer that keeps what it is given, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.dropped = 0
        self.syncs: list[int] = []
        self._seen: set[tuple[str, str]] = set()

    def open_step(self, step: StepStarted, *, kind: int, resource: record.Resource, scope: record.Scope) -> None:
        self.open_span(step_record(step, kind=kind, resource=resource, scope=scope))

    def open_plain(self, *_: Any, **__: Any) -> bool:
        return False

    def write_plain(self, *_: Any, **__: Any) -> bool:
        return False

    def open_span(self, record: SpanRecord) -> None:
        self._seen.add((record.trace_id, record.span_id))
        self.lines.append(("open", record))

    def write_span(self, record: SpanRecord, origin: str) -> None:
        self._seen.add((record.trace_id, record.span_id))
        self.lines.append((origin, record))

    def close_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        end_ns: int,
        status: int,
        status_message: str,
        attributes: Mapping[str, Value],
        events: tuple[EventRecord, ...] = (),
        links: tuple[LinkRecord, ...] = (),
    ) -> None:
        self.lines.append(("close", {"span_id": span_id, "status": status, "attributes": attributes, "events": events, "links": links}))

    def patch_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        attributes: Mapping[str, Value],
        events: Sequence[EventRecord] = (),
        links: Sequence[LinkRecord] = (),
    ) -> None:
        self.lines.append(("patch", attributes))

    def write_log(self, record: LogRecord) -> None:
        self.lines.append(("log", record))

    def sync(self) -> None:
        self.syncs.append(len(self.lines))

    def seen(self, trace_id: str, span_id: str) -> bool:
        return (trace_id, span_id) in self._seen

    def of(self, kind: str) -> list[Any]:
        return [what for found, what in self.lines if found == kind]


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def recorder(journal: Journal) -> Recorder:
    return Recorder(journal)


@pytest.fixture
def scope(recorder: Recorder) -> Iterator[Scope]:
    session = Session(mode="record", sink=recorder, open_spans=False, redactor=Redactor(RedactionPolicy.none()))
    scope = session.root(RunContext(run_id="r" * 32, name="test"))
    with entered(scope):
        yield scope


def provider_of(recorder: Recorder, **options: Any) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": "shop"}), **options)
    provider.add_span_processor(recorder)  # type: ignore[arg-type]  # it has the processor's methods
    return provider


def tool(scope: Scope, name: str = "search", **options: Any) -> Any:
    return begin(scope, Call(kind="tool_call", name=name, input=codec.encode({"q": "tea"}), **options))


# ---- steps -------------------------------------------------------------------------------------------------------


def test_a_step_is_kept_when_it_starts_and_when_it_ends(journal: Journal, scope: Scope) -> None:
    step = tool(scope)
    assert [kind for kind, _ in journal.lines] == ["open"]
    step.succeed("green")
    (opened,), (closed,) = journal.of("open"), journal.of("close")
    assert opened.scope.name == names.SCOPE_NAME
    assert opened.end_ns is None
    assert opened.attributes[names.RUN_ID] == "r" * 32
    assert json.loads(closed["attributes"][names.STEP_RESULT]) == "green"


@pytest.mark.parametrize(("effect", "synced"), [("write", True), ("irreversible", True), ("unknown", True), ("read", False), (None, False)])
def test_the_record_of_an_effect_is_on_disk_before_the_body_runs(journal: Journal, scope: Scope, effect: Any, synced: bool) -> None:
    tool(scope, effect=effect)
    assert journal.syncs == ([1] if synced else [])


def test_everything_is_synced_when_durability_is_disk(journal: Journal) -> None:
    recorder = Recorder(journal, durable=True)
    session = Session(mode="record", sink=recorder, open_spans=False)
    tool(session.root(None)).succeed(1)
    assert journal.syncs == [1, 2]


def test_what_a_user_adds_to_a_steps_span_is_kept_and_nothing_else_twice(
    journal: Journal, recorder: Recorder, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_of(recorder)
    use(provider, monkeypatch)
    scope.session.open_spans = True
    other = SpanContext(trace_id=7, span_id=9, is_remote=False, trace_flags=TraceFlags(1))
    step = tool(scope)
    step._span.span.set_attribute("shop.basket", 3)
    step._span.span.add_event("looked", {"shelf": "b"})
    step._span.span.add_link(other)
    step.fail(ValueError("no tea"))
    assert [kind for kind, _ in journal.lines] == ["open", "close"]
    closed = journal.of("close")[0]
    assert closed["attributes"]["shop.basket"] == 3
    assert names.STEP_DIGESTS not in closed["attributes"]
    assert not set(closed["attributes"]) & set(journal.of("open")[0].attributes)
    assert [event.name for event in closed["events"]] == ["exception", "looked"]
    assert [link.span_id for link in closed["links"]] == [f"{9:016x}"]
    assert journal.of("open")[0].resource.attributes["service.name"] == "shop"


def test_attribute_limits_and_samplers_lose_nothing_of_a_step(
    journal: Journal, recorder: Recorder, scope: Scope, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="opentelemetry.attributes")
    for options in ({"span_limits": SpanLimits(max_attributes=8, max_attribute_length=10)}, {"sampler": ALWAYS_OFF}):
        journal.lines.clear()
        provider = provider_of(recorder, **options)
        use(provider, monkeypatch)
        scope.session.open_spans = True
        step = tool(scope)
        step.succeed("x" * 100)
        assert [kind for kind, _ in journal.lines] == ["open", "close"]
        kept = {**journal.of("open")[0].attributes, **journal.of("close")[0]["attributes"]}
        assert json.loads(kept[names.STEP_RESULT]) == "x" * 100
        assert kept[names.STEP_KIND] == "tool_call"
        assert kept[names.STEP_OUTCOME] == "ok"


def test_a_span_of_ours_that_no_step_stands_behind_is_kept_whole(journal: Journal, recorder: Recorder, scope: Scope) -> None:
    tracer = provider_of(recorder).get_tracer(names.SCOPE_NAME)
    with tracer.start_as_current_span("lost step"):
        pass
    assert [(kind, record.name) for kind, record in journal.lines] == [("recorder", "lost step")]


# ---- foreign spans -----------------------------------------------------------------------------------------------


def test_a_foreign_span_leaves_evidence_when_it_starts_and_is_whole_when_it_ends(journal: Journal, recorder: Recorder) -> None:
    tracer = provider_of(recorder).get_tracer("their.tracer", "1.2", schema_url="https://example.org/schema")
    other = SpanContext(trace_id=7, span_id=9, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("k", "v")]))
    span = tracer.start_span("chat", kind=SpanKind.CLIENT, attributes={"a": 1}, links=[Link(other, {"why": "retry"})])
    assert [(kind, record.name, record.end_ns) for kind, record in journal.lines] == [("open", "chat", None)]
    span.set_attribute("gen_ai.response.id", "r1")
    span.add_event("token", {"n": 1})
    span.set_status(Status(StatusCode.ERROR, "cut"))
    span.end()
    (whole,) = journal.of("recorder")
    assert (whole.kind, whole.status, whole.status_message) == (3, 2, "cut")
    assert whole.attributes == {"a": 1, "gen_ai.response.id": "r1"}
    assert (whole.scope.name, whole.scope.version, whole.scope.schema_url) == ("their.tracer", "1.2", "https://example.org/schema")
    assert whole.events[0].attributes == {"n": 1}
    assert (whole.links[0].trace_state, whole.links[0].attributes) == ("k=v", {"why": "retry"})
    assert whole.resource.attributes == {"service.name": "shop"}
    assert whole.end_ns is not None
    assert whole.end_ns >= whole.start_ns


def test_a_foreign_span_gets_the_run_in_the_record_and_not_on_the_span(journal: Journal, recorder: Recorder, scope: Scope) -> None:
    sent = InMemorySpanExporter()
    provider = provider_of(recorder)
    provider.add_span_processor(SimpleSpanProcessor(sent))
    with provider.get_tracer("theirs").start_as_current_span("chat"):
        pass
    assert [record.attributes[names.RUN_ID] for _, record in journal.lines] == ["r" * 32] * 2
    assert not sent.get_finished_spans()[0].attributes


def test_the_run_is_found_by_the_parent_where_the_scope_is_not_known(journal: Journal, recorder: Recorder, scope: Scope) -> None:
    from opentelemetry import trace

    tracer = provider_of(recorder).get_tracer("theirs")
    with entered(scope):
        parent = tracer.start_span("outer")
    scope.run = None
    tracer.start_span("inner", context=trace.set_span_in_context(parent)).end()
    assert journal.of("recorder")[0].attributes[names.RUN_ID] == "r" * 32


def test_what_limits_drop_from_a_foreign_span_is_kept_here_and_only_here(
    journal: Journal, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="opentelemetry.attributes")
    sent = InMemorySpanExporter()
    provider = provider_of(recorder, span_limits=SpanLimits(max_attributes=8, max_events=1))
    provider.add_span_processor(SimpleSpanProcessor(sent))
    with provider.get_tracer("theirs").start_as_current_span("chat") as span:
        for number in range(11):
            span.set_attribute(f"k{number}", number)
        span.set_attribute("k5", "again")
        span.add_event("a")
        span.add_event("b")
    (whole,) = journal.of("recorder")
    assert whole.attributes == {**{f"k{number}": number for number in range(11)}, "k5": "again"}
    assert (whole.dropped_attributes, whole.dropped_events) == (0, 1)
    (theirs,) = sent.get_finished_spans()
    assert set(theirs.attributes or {}) == {f"k{number}" for number in range(3, 11)}
    assert theirs.dropped_attributes == 3


def test_attributes_cut_before_a_span_begins_are_counted(journal: Journal, recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="opentelemetry.attributes")
    tracer = provider_of(recorder, span_limits=SpanLimits(max_attributes=2)).get_tracer("theirs")
    span = tracer.start_span("chat", attributes={"a": 1, "b": 2, "c": 3})
    span.set_attribute("d", 4)
    span.end()
    (whole,) = journal.of("recorder")
    assert (whole.attributes, whole.dropped_attributes) == ({"b": 2, "c": 3, "d": 4}, 1)


def test_what_a_user_adds_survives_the_limit_too(
    journal: Journal, recorder: Recorder, scope: Scope, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="opentelemetry.attributes")
    use(provider_of(recorder, span_limits=SpanLimits(max_attributes=2)), monkeypatch)
    scope.session.open_spans = True
    step = tool(scope)
    step._span.span.set_attribute("shop.basket", 3)
    step.succeed(1)
    assert journal.of("close")[0]["attributes"]["shop.basket"] == 3


def test_spans_of_another_session_are_left_out(journal: Journal, recorder: Recorder) -> None:
    tracer = provider_of(recorder).get_tracer("theirs")
    replay = Session(mode="replay", sink=None, open_spans=False).root(None)
    with entered(replay), tracer.start_as_current_span("chat"):
        pass
    assert journal.lines == []


def test_copies_of_pending_spans_are_left_out(journal: Journal, recorder: Recorder) -> None:
    tracer = provider_of(recorder).get_tracer("logfire")
    tracer.start_span("pending", attributes={"logfire.span_type": "pending_span"}).end()
    assert journal.lines == []


def test_what_a_framework_reports_to_its_maker_is_left_out(journal: Journal, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "scopes", {"acme.usage"})
    for name in ("acme.usage", "acme"):
        provider_of(recorder).get_tracer(name).start_span("x").end()
    assert [line.scope.name for _, line in journal.lines] == ["acme", "acme"]


def test_secrets_in_foreign_spans_are_replaced_and_counted(journal: Journal) -> None:
    recorder = Recorder(journal, redactor=Redactor(RedactionPolicy.default()))
    tracer = provider_of(recorder).get_tracer("theirs")
    secret = "sk-proj-" + "A1b2C3d4" * 5
    with tracer.start_as_current_span("chat", attributes={"http.header": f"Bearer {secret}"}) as span:
        span.add_event("sent", {"key": secret})
    text = repr(journal.lines)
    assert secret not in text
    assert json.loads(str(journal.of("recorder")[0].attributes[names.STEP_REDACTED]))["http.header"] >= 1


def test_after_a_fork_the_parents_spans_are_the_parents(journal: Journal, recorder: Recorder, scope: Scope) -> None:
    span = provider_of(recorder).get_tracer("theirs").start_span("chat")
    step = tool(scope)
    journal.lines.clear()
    recorder.after_fork()
    span.end()
    step.succeed(1)
    assert journal.lines == []
    tool(scope).succeed(2)
    assert [kind for kind, _ in journal.lines] == ["open", "close"]


# ---- weather -----------------------------------------------------------------------------------------------------


class Broken(Journal):
    def _no(self, *_: object, **__: object) -> None:
        raise OSError("disk on fire")

    open_span = close_span = write_span = sync = _no


def test_a_broken_writer_is_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(Broken())
    scope = Session(mode="record", sink=recorder, open_spans=False).root(None)
    for _ in range(3):
        tool(scope).succeed(1)
    provider_of(recorder).get_tracer("theirs").start_span("chat").end()
    assert recorder.failures == 8
    assert len([r for r in caplog.records if r.name == "spanreplay"]) == 1


class Angry(SpanProcessor):
    def on_start(self, span: Span, parent_context: Any = None) -> None:
        raise RuntimeError("no")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("no")


def test_a_processor_that_raises_behind_ours_takes_nothing_from_us(journal: Journal, recorder: Recorder) -> None:
    provider = provider_of(recorder)
    provider.add_span_processor(Angry())
    with pytest.raises(RuntimeError):
        provider.get_tracer("theirs").start_span("chat")
    assert [kind for kind, _ in journal.lines] == ["open"]


def test_one_providers_shutdown_does_not_end_recording(journal: Journal, recorder: Recorder) -> None:
    first, second = provider_of(recorder), provider_of(recorder)
    first.shutdown()
    second.get_tracer("theirs").start_span("chat").end()
    assert second.force_flush()
    assert len(journal.of("recorder")) == 1


def test_the_sink_takes_any_step(journal: Journal, recorder: Recorder) -> None:
    recorder.ended(StepEnded(trace_id="0" * 32, span_id="1" * 16, end_ns=1, failed=False, message="", attributes={}, events=()))
    recorder.started(
        StepStarted(
            trace_id="0" * 32,
            span_id="2" * 16,
            parent_span_id=None,
            trace_flags=0,
            trace_state="",
            name="x",
            client=False,
            start_ns=1,
            attributes={names.RUN_ID: 7},
            intent=False,
        )
    )
    assert recorder.failures == 0


# ---- values ------------------------------------------------------------------------------------------------------


class Strange:
    def __str__(self) -> str:
        raise ValueError("no text")


def test_values_of_every_kind_survive() -> None:
    given_ = {"none": None, "bytes": b"\x00\xff", "nested": {"a": [1, 2.5, {"b": None}]}, "mixed": [1, "a", True], "big": 2**70, "one": 1.0}
    kept = Converter().attributes(given_)
    assert kept == {**given_, "nested": {"a": (1, 2.5, {"b": None})}, "mixed": (1, "a", True)}
    assert isinstance(kept["one"], float)


def test_a_bad_value_becomes_text_and_is_named() -> None:
    kept = Converter().attributes({"good": 1, "bad": Strange(), "class": Converter})
    assert kept["good"] == 1
    assert kept["bad"] == "<Strange that cannot be read>"
    assert json.loads(str(kept[names.STEP_LOSSY])) == ["bad", "class"]


def test_endless_nesting_ends() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert json.loads(str(Converter().attributes({"loop": loop})[names.STEP_LOSSY])) == ["loop"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), VALUES, max_size=4))
def test_values_are_the_same_before_and_after(attributes: dict[str, Any]) -> None:
    def tuples(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(tuples(item) for item in value)
        return {key: tuples(item) for key, item in value.items()} if isinstance(value, dict) else value

    assert Converter().attributes(attributes) == tuples(attributes)


def use(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it the application's provider for one test."""
    from opentelemetry import trace

    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)


def test_what_comes_of_a_step_after_its_end_is_added_to_it(recorder: Recorder, journal: Journal, scope: Scope) -> None:
    step = begin(scope, Call(kind="tool_call", name="ask"))
    assert step is not None
    step.succeed(1)
    recorder.amended(step.trace_id, step.span_id, {names.STEP_ERROR: "more"})
    recorder.durable = True
    recorder.amended(step.trace_id, step.span_id, {names.STEP_ERROR: "all"})
    assert journal.of("patch") == [{names.STEP_ERROR: "more"}, {names.STEP_ERROR: "all"}]
    assert journal.syncs[-1] == len(journal.lines)
