"""Progress is for terminals, and for work that lasts."""

import json
from pathlib import Path
from threading import Event

import pytest

from fixtures.runs.spans import tool
from spanreplay.cli import progress
from spanreplay.replay.importing import import_records
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json
from spanreplay.store.store import Store
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
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    demo.terminal = True
    assert "loading what was recorded" in demo("runs").err


def test_what_goes_on_when_all_has_been_read_has_a_bar_of_its_own(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1)
    spanreplay.terminal = True
    done = spanreplay("import", spanreplay.file("t.json", tool(1), tool(2)))
    before, _, after = done.err.partition("deriving runs")
    assert "importing" in before
    assert "100%" in after


def test_an_import_tells_how_many_records_are_still_to_be_derived(tmp_path: Path) -> None:
    told: list[str | int] = []

    class Told:
        def __call__(self, number: int) -> None:
            told.append(number)

        def then(self, what: str, total: int | None) -> None:
            told.extend([what, total or 0])

    import_records(Store.open(tmp_path / "store", create=True), [tool(1), tool(2)], None, Told())
    assert told == ["deriving runs", 2, 2]


def test_work_that_counts_nothing_for_long_is_shown_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.001)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = Event()

    def safe(what: str) -> str:
        shown.set()
        return what

    monkeypatch.setattr("spanreplay.replay.showing.safe", safe)
    with progress.working("thinking"):
        assert shown.wait(30)
    assert "thinking" in capsys.readouterr().err


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
    assert "%" not in done.err.partition("deriving runs")[0]
