"""Whatever happened, whoever recorded it, in whatever format it was kept: the same steps in the same order, or the loss is told."""

import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_spans import time_text
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.writer import registry
from spanreplay.spans import otlp_json
from spanreplay.spans.record import SpanRecord
from support.happened import Call
from support.happened import Run as Happened
from support.recorders import RECORDERS, TRACE, Recorder, span_id
from support.size import FULL

KINDS = {"model": "model_call", "tool": "tool_call", "agent": "agent"}
MILLISECOND, MICROSECOND = 1_000_000, 1_000
EXAMPLES = 200 if FULL else 12

choices = st.randoms(use_true_random=False)


# ---- formats -----------------------------------------------------------------------------------------------------------


def _written(name: str) -> Callable[[Sequence[SpanRecord]], bytes]:
    return lambda spans: registry()[name].write(spans, ())


def _lines(spans: Sequence[SpanRecord]) -> bytes:
    """As the Collector's file exporter does: a batch a line."""
    batches = [spans[place : place + 3] for place in range(0, len(spans), 3)]
    return "".join(json.dumps(otlp_json.encode(batch)) + "\n" for batch in batches).encode()


def _list(spans: Sequence[SpanRecord]) -> bytes:
    """As evaluation tools dump them."""
    listed = [
        {
            "trace_id": span.trace_id,
            "span_id": span.span_id,
            "parent_span_id": span.parent_span_id,
            "name": span.name,
            "start_time": span.start_ns,
            "end_time": span.end_ns,
            "attributes": dict(span.attributes),
            "scope": {"name": span.scope.name, "version": span.scope.version},
            "status": {"code": ("UNSET", "OK", "ERROR")[span.status], "message": span.status_message},
        }
        for span in spans
    ]
    return json.dumps(listed).encode()


