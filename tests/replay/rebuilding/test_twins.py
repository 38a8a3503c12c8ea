"""A trace whose spans came under two ids each is one, and calls made at once are several."""

from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, log, sid, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record, Resource, SpanRecord

MS = 1_000_000
TRACE = [
    agent(1, start=10, end=900),
    chat(2, 1, start=20, end=100, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "f", {}))}),
    tool(3, 1, name="f", call="c1", start=110, end=120),
    chat(4, 1, start=130, end=200),
]


def one(*records: Record) -> Run:
    (run,) = build_runs(records)
    return run


def again(*spans: SpanRecord, by: int = 0x100, **changed: Any) -> list[SpanRecord]:
    """The same under other ids."""

    def other(span_id: str) -> str:
        return sid(int(span_id, 16) + by)

    return [
        replace(
            span,
            span_id=other(span.span_id),
            parent_span_id=None if span.parent_span_id is None else other(span.parent_span_id),
            resource=Resource(attributes={"service.name": "another"}),
            **changed,
        )
        for span in spans
    ]


def test_a_trace_that_came_twice_under_other_ids_is_counted_once() -> None:
    whole, copies = one(*TRACE), again(*TRACE)
    twice = one(*copies, *TRACE)
    assert [(step.kind, step.name, step.span_id) for step in twice.steps] == [(s.kind, s.name, s.span_id) for s in whole.steps]
    assert twice.unclassified_spans == whole.unclassified_spans + len(TRACE)
    assert [reason.code for reason in twice.grade_reasons].count("double-instrumentation") == len(TRACE)
    assert one(*TRACE, *copies) == twice


def test_ids_that_cross_do_not_matter() -> None:
    low, high = again(TRACE[0]), again(*TRACE[1:], by=0x200)
    first = [TRACE[0], *(replace(span, parent_span_id=TRACE[0].span_id) for span in high)]
    second = [*low, *(replace(span, parent_span_id=low[0].span_id) for span in TRACE[1:])]
    assert len(one(*first, *second).steps) == len(one(*TRACE).steps)


def test_log_records_of_a_copy_are_those_of_the_span() -> None:
    told = log(2, "x", {}, time=30)
    whole = one(*TRACE, told)
    twice = one(*TRACE, told, *again(*TRACE), replace(told, span_id=sid(0x102)))
    assert [step.input for step in twice.steps] == [step.input for step in whole.steps]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(again(*TRACE[:-1]), id="a part"),
        pytest.param([*again(*TRACE[:-1]), *again(replace(TRACE[-1], end_ns=201))], id="another end"),
        pytest.param([*again(*TRACE), chat(9, 0x101, start=300)], id="more"),
        pytest.param(again(*TRACE, name="x"), id="another name"),
    ],
)
def test_what_is_not_alike_throughout_is_not_the_same(other: list[SpanRecord]) -> None:
    assert len(one(*TRACE, *other).steps) > len(one(*TRACE).steps)


def test_calls_made_at_once_under_one_parent_are_several() -> None:
    inner = [chat(2, 1, start=20, end=100), tool(3, 2, start=30, end=40)]
    assert len(one(agent(1, end=900), *inner, *again(*inner, by=0x10)[:0], *(_beside(span) for span in inner)).steps) == 4


def _beside(span: SpanRecord) -> SpanRecord:
    (copy,) = again(span, by=0x10)
    return replace(copy, parent_span_id=span.parent_span_id if span.parent_span_id == sid(1) else copy.parent_span_id)


def test_where_times_have_milliseconds_only_an_id_has_to_tell() -> None:
    def coarse(*spans: SpanRecord) -> list[SpanRecord]:
        return [replace(span, start_ns=span.start_ns * MS, end_ns=(span.end_ns or 0) * MS) for span in spans]

    named = coarse(*TRACE)
    assert len(one(*named, *again(*named)).steps) == len(one(*named).steps)
    unnamed = coarse(agent(1, start=10, end=900), chat(2, 1, start=20, end=100))
    assert len(one(*unnamed, *again(*unnamed)).steps) > len(one(*unnamed).steps)
