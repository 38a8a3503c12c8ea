from collections.abc import Sequence

import pytest

from fixtures.runs.spans import event, log, sid, span
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding import gathering
from spanreplay.replay.rebuilding.gathering import ENDED, FAILED, Addressing, gathered
from spanreplay.replay.rebuilding.tree import SpanKey, build
from spanreplay.spans.record import STATUS_ERROR, LogRecord, Record, SpanRecord

TRACE = span(1).trace_id


class Named:
    """A dialect in which a record is about the span that ``of`` names."""

    NAME = "named"
    PRIORITY = 1

    def claims(self, span: SpanRecord) -> bool:
        return span.name != "other"

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        raise AssertionError("not asked")

    def about(self, told: SpanRecord | LogRecord, around: SpanRecord, inside: Sequence[SpanRecord]) -> SpanRecord | None:
        return next((one for one in (around, *inside) if one.span_id == told.attributes.get("of")), None)


@pytest.fixture(autouse=True)
def _only_named(monkeypatch: pytest.MonkeyPatch) -> None:
    dialect: Addressing = Named()
    monkeypatch.setattr(gathering, "_addressing", lambda: (dialect,))


def told(*records: Record) -> dict[str, tuple[list[str], list[str]]]:
    """For each span of which something else is said than stands in it: the names of its events, its log records."""
    return {
        key.span_id: ([event.name for event in span.events], [log.event_name for log in logs])
        for key, (span, logs, _) in gathered(build(records)).items()
    }


def said(number: int, name: str, of: int | None = None, time: int = 0) -> LogRecord:
    return log(number, name, {} if of is None else {"of": sid(of)}, time=time)


def test_a_record_goes_to_the_span_that_it_is_about_and_the_others_stay() -> None:
    found = told(
        span(1), span(2, 1), span(3, 1), said(1, "late", of=2, time=5), said(1, "early", of=2, time=1), said(1, "own"), said(3, "there")
    )
    assert found[sid(1)] == ([], ["own"])
    assert found[sid(2)] == ([], ["early", "late"])
    assert found[sid(3)] == ([], ["there"])


def test_a_part_is_an_event_of_the_whole_which_has_its_records_too() -> None:
    part = span(2, 1, name="part", start=3, end=9, status=STATUS_ERROR, status_message="no", attributes={"of": sid(1)})
    inner = span(3, 2, name="part of a part", start=4, attributes={"of": sid(2)}, events=(event("in it", {}, time=5),))
    forest = build([span(1), part, inner, said(2, "in the part"), said(3, "deeper")])
    found = gathered(forest)
    whole, logs, _ = found[SpanKey(TRACE, sid(1))]
    assert [(event.name, event.time_ns) for event in whole.events] == [("part", 3), ("part of a part", 4), ("in it", 5)]
    assert whole.events[0].attributes == {"of": sid(1), ENDED: 9, FAILED: "no"}
    assert [record.event_name for record in logs] == ["in the part", "deeper"]
    assert [(found[SpanKey(TRACE, sid(number))].logs, found[SpanKey(TRACE, sid(number))].part) for number in (2, 3)] == [((), True)] * 2
    assert forest.spans[SpanKey(TRACE, sid(1))].events == (), "the record itself is left as it is"


def test_parts_and_records_of_spans_that_the_dialect_does_not_know() -> None:
    part = span(2, 1, name="other", attributes={"of": sid(1)})
    assert told(span(1), part, said(2, "in the part"))[sid(1)] == (["other"], ["in the part"])
    assert told(span(1), span(2, 1, name="other"), said(1, "about it", of=2), said(2, "its own"))[sid(2)] == ([], ["its own", "about it"])
    assert told(span(1, name="other"), span(2, 1, name="other"), said(1, "x", of=2)) == {}
    assert told(span(1), span(2)) == {}
