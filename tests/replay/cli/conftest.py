import shutil
from pathlib import Path

import pytest

from support.command_line import CommandLine


@pytest.fixture
def spanreplay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """The program, in a folder of its own, with a store that is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANREPLAY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return CommandLine(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def recorded_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run of ``demo`` in it; not to be changed."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SPANREPLAY_STORE", str(folder / "store"))
        done = CommandLine(patch, folder)("demo", "-q")
    assert done.code == 0, done
    return folder / "store"


@pytest.fixture
def demo(spanreplay: CommandLine, recorded_demo: Path) -> CommandLine:
    """The program, with the run of ``demo`` in its store."""
    shutil.copytree(recorded_demo, spanreplay.store)
    return spanreplay
