"""Parquet: whole when read back, and of use to anybody with DuckDB."""

from pathlib import Path
from typing import Any

import duckdb
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, chat, tool
from span_strategies import logs, spans
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.writers import parquet
from spanreplay.spans import otlp_json
from spanreplay.spans.record import LogRecord, Record


def read_back(folder: Path, records: list[Record]) -> list[Record]:
    path = folder / "runs.parquet"
    path.write_bytes(parquet.write(records, build_runs(records)))
    opened = open_source(str(path))
    assert opened.format == "parquet"
    found = list(opened.records)
    assert opened.report.rejected == 0
    return found


def test_records_come_back_whole(tmp_path: Path) -> None:
    log = LogRecord(time_ns=4, trace_id=chat(2).trace_id, span_id=chat(2).span_id, body={"a": (1, None, b"x")})
    records: list[Record] = [agent(1), chat(2, 1), tool(3, 1), log]
    assert read_back(tmp_path, records) == records


@settings(max_examples=10, deadline=None, phases=[Phase.generate])
@given(records=st.lists(st.one_of(spans(), logs()), min_size=1, max_size=4))
def test_whatever_a_record_holds_comes_back_as_from_otlp_json(tmp_path_factory: Any, records: list[Record]) -> None:
    found = read_back(tmp_path_factory.mktemp("parquet"), records)
    assert repr(found) == repr([one for record in records for one in otlp_json.decode(otlp_json.encode([record]), "")])


def test_the_columns_answer_questions(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    records = [agent(1), chat(2, 1), tool(3, 1, name="search"), tool(4, 1, name='it\'s "odd"')]
    path.write_bytes(parquet.write(records, build_runs(records)))
    with duckdb.connect(":memory:") as connection:
        asked = (
            "SELECT tool, count(*), any_value(run_id) = any_value(trace_id) FROM read_parquet($1) "
            "WHERE operation = 'execute_tool' GROUP BY tool ORDER BY tool"
        )
        assert connection.execute(asked, [str(path)]).fetchall() == [('it\'s "odd"', 1, True), ("search", 1, True)]
