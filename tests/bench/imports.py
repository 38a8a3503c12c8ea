"""What importing costs: a file of traces to stored runs, against the bare parser over the same bytes."""

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from bench.measure import Ratio, ratio
from spanreplay.replay.importing import import_records
from spanreplay.replay.source import open_source
from spanreplay.store.store import Store
from support.agent_traces import Mix, batches, write_json, write_proto

BATCHES: Final = 30
"""6000 spans: 30 MB of JSON in the mix of agents."""
PAIRS: Final = 30
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
