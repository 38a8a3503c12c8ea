"""Fixtures of the tests with real back ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends import binaries, running
from backends.running import Peers
from support.command_line import CommandLine


@pytest.fixture
def built() -> None:
    """Skips where the Collector or Jaeger has not been built."""
    if absent := [path for path in (binaries.collector(), binaries.file_collector(), binaries.jaeger()) if not path.exists()]:
        pytest.skip(f"{absent[0].name} is not there; {binaries.HOW}")


@pytest.fixture
def peers(built: None, tmp_path: Path) -> Iterator[Peers]:
    """Starts Collectors and Jaegers; ends them after the test."""
    with running.peers(tmp_path / "peers") as made:
        yield made


@pytest.fixture
def spanreplay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """The program, in a folder of its own, with a store that is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANREPLAY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, tmp_path)
