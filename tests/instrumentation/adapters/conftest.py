"""A framework's modules as a test makes them, and an adapter on them, both gone afterwards."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


class Seams:
    """Modules of a framework that is not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._installed: list[Any] = []

    def module(self, name: str, **members: Any) -> ModuleType:
        """A module that counts as imported. The name in its classes' place is its own."""
        made = ModuleType(name)
        vars(made).update(members)
        self._monkeypatch.setitem(sys.modules, name, made)
        return made

    def install(self, adapter: Any) -> None:
        """Let an adapter observe the modules that there are now."""
        self._installed.append(adapter)
        adapter.uninstall()  # a replay in another test has installed all
        adapter.install()

    def undo(self) -> None:
        """Nothing is observed any more."""
        for adapter in self._installed:
            adapter.uninstall()


@pytest.fixture
def seams(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seams]:
    """Modules of a framework that is not there."""
    made = Seams(monkeypatch)
    yield made
    made.undo()
