"""Fixtures of the acceptance tests."""

from pathlib import Path

import pytest

from acceptance.commands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A working folder with an empty store."""
    return Desk.laid_out(tmp_path / "desk")
