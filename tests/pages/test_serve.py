"""What the page about ``serve`` shows is what the program prints, while a receiver runs."""

from pathlib import Path

from pages.console import ROOT, parts, run, steady
from support.receiving import running


def test_the_page_about_receiving_shows_what_its_commands_print(tmp_path: Path) -> None:
    with running(tmp_path / ".spanreplay") as program:
        ports = {"localhost:4318": f"localhost:{program.at.http_port}", "localhost:4317": f"localhost:{program.at.grpc_port}"}
        page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
        for shown, real in ports.items():
            page = page.replace(shown, real)
        assert len(list(parts(page))) == 4
        for command, output in run(page, tmp_path):
            assert steady(output) == steady(command.shown), f"$ {command.line}\n{output}"
        assert program.stop() == 0
