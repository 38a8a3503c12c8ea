"""What an import needs of memory does not grow with what is imported."""

import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from spanreplay.replay.importing import import_records
from spanreplay.spans.record import SpanRecord
from spanreplay.store import compaction, whole
from spanreplay.store.store import Store
from support.agent_traces import batches, write_json, write_proto
from support.size import FULL

MB = 1_000_000
Write = Callable[[BinaryIO, Iterator[list[SpanRecord]]], int]


class Attributes(dict[str, Any]):
    """Attributes that can be seen to be alive."""

    __slots__ = ("__weakref__",)


class Alive:
    """Counts the records that are still held while others are read."""

    def __init__(self) -> None:
        self._held: weakref.WeakSet[Attributes] = weakref.WeakSet()
        self.most = 0

    def __call__(self, records: Iterator[SpanRecord]) -> Iterator[SpanRecord]:
        for number, record in enumerate(records):
            attributes = Attributes(number=number)
            self._held.add(attributes)
            self.most = max(self.most, len(self._held))
            yield SpanRecord(trace_id=record.trace_id, span_id=record.span_id, start_ns=number, end_ns=number, attributes=attributes)
            del attributes


Attributes.__hash__ = object.__hash__  # type: ignore[assignment]  # for the set; each is itself


@pytest.mark.parametrize("at_once", [4, 200], ids=["one after the other", "between each other"])
def test_records_are_let_go(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH_RECORDS", 160)
    monkeypatch.setattr(whole, "HELD_BYTES", 200_000)
    monkeypatch.setattr(whole, "_GIVEN_BYTES", 50_000)
    alive = Alive()
    records = (span for batch in batches(7, mix="small", at_once=at_once) for span in batch)
    report = import_records(Store.open(tmp_path / "store", create=True), alive(records))
    assert report.new == 1400
    assert alive.most < 600


# ---- the sizes that are claimed ----------------------------------------------------------------------------------

claimed = pytest.mark.skipif(
    not FULL or not Path("/proc/self/status").exists(), reason="imports gigabytes (SPANREPLAY_TEST_SIZE=full), and looks into /proc"
)


def peak(folder: Path, write: Write, size: int, *, at_once: int = 8) -> int:
    """Bytes that a process had at most that imported a file of this size."""
    path = folder / f"traces{size}"
    written = 0
    with path.open("wb") as stream:
        for batch in batches(size, at_once=at_once):
            written += write(stream, iter([batch]))
            if written >= size:
                break
    program = Path(__file__).parent.parent / "support" / "import_peak.py"
    done = subprocess.run([sys.executable, program, path, folder / f"store{size}"], check=True, capture_output=True, text=True)
    path.unlink()
    return int(done.stdout)


@claimed
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("write", [write_json, write_proto], ids=["json", "proto"])
def test_a_gigabyte_takes_less_than_512_mb_and_hardly_more_than_a_tenth_of_it(write: Write, tmp_path: Path) -> None:
    tenth, whole_file = peak(tmp_path, write, 100 * MB), peak(tmp_path, write, 1_000 * MB)
    assert whole_file < 512 * MB
    assert whole_file - tenth < 192 * MB


@claimed
@pytest.mark.timeout(3600)
def test_nor_does_a_file_whose_traces_lie_between_each_other(tmp_path: Path) -> None:
    assert peak(tmp_path, write_json, 500 * MB, at_once=3000) < 512 * MB
