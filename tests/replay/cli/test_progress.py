"""Progress is for terminals, and for work that lasts."""

import json
from pathlib import Path

import pytest

from fixtures.runs.spans import tool
from spanreplay.cli import progress
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json
from support.command_line import CommandLine


@pytest.mark.parametrize(
    ("terminal", "patience", "quiet", "shown"),
    [(True, 0, [], True), (True, 60, [], False), (False, 0, [], False), (True, 0, ["-q"], False)],
)
def test_a_bar_is_shown_on_a_terminal_once_the_work_has_lasted(
    spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch, terminal: bool, patience: float, quiet: list[str], shown: bool
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience - 1)
    spanreplay.terminal = terminal
    done = spanreplay("import", spanreplay.file("t.json", tool(1), tool(2)), *quiet)
    assert done.code == 0
    assert ("importing" in done.err and "%" in done.err) is shown
    assert "2 new" in done.out


def test_a_dumb_terminal_gets_none(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    monkeypatch.setenv("TERM", "dumb")
    spanreplay.terminal = True
    assert spanreplay("import", spanreplay.file("t.json", tool(1))).err == ""


def test_loading_many_journals_shows_one_too(demo: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreplay.cli.stored._LONG", -1)
    demo.terminal = True
    assert "loading what was recorded" in demo("runs").err


def test_what_is_counted_is_what_passes() -> None:
    counts: list[int] = []
    assert list(progress.counted("abc", counts.append)) == ["a", "b", "c"]
    assert counts == [1, 1, 1]


def test_what_is_measured_is_how_far_the_input_was_read(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes((json.dumps(otlp_json.encode([tool(number + 1)])).encode() + b"\n") * 2000)
    opened = open_source(str(tmp_path))
    moved: list[int] = []
    records = list(progress.measured(opened.records, lambda: opened.report.position, moved.append))
    assert len(records) == 6000
    assert sum(moved) == opened.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert len([step for step in moved if step]) > 10
    assert min(moved) >= 0


def test_nobody_knows_how_much_a_pipe_will_give(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    spanreplay.terminal = True
    done = spanreplay("import", "-", stdin=spanreplay.file("t.json", tool(1)).read_bytes())
    assert "importing" in done.err
    assert "%" not in done.err
