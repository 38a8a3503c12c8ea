"""The Boundary: straight through when off, everything kept when recording, and never a failure of its own for the agent."""

import asyncio
import concurrent.futures
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace

from spanreplay.boundary import boundary, spans
from spanreplay.boundary.call import Answer, Call, StepStarted
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.raised import outcome_of
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.instrumentation import tool
from spanreplay.semconv import attributes as names
from support.taped import Tape, recorded, recording, replayed


class Odd(Exception):
    """An exception with state."""

    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"odd {code}")
        self.code = code
        self.hint = hint


@tool(effect="read")
def double(x: Any) -> Any:
    return x * 2


@tool(effect="read")
def fails(error: str) -> None:
    raise {"odd": Odd(7, hint="h"), "timeout": TimeoutError("late"), "value": ValueError("bad")}[error]


def test_off_calls_go_straight_through_and_nothing_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "encode", None)
    assert boundary.here() is None
    assert double(21) == 42


def test_a_call_is_recorded_with_arguments_result_place_and_order() -> None:
    tape = recorded(lambda: (double(1), double("ab")))
    assert tape.paths == ["tool_call:double#0", "tool_call:double#1"]
    first, second = tape.steps
    assert (first[names.GEN_AI_TOOL_CALL_ARGUMENTS], first[names.GEN_AI_TOOL_CALL_RESULT]) == ('{"x":1}', "2")
    assert (second[names.GEN_AI_TOOL_CALL_ARGUMENTS], second[names.GEN_AI_TOOL_CALL_RESULT]) == ('{"x":"ab"}', '"abab"')
    assert [s[names.STEP_SEQ_START] for s in tape.steps] < [s[names.STEP_SEQ_END] for s in tape.steps]
    assert first[names.STEP_SEQ_END] < second[names.STEP_SEQ_START]
    assert tape.outcomes == ["ok", "ok"]


@pytest.mark.parametrize("value", [{"ok": True}, 0, False, "", [], None, 1.0, {"1": 1}, (1, 2), b"\x00"])
def test_results_keep_their_type_on_the_way_back(value: Any) -> None:  # B17
    @tool(effect="read")
    def give() -> Any:
        return value

    tape = recorded(give)
    result = replayed(tape, give)
    assert result.equal
    assert result.value == value
    assert type(result.value) is type(value)


def test_arguments_are_a_snapshot_from_before_the_call() -> None:
    @tool
    def grow(items: list[int]) -> int:
        items.append(len(items))
        return len(items)

    given = [1]
    tape = recorded(lambda: grow(given))
    given.append(99)
    assert tape.steps[0][names.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"items":[1]}'


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (ValueError("x"), "error"),
        (TimeoutError("x"), "timeout"),
        (asyncio.CancelledError(), "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "error"),
        (SystemExit(3), "error"),
        (GeneratorExit(), "abandoned"),
        (ControlSignal("no"), "interrupted"),
    ],
)
def test_what_a_body_raises_is_kept_and_raised_as_the_same_object(raised: BaseException, outcome: str) -> None:
    @tool
    def body() -> None:
        raise raised

    with recording() as tape, pytest.raises(type(raised)) as caught:
        body()
    assert caught.value is raised
    assert tape.outcomes == [outcome]


def test_an_exception_keeps_type_message_and_cause_untouched() -> None:
    cause = KeyError("k")

    @tool
    def body() -> None:
        raise Odd(3, hint="so") from cause

    with recording() as tape, pytest.raises(Odd) as caught:
        body()
    assert caught.value.__cause__ is cause
    assert caught.value.__context__ is None
    kept = tape.steps[0]
    assert kept[names.ERROR_TYPE].endswith("test_boundary.Odd")
    event = next(iter(tape.ends.values())).events[0]
    assert event.attributes[names.EXCEPTION_MESSAGE] == "odd 3"
    assert "in body" in event.attributes[names.EXCEPTION_STACKTRACE]


@pytest.mark.parametrize(
    ("which", "kind", "outcome"), [("odd", Odd, "error"), ("timeout", TimeoutError, "timeout"), ("value", ValueError, "error")]
)
def test_a_replayed_exception_has_the_recorded_type_and_state(which: str, kind: type[Exception], outcome: str) -> None:
    def agent() -> Any:
        try:
            fails(which)
        except kind as error:
            return error
        return None

    tape = recorded(agent)
    assert tape.outcomes == [outcome]
    result = replayed(tape, agent)
    assert result.equal
    assert type(result.value) is kind
    assert getattr(result.value, "hint", "h") == "h"


