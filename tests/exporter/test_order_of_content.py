"""Spans and content of one trace lie together in the database, however the traces took turns."""

from pathlib import Path

from spanreplay.spans.record import SpanRecord
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store


def test_what_a_trace_brings_lies_together(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    writer = JournalWriter(store.path, process=current_process())
    for turn in range(4):
        for trace in "abc":
            text = f"{trace}{turn} " + "x" * 600
            writer.write_span(SpanRecord(trace_id=trace * 32, span_id=f"{turn:016x}", attributes={"text": text}), "recorder")
    writer.close()
    store.compact()
    found = [text for (text,) in store.query("SELECT text[:2] FROM blobs ORDER BY rowid").rows]
    assert found == [f"{trace}{turn}" for trace in "abc" for turn in range(4)]
    places = [*store.query("SELECT trace_id[1], span_id[16] FROM spans ORDER BY rowid").rows]
    assert places == [(trace, str(turn)) for trace in "abc" for turn in range(4)]
    assert [span.attributes["text"][:2] for span in store.traces(["b" * 32])] == ["b0", "b1", "b2", "b3"]  # type: ignore[index]
