"""What spanreplay writes for Jaeger is what Jaeger makes of OTLP."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.inputs.formats.go_json import go_float, go_json
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.writers import jaeger_json
from spanreplay.spans.record import LogRecord, SpanRecord

FIXTURES = Path(__file__).parents[2] / "fixtures/writers/jaeger"
MATERIAL = Path(__file__).parents[4] / "shared/material/interop/jaeger"
TRACE = "3f0c9a7be1d24865b0a1c2d3e4f50617"


def written(path: Path) -> Any:
    return json.loads(jaeger_json.write(open_source(str(path)).records))


def test_otlp_becomes_what_jaeger_makes_of_it() -> None:
    assert written(FIXTURES / "otlp.json") == json.loads((FIXTURES / "jaeger.json").read_text())


def test_otlp_becomes_what_jaeger_itself_made_of_it() -> None:
    if not MATERIAL.exists():
        pytest.skip("needs ../shared/material, which is not part of the project")
    assert written(MATERIAL / "otlp2jaeger-in.json") == json.loads((MATERIAL / "otlp2jaeger-out.json").read_text())


def test_spans_that_jaeger_cannot_show_have_a_warning() -> None:
    spans = [SpanRecord(trace_id=TRACE, span_id=f"{n:016x}", start_ns=5000, end_ns=end) for n, end in ((1, None), (2, 1000), (3, 9999))]
    answer = json.loads(jaeger_json.write([*spans, LogRecord(time_ns=5)]))
    assert [(span["duration"], span["warnings"]) for span in answer["data"][0]["spans"]] == [
        (0, ["the span had not ended when it was written"]),
        (0, ["the span ended before it started"]),
        (4, None),
    ]


def test_nothing_is_an_answer_without_traces() -> None:
    answer = jaeger_json.write([])
    assert json.loads(answer)["data"] == []
    assert list(open_source("-", stdin=io.BytesIO(answer)).records) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e22, "1.5e+22"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-10, "1.25e-10"),
        (5e-324, "5e-324"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_numbers_are_written_as_go_writes_them(number: float, text: str) -> None:
    assert go_float(number) == text


def test_lists_and_maps_are_written_as_go_writes_them() -> None:
    value: Any = {"b": (1, 2.0, None, True), "a": {"<é>": b"\x00\x01"}, "A": "\u2028\ud800\n"}
    assert go_json(value) == '{"A":"\\u2028\\ufffd\\n","a":{"<é>":"AAE="},"b":[1,2,null,true]}'
    assert go_json((float("nan"), float("-inf"))) == '["NaN","-Inf"]'
    deep: Any = 1
    for _ in range(100_000):
        deep = (deep,)
    assert "nested deeper than 64 levels" in go_json(deep)
