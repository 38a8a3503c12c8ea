"""What importing costs: a file of traces to stored runs, against the bare parser over the same bytes.

A third of the parser's speed is wanted and not reached; the parts, each measured alone, say why. Writing rows that are ready into
the database, with nothing of ours before it, takes several times what ``json.loads`` takes for the same bytes: content is kept once as it
came and once as the steps hold it, compressed. Records are made in half as long again as ``json.loads`` takes to make dictionaries; to
cut and digest what they hold takes twice as long, to find out what ran, in which order and why, several times as long, and to tell which
messages the calls of a run have in common once more as long. What is left of the whole is opening a database, and making a new one.
``FromString`` makes no Python object of a single attribute: reading each once is already beyond what is wanted.
"""

import itertools
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from bench.measure import Ratio, ratio
from spanreplay.replay.importing import import_records
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import derive
from spanreplay.spans.record import Record
from spanreplay.store.appending import append
from spanreplay.store.compaction import BATCH_BYTES, BATCH_RECORDS
from spanreplay.store.database import transaction
from spanreplay.store.derived import STORED_STEP_COLUMNS, _step_row
from spanreplay.store.histories import Histories
from spanreplay.store.importing import Importer
from spanreplay.store.loading import BLOB_COLUMNS
from spanreplay.store.seals import HISTORY_COLUMNS, RunSeals
from spanreplay.store.span_rows import COLUMNS
from spanreplay.store.store import Store
from support.agent_traces import Mix, batches, conversation, write_json, write_proto

BATCHES: Final = 30
"""6000 spans: 30 MB of JSON in the mix of agents."""
PAIRS: Final = 30
LONG: Final = 400
SHORTS: Final = 8
THIRD: Final = 1 / 0.3
"""30 % of the parser's speed."""


def import_json() -> Ratio:
    """OTLP JSON lines of agents to stored runs, against ``json.loads`` of each line."""
    return _json("agents", goal=THIRD)


def import_json_small() -> Ratio:
    """The same with nothing but small spans, whose bytes are few."""
    return _json("small", goal=None)


def import_proto() -> Ratio:
    """Length-framed OTLP protobuf of agents to stored runs, against ``FromString`` of each message, which makes one Python object."""
    return _proto("agents", goal=THIRD)


def import_proto_small() -> Ratio:
    """The same with nothing but small spans."""
    return _proto("small", goal=None)


def import_reading() -> Ratio:
    """The first part: the bytes to records, without keeping any."""

    def read(path: Path, folder: Path) -> Callable[[], object]:
        return lambda: deque(open_source(str(path)).records, maxlen=0)

    return _part("OTLP JSON lines (agents) to records / json.loads of them", read)


def import_rows() -> Ratio:
    """The second part: records at hand to rows of spans and content, each text cut into what others have in common with it."""

    def made(path: Path, folder: Path) -> Callable[[], object]:
        records = list(open_source(str(path)).records)
        return lambda: [batch for batch, _ in _importer().batches(records)]

    return _part("records (agents) to rows of spans and content / json.loads of the lines they came in", made)


def import_deriving() -> Ratio:
    """The third part: records at hand to the rows of runs and steps."""

    def derived(path: Path, folder: Path) -> Callable[[], object]:
        traces = _by_trace(open_source(str(path)).records)
        return lambda: [derive(trace) for trace in traces]

    return _part("records (agents) to rows of runs and steps / json.loads of the lines they came in", derived)


def import_histories() -> Ratio:
    """The fourth part: steps at hand to what the database has of them, each message of a run once, and the seals of these rows."""

    def told(path: Path, folder: Path) -> Callable[[], object]:
        derived = [step for trace in _by_trace(open_source(str(path)).records) for step in derive(trace)[1]]

        def make() -> None:
            histories = Histories(derived)
            seals = RunSeals()
            seals.take("history", HISTORY_COLUMNS, histories.rows)
            seals.take("steps", STORED_STEP_COLUMNS, [_step_row(step, histories) for step in derived])

        return make

    return _part("steps (agents) to sealed rows and histories / json.loads of the lines they came in", told)


