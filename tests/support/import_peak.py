"""Imports a file (the first argument) into a store (the second) and prints the most memory that the process had, in bytes."""

import sys
from pathlib import Path

from spanreplay.replay.importing import import_records
from spanreplay.replay.inputs.source import open_source
from spanreplay.store.store import Store


def peak() -> int:
    """The high-water mark of this process alone: what its parent had before does not count."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    import_records(Store.open(Path(sys.argv[2]), create=True), open_source(sys.argv[1]).records)
    print(peak())
