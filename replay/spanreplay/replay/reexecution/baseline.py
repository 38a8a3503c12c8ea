"""Recordings that lie in a repository beside the tests that use them: one file of OTLP JSON, written to be compared line by line."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spanreplay.recording import control
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run
from spanreplay.replay.outgoing import of_runs
from spanreplay.replay.rebuilding.runs import build_runs, index
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record
from spanreplay.store.store import Store

_INDENT: Final = 1


class NothingRecorded(Exception):  # noqa: N818 — reads as what happened
    """A recording has no step, or was made inside another one."""


@dataclass(slots=True)
class Baseline:
    """What was recorded in a block."""

    runs: list[Run] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@contextmanager
def recorded() -> Iterator[Baseline]:
    """Record everything that this process does in the block; what is yielded is filled at its end, also when the block fails.

    Raises:
        NothingRecorded: this process is being recorded or replayed already.
    """
    if control.status().recording:
        raise NothingRecorded("this process is being recorded already: record the tests alone, without spanreplay record around them")
    made = Baseline()
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder:
        control.start(store=folder)
        try:
            yield made
        finally:
            control.stop()
            made.records = _records(Path(folder))
            made.runs = [run for run in build_runs(made.records) if run.steps]


def _records(path: Path) -> list[Record]:
    with Store.open(path, create=True) as store:
        store.compact()
        index(store)
        with store.reading():
            traces = sorted({trace for row in store.find_runs() for trace in store.traces_of(row.run_id)})
            return [*store.traces(traces), *store.logs(traces)]


def read(path: Path) -> list[Run]:
    """The runs of a file, in the order they began.

    Raises:
        UnreadableSource: it is not there, or holds no traces.
    """
    return build_runs(open_source(str(path)).records)


def write(path: Path, records: Sequence[Record], runs: Sequence[Run]) -> None:
    """Write runs to a file, whole or not at all.

    Raises:
        NothingRecorded: there is no run.
        OSError: the file cannot be written.
    """
    if not runs:
        raise NothingRecorded(f"{path} is not written: no model or tool call was made")
    text = json.dumps(otlp_json.encode(of_runs(records, runs)), indent=_INDENT, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="surrogatepass")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