def _console(spans: Sequence[SpanRecord]) -> bytes:
    """As the Python SDK prints them, in the middle of a log."""
    printed: list[dict[str, Any]] = [
        {
            "name": span.name,
            "context": {"trace_id": f"0x{span.trace_id}", "span_id": f"0x{span.span_id}", "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": None if span.parent_span_id is None else f"0x{span.parent_span_id}",
            "start_time": time_text(span.start_ns),
            "end_time": time_text(span.end_ns or 0),
            "status": {"status_code": ("UNSET", "OK", "ERROR")[span.status], "description": span.status_message},
            "attributes": dict(span.attributes),
            "events": [],
            "links": [],
            "resource": {"attributes": {}, "schema_url": ""},
        }
        for span in spans
    ]
    return ("INFO started\n" + "\n".join(json.dumps(span, indent=4) for span in printed) + "\n").encode()


def _zipkin(spans: Sequence[SpanRecord]) -> bytes:
    listed = [
        {
            "traceId": span.trace_id,
            "id": span.span_id,
            **({} if span.parent_span_id is None else {"parentId": span.parent_span_id}),
            "name": span.name,
            "timestamp": span.start_ns // MICROSECOND,
            "duration": max(1, ((span.end_ns or 0) - span.start_ns) // MICROSECOND),
            "localEndpoint": {"serviceName": "agent"},
            "tags": {
                **{name: str(value) for name, value in span.attributes.items()},
                "otel.scope.name": span.scope.name,
                **({"otel.status_code": "ERROR", "error": span.status_message} if span.status == 2 else {}),
            },
        }
        for span in spans
    ]
    return json.dumps(listed).encode()


FORMATS: Mapping[str, Callable[[Sequence[SpanRecord]], bytes]] = {
    "otlp-json": _written("otlp-json"),
    "otlp-json lines": _lines,
    "otlp-proto": _written("otlp-proto"),
    "jaeger": _written("jaeger"),
    "parquet": _written("parquet"),
    "span-list": _list,
    "console": _console,
    "zipkin": _zipkin,
}
COARSE = {"jaeger": "time-us", "console": "time-us", "zipkin": "time-us"}
"""Formats that cut times, and what their reports say of it."""


def read_back(text: bytes, join: Any = None) -> tuple[list[Run], set[str]]:
    opened = open_source("-", stdin=io.BytesIO(text))
    runs = build_runs(list(opened.records), join=join)
    assert not opened.report.rejections
    return runs, {str(entry["code"]) for entry in opened.report.fidelity}


# ---- what is expected --------------------------------------------------------------------------------------------------


def calls_of(run: Run) -> list[tuple[str, str]]:
    return [(step.span_id, step.kind) for step in run.steps]


def expected_of(calls: Sequence[Call]) -> list[tuple[str, str]]:
    return [(span_id(call.number), KINDS[call.kind]) for call in calls]


def codes(run: Run) -> set[str]:
    return {reason.code for reason in run.grade_reasons}


def same(run: Run, happened: Happened, recorder: Recorder) -> None:
    """Everything that the recorder told is there."""
    seqs = {span_id(call.number): seq for seq, call in enumerate(happened.calls[1:], 1)}
    assert run.agent_name == "lead"
    assert run.outcome == "ok"
    for call, step in zip(happened.calls[1:], run.steps, strict=True):
        above = call.parent
        assert above is not None
        assert step.name == call.name
        assert step.parent_seq == seqs.get(span_id(above.number))
        assert (step.outcome == "error") == (call.error is not None)
        if call.kind == "tool":
            assert step.call_id == call.call_id or (step.call_id is None and not recorder.call_ids)
            if recorder.content:
                assert call.asked_by is not None
                assert step.input == {"arguments": call.arguments}
                assert step.requested_by == seqs[span_id(call.asked_by.number)]
                assert step.output == (None if call.error is not None else {"result": call.result})
        elif call.kind == "model" and recorder.content:
            assert spoken(step.input) == said(call.messages)
            assert spoken(step.output) == (said([call.answer]) if call.answer is not None else [])
            assert step.attempt == call.attempt
            assert step.retry_of == (None if call.retry_of is None else seqs[span_id(call.retry_of.number)])


def said(messages: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Messages without what recorders write differently."""
    told = {"text": ("content",), "tool_call": ("id", "name", "arguments"), "tool_call_response": ("id", "response")}
    return [
        (message["role"], part["type"], *(part[name] for name in told[part["type"]])) for message in messages for part in message["parts"]
    ]


def spoken(view: Any) -> list[tuple[Any, ...]]:
    found = said(view["messages"]) if isinstance(view, dict) else []
    return [tuple(decoded(item) for item in part) for part in found]


def decoded(item: Any) -> Any:
    """Results of tools are texts in some histories."""
    try:
        return json.loads(item) if isinstance(item, str) and item[:1] in '{["' else item
    except ValueError:
        return item


def reports(step: Step) -> set[str]:
    return {reason.code for reason in step.reasons}


# ---- nothing lost ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(choices=choices, recorder=st.sampled_from(sorted(RECORDERS)), tick=st.sampled_from([1, MILLISECOND]))
def test_a_run_comes_back_as_it_happened(name: str, choices: random.Random, recorder: str, tick: int) -> None:
    """Written in any order, with some spans twice, by each instrumentation, in each format."""
    happened, writes = Happened(choices), RECORDERS[recorder]
    spans = [writes.span(call, tick) for call in happened.calls]
    spans += choices.sample(spans, k=choices.randint(0, len(spans)))
    choices.shuffle(spans)
    (run,), lost = read_back(FORMATS[name](spans))
    assert run.trace_ids == (TRACE,)
    assert run.orphan_spans == 0
    assert run.unclassified_spans == 0
    if tick >= MILLISECOND or name not in COARSE:
        assert calls_of(run) == expected_of(happened.calls[1:])
        same(run, happened, writes)
    else:  # several calls begin in one microsecond: the same calls, callers first, and the report says why
        assert sorted(calls_of(run)) == sorted(expected_of(happened.calls[1:]))
        assert all(step.parent_seq is None or step.parent_seq < step.seq for step in run.steps)
        assert COARSE[name] in lost


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(choices=choices, outer=st.sampled_from(["gen_ai", "openllmetry"]), beside=st.booleans())
def test_calls_that_two_instrumentations_recorded_are_counted_once(choices: random.Random, outer: str, beside: bool) -> None:
    """The second one's span of each call is inside the first one's, or beside it, where the call has an id that both know."""
    happened = Happened(choices)
    spans: list[SpanRecord] = []
    doubles = 0
    for call in happened.calls:
        first = RECORDERS["gen_ai" if beside else outer].span(call, MILLISECOND)
        response = {"gen_ai.response.id": f"resp-{call.number}"} if call.kind == "model" and call.error is None else {}
        spans.append(_with(first, response))
        known = response or call.kind == "tool"
        if call.kind != "agent" and (known or not beside) and choices.randint(0, 3):
            parent = call.parent.number if beside and call.parent is not None else call.number
            double = RECORDERS["gen_ai"].span(call, MILLISECOND, number=1000 + call.number, parent=parent)
            spans.append(_with(double, response, scope="another"))
            doubles += 1
    choices.shuffle(spans)
    (run,) = build_runs(spans)
    assert [step.kind for step in run.steps] == [KINDS[call.kind] for call in happened.calls[1:]]
    assert run.unclassified_spans == doubles
    assert len([reason for reason in run.grade_reasons if reason.code == "double-instrumentation"]) == doubles


def _with(span: SpanRecord, attributes: Mapping[str, Any], scope: str | None = None) -> SpanRecord:
    from dataclasses import replace

    return replace(
        span,
        attributes={**span.attributes, **attributes},
        scope=span.scope if scope is None else replace(span.scope, name=scope),
    )


# ---- spans lost --------------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES * 4, deadline=None)
@given(choices=choices, recorder=st.sampled_from(sorted(RECORDERS)), name=st.sampled_from(sorted(FORMATS)))
def test_what_is_left_of_a_run_keeps_its_order_and_what_is_missed_is_told(choices: random.Random, recorder: str, name: str) -> None:
    happened, writes = Happened(choices), RECORDERS[recorder]
    gone = {call.number for call in happened.calls if not choices.randint(0, 4)}
    left = [call for call in happened.calls if call.number not in gone]
    if not left:
        return
    spans = [writes.span(call, MILLISECOND) for call in left]
    choices.shuffle(spans)
    (run,), _ = read_back(FORMATS[name](spans))
    expected = expected_of(left)
    if calls_of(run) != expected:  # one agent, around or after which everything else is, is the run
        roots = [call for call in left if call.kind == "agent" and (span_id(call.number), "agent") not in calls_of(run)]
        assert len(roots) == 1
        assert calls_of(run) == [step for step in expected if step[0] != span_id(roots[0].number)]
    orphans = [call for call in left if call.parent is not None and call.parent.number in gone]
    assert run.orphan_spans == len(orphans)
    assert ("missing-parent" in codes(run)) == bool(orphans)
    assert len(run.steps) + run.unclassified_spans >= len(left) - 1
    if writes.content and writes.call_ids:
        _requests_are_told(run, left, gone, happened)


def _requests_are_told(run: Run, left: Sequence[Call], gone: set[int], happened: Happened) -> None:
    """A call is linked to its request or to none; a request whose call is gone is told, or answered by the agent that the call ran."""
    steps = {step.span_id: step for step in run.steps}
    for call in left:
        if call.kind != "tool" or call.asked_by is None:
            continue
        step = steps[span_id(call.number)]
        asked = steps.get(span_id(call.asked_by.number))
        if asked is not None:
            assert step.requested_by == asked.seq
        else:  # the id may be that of an earlier request too
            assert step.requested_by is None or "arguments-differ" in reports(step)
    for call in happened.calls:
        if call.kind == "tool" and call.number in gone and call.asked_by is not None and call.asked_by.number not in gone:
            asked = steps[span_id(call.asked_by.number)]
            by_agent = any(step.kind == "agent" and step.requested_by == asked.seq for step in run.steps)
            assert by_agent or (reports(asked) | codes(run)) & {"call-not-run", "call-without-span", "arguments-differ"}


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(choices=choices)
def test_a_run_that_a_pool_broke_into_traces_is_whole_when_asked(choices: random.Random) -> None:
    from dataclasses import replace

    happened = Happened(choices)
    ids = [call.call_id for call in happened.calls if call.kind == "tool"]
    spans: list[SpanRecord] = []
    lost: dict[int, str] = {}
    for call in happened.calls:
        span = RECORDERS["gen_ai"].span(call, MILLISECOND)
        above = call.parent
        broken = call.kind == "tool" and choices.randint(0, 1)
        trace = f"{call.number:032x}" if broken else TRACE if above is None else lost.get(above.number, TRACE)
        lost[call.number] = trace
        spans.append(replace(span, trace_id=trace, parent_span_id=None if broken else span.parent_span_id))
    apart = build_runs(spans)
    assert len(apart) == len(set(lost.values()))
    joined = build_runs(spans, join="call-id")
    if len(set(ids)) == len(ids):
        (run,) = joined
        assert calls_of(run) == expected_of(happened.calls[1:])
        same(run, happened, RECORDERS["gen_ai"])
    else:  # an id that stands for several calls joins nothing that is not certain, and loses nothing
        assert sum(len(run.steps) for run in joined) >= len(happened.calls) - len(apart)


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(choices=choices)
def test_sub_agents_whose_context_was_lost_are_where_they_ran_or_say_that_this_is_not_certain(choices: random.Random) -> None:
    happened = Happened(choices)
    spans = [
        RECORDERS["gen_ai"].span(call, MILLISECOND, parent=1 if call.kind == "agent" and call.parent is not None else None)
        for call in happened.calls
    ]
    choices.shuffle(spans)
    (run,) = build_runs(spans)
    assert calls_of(run) == expected_of(happened.calls[1:])
    seqs = {span_id(call.number): seq for seq, call in enumerate(happened.calls[1:], 1)}
    for call, step in zip(happened.calls[1:], run.steps, strict=True):
        if call.kind == "agent" and call.parent is not None:
            assert step.parent_seq in (seqs[span_id(call.parent.number)], None)
            assert "beside-tool" in reports(step)
