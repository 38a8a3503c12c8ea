"""Options under headings."""

import click
from click.testing import CliRunner

from spanreplay.cli.sections import Sectioned, under


def test_options_are_listed_under_their_headings_in_the_order_they_come() -> None:
    @click.command(cls=Sectioned)
    @under("Cold", click.option("--ice", is_flag=True), click.option("--snow", is_flag=True))
    @click.option("--plain", is_flag=True)
    @under("Hot", click.option("--fire", is_flag=True), click.option("--smoke", hidden=True))
    @under("Cold", click.option("--frost", is_flag=True))
    def weather(**given: bool) -> None:
        click.echo(sorted(name for name, value in given.items() if value))

    lines = [
        line.split("  ")[0 if line.endswith(":") else 1] for line in CliRunner().invoke(weather, ["--help"]).output.splitlines()[2:] if line
    ]
    assert lines == ["Options:", "--plain", "--help", "Cold:", "--ice", "--snow", "--frost", "Hot:", "--fire"]
    assert CliRunner().invoke(weather, ["--snow", "--plain"]).output == "['plain', 'snow']\n"
