"""One call that two instrumentations told in traces of their own is named, and what only looks like one is not."""

from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import TRACE, chat, said
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.same_calls import same_calls
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Scope, SpanRecord

OTHER = "b" * 32


def call(trace: str, start: int, end: int, scope: str, *, answer: str = "It rains.", **more: Any) -> SpanRecord:
    attributes = {a.GEN_AI_OUTPUT_MESSAGES: said(answer, "assistant"), **more}
    made = chat(2 if trace == TRACE else 3, start=start, end=end, trace=trace, attributes=attributes)
    return replace(made, scope=Scope(name=scope))


def found(*records: SpanRecord) -> list[tuple[tuple[str, str], int]]:
    return [(one.runs, one.calls) for one in same_calls(build_runs(records), records)]


INNER = call(OTHER, 20, 80, "two")


def test_one_call_in_two_traces() -> None:
    assert found(call(TRACE, 10, 90, "one"), INNER) == [((TRACE, OTHER), 1)]
    records = [call(TRACE, 10, 90, "one"), INNER]
    assert "each in a trace of its own" in same_calls(build_runs(records), records)[0].detail


@pytest.mark.parametrize(
    "first",
    [
        call(TRACE, 10, 90, "two"),
        call(TRACE, 10, 70, "one"),
        call(TRACE, 10, 90, "one", answer="It is dry."),
        call(TRACE, 10, 90, "one", **{a.GEN_AI_REQUEST_MODEL: "other"}),
        call(OTHER, 10, 90, "one"),
    ],
    ids=["one instrumentation, twice", "neither lasts over the other", "another answer", "another model", "one trace"],
)
def test_two_calls(first: SpanRecord) -> None:
    assert found(first, INNER) == []


def test_ids_of_answers_tell() -> None:
    ids = [{a.GEN_AI_RESPONSE_ID: "r1"}, {a.GEN_AI_RESPONSE_ID: "r2"}]
    assert found(call(TRACE, 10, 90, "one", **ids[0]), call(OTHER, 20, 80, "two", **ids[1])) == []
    assert found(call(TRACE, 10, 90, "one", **ids[0]), call(OTHER, 20, 80, "one", **ids[0])) == [((TRACE, OTHER), 1)]
