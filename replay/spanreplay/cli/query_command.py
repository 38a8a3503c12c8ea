"""``spanreplay query``."""

import csv
import sys
from pathlib import Path

import click

from spanreplay.cli.options import common, print_json, store_path


@click.command("query")
@click.argument("sql")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@common
def command(sql: str, form: str, store: Path | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Ask the store in SQL. Read-only; no file or network access from SQL.

    \b
    spanreplay query "select name, count(*) from tool_calls where outcome <> 'ok' group by name"
    """  # noqa: D301
    from spanreplay.cli.target import ready_store

    with ready_store(store_path(store)) as opened:
        result = opened.query(sql)
        columns, rows = list(result.columns), [list(r) for r in result.rows]
    if as_json or form == "json":
        print_json({"schema": 1, "columns": columns, "rows": [[_plain(v) for v in row] for row in rows]})
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(v) for v in row] for row in rows)
    else:
        from spanreplay.replay.reports.text import render_table

        click.echo(render_table(columns, [[_plain(v) for v in row] for row in rows]))


def _plain(value: object) -> object:
    """A value as JSON and CSV can hold it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value)
