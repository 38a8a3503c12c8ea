"""A Collector that was killed while it wrote: its file goes on, on the same line, with what it writes after its restart."""

import io
import json

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json
from spanreplay.spans.record import SpanRecord

SPANS = [agent(1), chat(2, 1), tool(3, 1), chat(4, 1)]
LINES = [json.dumps(otlp_json.encode([span])) for span in SPANS]


def read(text: str) -> tuple[list[SpanRecord], int]:
    opened = open_source("-", stdin=io.BytesIO(text.encode()))
    spans = [record for record in opened.records if isinstance(record, SpanRecord)]
    return spans, opened.report.rejected


@pytest.mark.parametrize("cut", [*range(1, 40), *range(40, len(LINES[1]), 37), len(LINES[1]) - 1])
def test_nothing_that_was_written_whole_is_lost(cut: int) -> None:
    torn = [LINES[0], LINES[1][:cut] + LINES[1], LINES[2], LINES[3][:cut] + LINES[3]]
    for end in ("", "\n"):
        spans, rejected = read("\n".join(torn) + end)
        assert {span.span_id: span for span in spans} == {span.span_id: span for span in SPANS}
        assert rejected == 2


def test_several_deaths_leave_what_lies_between_them() -> None:
    spans, rejected = read(LINES[0][:50] + LINES[0][:70] + LINES[1] + LINES[2][:30] + LINES[2] + "\n")
    assert [span.span_id for span in spans] == [SPANS[1].span_id, SPANS[2].span_id]
    assert rejected == 3


def test_a_beginning_inside_a_text_is_no_beginning() -> None:
    quoting = tool(5, 1, result=LINES[0])
    line = json.dumps(otlp_json.encode([quoting]))
    assert read(line + "\n") == ([quoting], 0)
    spans, rejected = read(line[:-20] + "\n" + LINES[1])
    assert [span.span_id for span in spans][-1] == SPANS[1].span_id
    assert rejected == 1


@pytest.mark.parametrize("left", [40, 200, 300])
def test_a_list_of_spans_that_is_cut_keeps_those_that_are_whole(left: int) -> None:
    """Each of them, and the context in it, begins as a document of its own may."""

    def plain(number: int) -> dict[str, object]:
        context = {"trace_id": f"{1:032x}", "span_id": f"{number:016x}"}
        return {"name": f"span {number}", "context": context, "start_time": 10**18, "end_time": 10**18 + number}

    text = json.dumps({"spans": [plain(number) for number in range(1, 9)], "final_output": "x"})
    spans, rejected = read(text[:-left])
    assert [span.name for span in spans] == [f"span {number}" for number in range(1, len(spans) + 1)]
    assert 5 < len(spans) <= 8
    assert rejected == 1
