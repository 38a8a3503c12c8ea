"""Fixtures of the weather tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.model_server import ModelServer
from support.nursery import Nursery
from weather.station import NEEDED, Station, build


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    """One model for all agents, so that its address is the same in all recordings."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One process that agents are forked from."""
    process = Nursery(*NEEDED)
    yield process
    process.close()


@pytest.fixture
def station(tmp_path: Path, model: ModelServer, nursery: Nursery) -> Station:
    """A working folder and an empty store."""
    return build(tmp_path / "station", model, nursery)
