"""Shared fixtures."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from spanreplay.store import database
from support import order, store_template
from support.size import FULL

# At full size properties are tried in new places each time; else in the same ones, so that a commit passes or does not.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, derandomize=not FULL)
settings.load_profile("tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Among several workers, what takes long begins first."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = order.dealt(items, workers)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: nothing looks for garbage in it meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Nor do collections of garbage later, those that tests ask for too."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=not FULL)
def _copied_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New stores of this process are copies of one, and not synced; at full size, and in processes started anew, each is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_open_for_writing", store_template.copying(tmp_path_factory.mktemp("template") / "store"))
        yield


@pytest.fixture
def stores_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """New stores are made, as the product makes them: for tests of just that."""
    monkeypatch.setattr(database, "_open_for_writing", store_template.made)