def test_an_asynchronous_call_is_recorded_and_its_cancellation_too() -> None:
    @tool(effect="read")
    async def slow(x: int) -> int:
        await asyncio.sleep(0 if x else 60)
        return x

    async def agent() -> list[Any]:
        task = asyncio.create_task(slow(0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return [await slow(2), await asyncio.gather(task, return_exceptions=True)]

    tape = recorded(agent)
    assert sorted(tape.outcomes, key=str) == ["cancelled", "ok"]
    result = replayed(tape, agent)
    assert result.equal
    assert isinstance(result.value[1][0], asyncio.CancelledError)


def test_a_collected_coroutine_ends_its_step_once_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    with recording() as tape:
        coroutines = [waits()]

        async def begin() -> None:
            coroutines[0].send(None)

        asyncio.run(begin())
        coroutines.clear()
        gc.collect()
    assert tape.outcomes == ["abandoned"]
    assert tape.twice == []
    assert caplog.records == []


# ---- telemetry never breaks the agent ---------------------------------------------------------------------------------


class Broken:
    """Raises from whatever is asked of it."""

    def __init__(self, only: str = "") -> None:
        self.only = only

    def started(self, step: object) -> None:
        if self.only != "ended":
            raise OSError("disk full")

    def ended(self, step: object) -> None:
        if self.only != "started":
            raise OSError("disk full")


def _all_kinds() -> list[Callable[[], Any]]:
    @tool
    def plain(x: int) -> int:
        return x + 1

    @tool
    def raises(x: int) -> int:
        raise ValueError(x)

    @tool
    async def coroutine(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    @tool
    def generator(x: int) -> Iterator[int]:
        yield x
        yield x + 1

    @tool
    async def agenerator(x: int) -> Any:
        yield x
        yield x + 1

    async def read() -> list[int]:
        return [i async for i in agenerator(1)]

    def caught() -> str:
        try:
            raises(1)
        except ValueError as error:
            return repr(error)
        return ""

    return [lambda: plain(1), caught, lambda: asyncio.run(coroutine(1)), lambda: list(generator(1)), lambda: asyncio.run(read())]


def _expected() -> list[Any]:
    return [kind() for kind in _all_kinds()]


@pytest.mark.parametrize("only", ["started", "ended", ""])
def test_a_failing_sink_is_counted_and_the_agent_goes_on(only: str, caplog: pytest.LogCaptureFixture) -> None:  # B19
    broken = Broken(only)
    with recording(broken) as _:  # type: ignore[arg-type]
        scope = boundary.here()
        assert scope is not None
        assert [kind() for kind in _all_kinds()] == _expected()
        assert scope.session.failures >= 5
    assert len([r for r in caplog.records if r.name == "spanreplay"]) == 1


@pytest.mark.parametrize("what", ["encode", "encode_exception", "plain"])
def test_a_failing_codec_is_counted_and_the_agent_goes_on(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _expected()

    def broken(*_: object) -> Any:
        raise RuntimeError("codec")

    monkeypatch.setattr(codec, what, broken)
    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        assert [kind() for kind in _all_kinds()] == expected
        assert scope.session.failures >= 1 or what == "plain"
    assert None not in tape.outcomes


def test_a_failing_redactor_keeps_nothing_and_the_agent_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("redactor")

    redactor = Redactor(RedactionPolicy.default())
    with recording(redactor=redactor) as tape:
        double(1)
        monkeypatch.setattr(redactor, "text", broken)
        scope = boundary.here()
        assert scope is not None
        assert [kind() for kind in _all_kinds()] == _expected()
        assert scope.session.failures >= 5
    assert len(tape.starts) == 1


def test_a_redactor_that_fails_at_the_end_leaves_a_step_without_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(RedactionPolicy.default())

    @tool
    def secret() -> str:
        monkeypatch.setattr(redactor, "text", None)
        return "s3cret"

    with recording(redactor=redactor) as tape:
        assert secret() == "s3cret"
    assert tape.outcomes == ["ok"]
    assert "s3cret" not in json.dumps([dict(e.attributes) for e in tape.ends.values()])
    (run,) = tape.runs()
    assert run.steps[0].grade == "structure"


@pytest.mark.parametrize("broken", ["get_tracer", "start_span", "set_attributes", "end"])
def test_a_failing_tracer_is_counted_and_the_step_is_kept(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __getattr__(self, name: str) -> Any:
            if name == broken:
                raise RuntimeError(name)
            return getattr(self.__dict__.get("inner", trace.NonRecordingSpan(_context())), name)

        def get_tracer(self, *_: object) -> Any:
            if broken == "get_tracer":
                raise RuntimeError("get_tracer")
            return self

        def start_span(self, *_: object, **__: object) -> Any:
            if broken == "start_span":
                raise RuntimeError("start_span")
            return self

        def is_recording(self) -> bool:
            return True

    provider = Failing()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(spans, "_tracer", None)
    with recording(open_spans=True) as tape:
        scope = boundary.here()
        assert scope is not None
        assert double(4) == 8
        assert scope.session.failures >= 1
    monkeypatch.setattr(spans, "_tracer", None)
    assert tape.outcomes == ["ok"]
    assert tape.steps[0][names.GEN_AI_TOOL_CALL_RESULT] == "8"


def _context() -> trace.SpanContext:
    return trace.SpanContext(trace_id=1, span_id=2, is_remote=False)


@pytest.mark.parametrize("value", [None, object(), {"a": 1}, [object()]])
def test_a_value_that_no_attribute_can_hold_costs_only_itself(value: Any, recwarn: pytest.WarningsRecorder) -> None:  # B13, B15
    made = Call(kind="io", name="odd", input=codec.encode(1), attributes={"good": "g", "bad": value, "list": ["a", "b"]})
    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        assert boundary.call(scope, made, lambda: 5) == 5
        failures = scope.session.failures
    kept = tape.steps[0]
    assert (kept["good"], kept["list"]) == ("g", ["a", "b"])
    assert ("bad" in kept, failures) == ((False, 0) if value is None else (True, 1))
    assert kept.get("bad") is None or isinstance(kept["bad"], str)
    assert len(recwarn) == 0


def test_secrets_in_lists_of_an_attribute_are_redacted() -> None:
    key = "sk-" + "a1B2" * 12
    made = Call(kind="io", name="n", attributes={"texts": ["plain", f"key {key}"]})
    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        boundary.call(scope, made, lambda: None)
    assert key not in str(tape.steps[0])
    assert tape.steps[0]["texts"][0] == "plain"


# ---- intents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("effect", "intent"), [("read", False), ("write", True), ("irreversible", True), ("unknown", True)])
def test_the_record_of_an_effect_is_there_before_the_body_runs(effect: Any, intent: bool) -> None:
    seen: list[str] = []

    class Order(Tape):
        def started(self, step: StepStarted) -> None:
            seen.append(f"intent {step.intent}")
            super().started(step)

    @tool(effect=effect)
    def act() -> None:
        seen.append("body")

    with recording(Order()):
        act()
    assert seen == [f"intent {intent}", "body"]


# ---- interceptors ---------------------------------------------------------------------------------------------------


class Fixed:
    """Answers every call."""

    def __init__(self, answer: Answer | BaseException | None) -> None:
        self.answer = answer
        self.ends: list[str | None] = []

    def intercept(self, step: Step) -> Answer | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def ended(self, step: Step) -> None:
        self.ends.append(step.outcome)


def test_the_first_interceptor_that_answers_wins_and_all_hear_of_the_end() -> None:
    chain = (Fixed(None), Fixed(Answer(outcome="ok", result="5")), Fixed(Answer(outcome="ok", result="6")))
    with recording(interceptors=chain):
        assert double(1) == 5
    assert [c.ends for c in chain] == [["ok"], ["ok"], ["ok"]]


def test_a_refusal_ends_the_step_and_the_body_does_not_run() -> None:
    stop = ControlSignal("not allowed")
    with recording(interceptors=(Fixed(stop),)) as tape, pytest.raises(ControlSignal) as caught:
        double(1)
    assert caught.value is stop
    assert tape.outcomes == ["interrupted"]


def test_an_answer_that_cannot_be_read_stops_the_replay() -> None:
    stop = ControlSignal("unreadable")
    answer = Answer(outcome="ok", result="{no json", unreadable=lambda _: stop)
    with recording(interceptors=(Fixed(answer),)), pytest.raises(ControlSignal) as caught:
        double(1)
    assert caught.value is stop


def test_many_steps_end_once_each_even_when_ended_again() -> None:
    with recording() as tape:
        scope = boundary.here()
        assert scope is not None
        step = boundary.begin(scope, Call(kind="io", name="n"))
        assert step is not None
        step.succeed(1)
        step.fail(ValueError())
        step.end("abandoned")
    assert tape.outcomes == ["ok"]
    assert tape.twice == []


def test_outcomes_of_errors() -> None:
    assert outcome_of(TimeoutError()) == "timeout"
    assert outcome_of(ConnectionRefusedError()) == "error"
