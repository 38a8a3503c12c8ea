"""Which tests begin first: what takes long, dealt out to the workers, so that none is left alone with it at the end.

With ``--dist worksteal`` each worker of pytest-xdist is given an equal share of the tests, in order, and one that has nothing left takes
from the end of another one's share.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

LONG: Final = (
    "conformance/test_conformance.py::test_spanreplay_passes_as_a_command",
    "conformance/test_conformance.py::test_no_scenario",
    "conformance/test_conformance.py::test_spanreplay_passes_in_a_process",
    "fuzz/test_fuzz.py::test_nor",
    "fuzz/test_fuzz.py::test_whatever_comes_is_read_or_refused",
    "replay/test_import_memory.py",
    "exporter/test_receiver_clients.py",
    "exporter/test_readers_beside_writers.py",
    "instrumentation/test_concurrency.py",
    "instrumentation/transports/test_heavy_sdks.py",
    "replay/isolation/test_battery.py",
    "replay/reexecution/test_mutations.py",
    "replay/reexecution/test_engine.py",
    "acceptance/",
    "acceptance_replay/",
    "pages/",
    "foreign/",
    "frameworks/",
    "weather/",
    "exporter/test_retention_kills.py",
    "exporter/test_compaction.py::test_writers_that_are_killed",
    "exporter/test_compaction.py::test_a_killed_compactor",
)
"""Beginnings of their names, below ``tests/``; the longest first."""


class Named(Protocol):
    """A test, as far as this needs it."""

    @property
    def nodeid(self) -> str:
        """``tests/<file>::<test>``."""


Test = TypeVar("Test", bound=Named)


def dealt(tests: Sequence[Test], workers: int) -> list[Test]:
    """The tests in shares as large as each worker is given, every share beginning with its part of what takes long."""
    ranks = [_rank(test.nodeid) for test in tests]
    long = [test for _, test in sorted(zip(ranks, tests, strict=True), key=lambda pair: pair[0]) if _rank(test.nodeid) < len(LONG)]
    rest = [test for rank, test in zip(ranks, tests, strict=True) if rank == len(LONG)]
    found: list[Test] = []
    for worker in range(workers):
        size = (len(tests) - len(found)) // (workers - worker)
        first = long[worker::workers]
        found += first
        left = max(0, size - len(first))
        found += rest[:left]
        del rest[:left]
    return found + rest


def _rank(name: str) -> int:
    below = name.partition("tests/")[2]
    return next((place for place, beginning in enumerate(LONG) if below.startswith(beginning)), len(LONG))
