"""What the page about forks shows is what the program prints."""

from itertools import islice
from pathlib import Path

from pages.console import ROOT, parts, run, steady
from support.nursery import folder_of_commands
from support.size import FULL


def test_the_page_about_forks_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "forks.md").read_text(encoding="utf-8")
    assert len(list(parts(page))) == 10
    for command, output in islice(run(page, tmp_path, folder_of_commands()), None if FULL else 2):
        assert steady(output) == steady(command.shown), f"$ {command.line}\n{output}"