def derive_long() -> Ratio:
    """A run of many turns, each with all that was said before, against as many turns in short runs: 1 where a turn costs the same."""
    short = [conversation(LONG // SHORTS, seed=seed) for seed in range(SHORTS)]
    long = conversation(LONG)

    def of_short() -> None:
        for run in short:
            Histories(derive(run)[1])

    name = f"deriving a run of {LONG} turns / {SHORTS} runs that have as many together"
    return ratio(name, of_short, lambda: Histories(derive(long)[1]), goal=3, times=1, pairs=10, clock=time.process_time)


def import_writing() -> Ratio:
    """The fifth part: rows that are ready into a database of their own; all of this is DuckDB's."""

    def written(path: Path, folder: Path) -> Callable[[], object]:
        records = list(open_source(str(path)).records)
        ready = [(list(batch._rows.values()), list(batch._blobs.values())) for batch, _ in _importer().batches(records)]
        derived = [step for trace in _by_trace(records) for step in derive(trace)[1]]
        histories = Histories(derived)
        steps = [_step_row(step, histories) for step in derived]
        numbers = itertools.count()

        def write() -> None:
            store = Store.open(folder / f"written{next(numbers)}", create=True)
            for number, (spans, blobs) in enumerate(ready):
                with store._database.writing(much=True) as connection, transaction(connection):
                    append(connection, "spans", [gained.row for gained in spans], COLUMNS)
                    append(connection, "blobs", blobs, BLOB_COLUMNS)
                    append(connection, "steps", steps[number :: len(ready)], STORED_STEP_COLUMNS)

        return write

    return _part("rows of spans, content and steps (agents) into DuckDB / json.loads of the lines they came in", written)


def _importer() -> Importer:
    return Importer("import", batch_records=BATCH_RECORDS, batch_bytes=BATCH_BYTES)


def _by_trace(records: Iterable[Record]) -> list[list[Record]]:
    traces: dict[str | None, list[Record]] = {}
    for record in records:
        traces.setdefault(record.trace_id, []).append(record)
    return list(traces.values())


def _part(name: str, made: Callable[[Path, Path], Callable[[], object]]) -> Ratio:
    with _folder() as folder:
        path = folder / "traces.jsonl"
        with path.open("wb") as stream:
            size = write_json(stream, batches(BATCHES))
        lines = path.read_bytes().splitlines()
        note = f"{size / 1e6:.1f} MB"
        return ratio(
            name, lambda: deque(map(json.loads, lines), maxlen=0), made(path, folder), goal=None, times=1, pairs=PAIRS,
            clock=time.process_time, note=note,
        )  # fmt: skip


def _json(mix: Mix, goal: float | None) -> Ratio:
    with _folder() as folder:
        path = folder / "traces.jsonl"
        with path.open("wb") as stream:
            size = write_json(stream, batches(BATCHES, mix=mix))
        lines = path.read_bytes().splitlines()

        def parse() -> None:
            for line in lines:
                json.loads(line)

        name = f"OTLP JSON lines ({mix}) to stored runs / json.loads of them"
        return _measured(name, parse, path, folder, goal, size)


def _proto(mix: Mix, goal: float | None) -> Ratio:
    with _folder() as folder:
        path = folder / "traces.pb"
        with path.open("wb") as stream:
            size = write_proto(stream, batches(BATCHES, mix=mix))
        messages = list(_messages(path.read_bytes()))

        def parse() -> None:
            for message in messages:
                TracesData.FromString(message)

        name = f"OTLP protobuf ({mix}) to stored runs / FromString of it"
        return _measured(name, parse, path, folder, goal, size)


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _measured(name: str, parse: Callable[[], None], path: Path, folder: Path, goal: float | None, size: int) -> Ratio:
    numbers = itertools.count()

    def stored() -> None:
        with Store.open(folder / f"store{next(numbers)}", create=True) as store:
            import_records(store, open_source(str(path)).records)

    return ratio(name, parse, stored, goal=goal, times=1, pairs=PAIRS, clock=time.process_time, note=f"{size / 1e6:.1f} MB")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
