"""Whatever is acknowledged is loaded: no record that a request can hold is refused by the journal or by the database later."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from span_strategies import logs, spans
from spanreplay.receiver.reading import Request, read
from spanreplay.spans import otlp_proto
from spanreplay.spans.record import SpanRecord
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store
from support.size import FULL


@settings(max_examples=200 if FULL else 6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(given_spans=st.lists(spans(), max_size=12), given_logs=st.lists(logs(), max_size=6))
def test_every_record_is_loaded(given_spans: list[SpanRecord], given_logs: list[Any], tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "store", process=current_process())
    requests = (
        Request(signal="spans", form="protobuf", encoding="", body=otlp_proto.encode(given_spans)),
        Request(signal="logs", form="protobuf", encoding="", body=otlp_proto.encode_logs(given_logs)),
    )
    for request in requests:
        for record in read(request, 1 << 20, lambda _: None):
            if isinstance(record, SpanRecord):
                writer.write_span(record, "receiver")
            else:
                writer.write_log(record, "receiver")
    assert writer.dropped == 0
    writer.close()
    report = Store.open(tmp_path / "store", create=True).compact()
    assert (report.rejected, report.crc_errors, report.dropped) == (0, 0, 0)
