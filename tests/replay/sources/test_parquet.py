"""Parquet of Phoenix and LangSmith; and that a file can reach nothing but itself."""

import io
from pathlib import Path
from typing import Any

import duckdb
import pytest

from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import SpanRecord
from spanreplay.store.parquet import ParquetError, rows

FIXTURES = Path(__file__).parents[2] / "fixtures/phoenix"
TRACE = "0af7651916cd43dd8448eb211c80319c"
RUN = "1b64098b-4ab7-43f6-afee-992304f198d8"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(select: str) -> Path:
        path = tmp_path / "it's.parquet"
        duckdb.sql(f"COPY ({select}) TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
        return path

    return written


def spans_of(path: Path) -> list[SpanRecord]:
    opened = open_source(str(path))
    assert opened.format == "parquet"
    return [record for record in opened.records if isinstance(record, SpanRecord)]


def test_a_trace_data_set_that_phoenix_saved() -> None:
    opened = open_source(str(FIXTURES / "trace_dataset.parquet"))
    (run,) = build_runs(opened.records)
    kinds = [step.kind for step in run.steps]
    assert kinds == ["model_call", "tool_call", "tool_call", "model_call", "tool_call", "model_call"]
    assert run.session_id == "session-1"
    assert [step.output for step in run.steps if step.name == "get_weather"] == [
        {"result": {"city": "Paris", "celsius": 21, "sky": "sunny"}},
        {"result": {"city": "Oslo", "celsius": 4, "sky": "rain"}},
    ]
    assert run.steps[0].usage["input_tokens"] == 10
    assert [entry["code"] for entry in opened.report.fidelity] == ["phoenix-kept", "time-us"]


def test_rows_of_phoenix(write: Any) -> None:
    path = write(
        f"SELECT 'ask' AS name, 'LLM' AS span_kind, '{TRACE}' AS \"context.trace_id\", 'b7ad6b7169203331' AS \"context.span_id\", "
        "make_timestamp_ns(1749650492598123456) AS start_time, 'ERROR' AS status_code, 3.0 AS \"attributes.llm.token_count.prompt\", "
        "[{'message.role': 'user', 'message.content': 'hi'}] AS \"attributes.llm.input_messages\", "
        "{'a': {'b': 1}} AS \"attributes.metadata\", [{'name': 'e', 'timestamp': TIMESTAMP '2025-06-11 14:01:32.5'}] AS events"
    )
    (span,) = spans_of(path)
    assert (span.name, span.trace_id, span.start_ns, span.end_ns) == ("ask", TRACE, 1749650492598123456, None)
    assert span.attributes == {
        "llm.token_count.prompt": 3,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "hi",
        "metadata": '{"a":{"b":1}}',
        "openinference.span.kind": "LLM",
    }
    assert [(event.name, event.time_ns) for event in span.events] == [("e", 1749650492500000000)]


def test_rows_of_langsmith(write: Any) -> None:
    path = write(
        f"SELECT '{RUN}' AS id, '{RUN}' AS trace_id, 'get_weather' AS name, 'tool' AS run_type, "
        "TIMESTAMP '2025-06-11 14:01:32.6' AS start_time, TIMESTAMP '2025-06-11 14:01:33' AS end_time, "
        '\'{"city": "Paris"}\' AS inputs, \'{"output": 21}\' AS outputs, '
        '\'{"metadata": {"thread_id": "t"}}\' AS extra'
    )
    (span,) = spans_of(path)
    assert (span.name, span.start_ns, span.end_ns) == ("get_weather", 1749650492600000000, 1749650493000000000)
    assert span.attributes["gen_ai.prompt"] == '{"city": "Paris"}'
    assert span.attributes["langsmith.metadata.thread_id"] == "t"


def test_rows_that_are_no_spans_are_refused(write: Any) -> None:
    with pytest.raises(UnreadableSource) as caught:
        spans_of(write("SELECT 1 AS a, 2 AS b"))
    assert "a, b" in caught.value.found


@pytest.mark.parametrize(
    "damage", [lambda data: data[:200], lambda data: b"PAR1" + bytes(60) + b"PAR1", lambda data: data[:-20] + bytes(20)]
)
def test_damaged_files_are_refused(damage: Any, write: Any) -> None:
    data = damage(write("SELECT 1 AS a").read_bytes())
    with pytest.raises(UnreadableSource) as caught:
        list(open_source("-", stdin=io.BytesIO(data)).records)
    assert not caught.value.unexpected


@pytest.mark.parametrize("name", [b"\xa1\xa1\xa1\xa1", b"na\xc3e"])
def test_columns_without_a_readable_name_are_refused(name: bytes, write: Any, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(write("SELECT 1 AS name").read_bytes().replace(b"name", name))
    with pytest.raises(ParquetError):
        list(rows(damaged))


def test_rows_come_in_order_without_their_empty_fields(write: Any) -> None:
    found = rows(write("SELECT CASE WHEN i < 7 THEN 1 END AS a FROM range(9) t(i)"), batch=2)
    assert list(found) == [{"a": 1}] * 7 + [{}] * 2


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ParquetError):
        list(rows(Path("nothing.parquet")))
