"""What the page about how long runs are kept shows is what the program prints."""

from pathlib import Path

from pages.console import ROOT, parts, run, steady
from support.nursery import folder_of_commands


def test_the_page_about_keeping_runs_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "retention.md").read_text(encoding="utf-8")
    assert len(list(parts(page))) == 7
    for command, output in run(page, tmp_path, folder_of_commands()):
        assert steady(output) == steady(command.shown), f"$ {command.line}\n{output}"
