"""Which traces of a file a loss is of: those that it names, or that were running where it happened; all of them where nobody knows."""

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import SpanRecord

MINUTE = 60_000_000_000


def trace(number: int) -> list[SpanRecord]:
    """One of many traces, a minute apart; its spans as an SDK exports them, the root last."""
    at = number * MINUTE
    records = [chat(2, 1), tool(3, 1), agent(1)]
    return [
        replace(record, trace_id=f"{number:032x}", start_ns=at + place, end_ns=at + end)
        for place, end, record in zip((1, 2, 0), (51, 98, 100), records, strict=True)
    ]


def lines(count: int = 5) -> list[bytes]:
    """Two lines a trace, as a Collector writes them."""
    found = []
    for number in range(1, count + 1):
        first, *others = trace(number)
        found += [json.dumps(otlp_json.encode(batch)).encode() + b"\n" for batch in ([first], others)]
    return found


def lost(data: bytes) -> list[int]:
    """The numbers of the traces of which something was lost."""
    opened = open_source("-", stdin=io.BytesIO(data))
    list(opened.records)
    return sorted(int(trace_id, 16) for trace_id in opened.report.losses)


def read(parts: Sequence[bytes]) -> list[int]:
    return lost(b"".join(parts))


@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize(
    "damage", [lambda line: line.replace(b'"name"', b'"name', 1), lambda line: line.replace(b'"spanId"', b'spanId"', 1)]
)
def test_a_damaged_line_is_of_the_traces_that_it_names(at: int, damage: Any) -> None:
    parts = lines()
    parts[at] = damage(parts[at])
    assert read(parts) == [at // 2 + 1]


@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize("left", [30, 0.5, 0.95])
def test_a_cut_line_is_of_the_traces_that_were_running_then(at: int, left: float) -> None:
    parts = lines()
    size = int(left if left > 1 else len(parts[at]) * left)
    parts[at] = parts[at][:size] + b"\n"
    touched, itself = read(parts), at // 2 + 1
    beside = {itself - 1 if at % 2 == 0 else itself, itself, itself + 1 if at % 2 else itself}
    assert set(touched) <= beside & {1, 2, 3, 4, 5}
    assert itself in touched


def test_what_names_no_trace_is_of_those_beside_it() -> None:
    parts = lines()
    assert read([*parts[:5], b'{"resourceSpans": nothing}\n', *parts[5:]]) == [3]
    assert read([b'{"resourceSpans": nothing}\n', *parts]) == [1]
    assert read([*parts, b'{"resourceSpans": nothing}\n']) == [5]


def test_where_the_order_of_the_file_tells_nothing_it_may_be_any() -> None:
    parts = lines()
    random.Random(3).shuffle(parts)
    assert read([*parts, b'{"resourceSpans": nothing}\n']) == [1, 2, 3, 4, 5]


def test_bytes_that_are_no_text_are_of_the_traces_of_their_line() -> None:
    parts = lines()
    parts[4] = parts[4].replace(b'"name":"', b'"name":"\xff').replace(b'"name": "', b'"name": "\xff')
    assert read(parts) == [3]


def test_many_damages_are_told_of_all_that_was_running_since() -> None:
    parts, bad = lines(), b"{nothing}\n"
    assert read([*parts[:4], *[bad] * 25, *parts[4:]]) == [2, 3]
    assert read([*parts[:4], *[bad] * 25, *parts[4:8], bad, *parts[8:]]) == [2, 3, 4, 5]


def test_a_cut_message_in_a_frame_is_of_those_that_were_running_then() -> None:
    frames = [len(data).to_bytes(4, "big") + data for number in range(1, 6) for data in [otlp_proto.encode(trace(number))]]
    assert lost(b"".join(frames)[:-40]) in ([4], [4, 5], [5])
