"""Pending spans of Logfire are records of the spans that they stand for."""

from fixtures.runs.spans import agent, chat, span, tool
from spanreplay.replay.reading.pending import PENDING, REAL_PARENT, SPAN_TYPE, settled
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import SpanRecord, Value

NONE = "0" * 16


def pending(number: int, of: SpanRecord) -> SpanRecord:
    """The copy that Logfire sends when a span starts."""
    attributes: dict[str, Value] = {**of.attributes, SPAN_TYPE: PENDING, REAL_PARENT: of.parent_span_id or NONE}
    return span(number, of.span_id, name=of.name, start=of.start_ns, end=of.start_ns, attributes=attributes)


def test_a_pending_span_counts_once_with_its_span() -> None:
    spans = [agent(1, start=0, end=100), chat(2, 1, start=10, end=20), tool(3, 1, call="c", start=30, end=40)]
    copies = [pending(90 + number, of) for number, of in enumerate(spans)]
    (run,) = build_runs([*copies, *spans])
    (alone,) = build_runs(spans)
    assert run == alone
    assert build_runs([*spans, *copies]) == [alone]


def test_a_pending_span_without_its_span_never_ended() -> None:
    (run,) = build_runs([pending(90, agent(1, end=None)), chat(2, 1, start=10, end=20), pending(91, tool(3, 1, call="c", start=30))])
    assert [(step.kind, step.outcome, step.grade) for step in run.steps] == [
        ("model_call", "ok", "semantic"),
        ("tool_call", "unknown", "incomplete"),
    ]
    assert (run.agent_name, run.orphan_spans, run.outcome) == ("helper", 0, "unknown")


def test_other_spans_are_as_they_are() -> None:
    for record in (span(1), span(1, 2, attributes={SPAN_TYPE: "span"}), span(1, attributes={SPAN_TYPE: PENDING})):
        assert settled(record) is record
