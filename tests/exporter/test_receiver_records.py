"""What a request holds is read whole or told, whatever it is; and whatever is acknowledged is loaded later."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, chat
from span_strategies import logs, spans
from spanreplay.receiver.reading import Request, read
from spanreplay.receiver.unpacking import TooLargeError
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.errors import FormatError, Problem
from spanreplay.spans.record import LogRecord, SpanRecord
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


VALID = {
    ("spans", "protobuf"): otlp_proto.encode([agent(1), chat(2, 1)]),
    ("spans", "json"): json.dumps(otlp_json.encode([agent(1), chat(2, 1)])).encode(),
    ("logs", "protobuf"): otlp_proto.encode_logs([LogRecord(time_ns=1, body={"a": (1, "b")})]),
    ("logs", "json"): json.dumps(otlp_json.encode([LogRecord(time_ns=1, body={"a": (1, "b")})])).encode(),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}


@settings(max_examples=5_000 if FULL else 150, deadline=None)
@given(
    kind=st.sampled_from(sorted(VALID)),
    encoding=st.sampled_from(sorted([*PACKED, "zstd"])),
    junk=st.binary(max_size=40),
    at=st.floats(0, 1),
    cut=st.integers(0, 40),
    inside=st.booleans(),
)
def test_whatever_comes_is_read_refused_or_told(
    kind: tuple[Any, Any], encoding: str, junk: bytes, at: float, cut: int, inside: bool
) -> None:
    def damaged(data: bytes) -> bytes:
        place = int(at * len(data))
        return data[:place] + junk + data[place + cut :]

    whole = VALID[kind]
    pack = PACKED.get(encoding, bytes)
    body = pack(damaged(whole)) if inside else damaged(pack(whole))
    told: list[Problem] = []
    try:
        found = list(read(Request(signal=kind[0], form=kind[1], encoding=encoding, body=body), 1 << 16, told.append))
    except (FormatError, TooLargeError):
        return
    assert all(record.trace_id is None or len(record.trace_id) == 32 for record in found)
