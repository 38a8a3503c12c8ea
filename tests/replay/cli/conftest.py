import shutil
from pathlib import Path

import pytest

from fixtures.runs.spans import own, own_root
from spanreplay.semconv import attributes as a
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


@pytest.fixture
def in_command(spanreplay: CommandLine) -> CommandLine:
    """The program, with the run of an agent in its store, and the command it ran in, which has a step and a database of its own."""
    command, agent = "c0" * 16, "a9" * 16
    untaped = '[{"what":"database opened","target":"ck.db"}]'
    of_command = {a.RUN_COMMAND: True, a.RUN_COMMAND_ID: command, a.RUN_UNTAPED: untaped}
    of_agent = {a.RUN_COMMAND_ID: command}
    path = spanreplay.file(
        "in_command.json",
        own_root(1, run=command, seq=1, attributes=of_command),
        own(4, 1, "tool_call", run=command, seq=5, attributes={a.RUN_COMMAND_ID: command, a.STEP_INPUT: "1", a.STEP_RESULT: "2"}),
        own_root(2, 1, run=agent, seq=2, attributes=of_agent),
        own(3, 2, "tool_call", run=agent, seq=3, attributes={**of_agent, a.STEP_INPUT: "1", a.STEP_RESULT: "2"}),
    )
    spanreplay("import", path)
    return spanreplay
