"""``spanreplay query``."""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from spanreplay.cli.options import common, detail, many, print_bytes, print_json, print_text, store_path

PARQUET: Final = "parquet"


@click.command("query")
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", PARQUET]),
    default="table",
    show_default=True,
    help="How to give the answer.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="With parquet: the file to write. Default: standard output.",
)
@common
def command(sql: str, form: str, output: Path | None, store: Path | None, as_json: bool) -> None:
    """Ask the store in SQL. Read-only; no file or network access from SQL.

    Tables: runs, steps, spans, logs; views: tool_calls, model_calls, messages, conversations, tools_offered, decisions, versions,
    processes, contents. docs/queries.md has questions with their answers.

    \b
    spanreplay query "select name, count(*) from steps where outcome <> 'ok' group by name"
    spanreplay query "describe tool_calls"
    spanreplay query "from steps" --format parquet -o steps.parquet
    """  # noqa: D301
    from spanreplay.cli.stored import ready_store

    if form == PARQUET:
        _write(sql, None if output == Path("-") else output, store, as_json=as_json)
        return
    if output is not None:
        raise click.UsageError("-o is for --format parquet; the other forms go to standard output")
    with ready_store(store_path(store)) as opened:
        result = opened.query(sql)
        columns, rows = list(result.columns), [[_plain(v) for v in row] for row in result.rows]
    if as_json or form == "json":
        print_json({"schema": 1, "columns": columns, "rows": [_exact(columns, row) for row in rows]})
    elif form == "csv":
        from spanreplay.replay.showing import safe_lines

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([safe_lines(v) if isinstance(v, str) else v for v in row] for row in rows)
        print_text(text.getvalue().removesuffix("\n"))
    else:
        from spanreplay.replay.reports.tables import render_table

        print_text(render_table(columns, rows))
    detail(many(len(rows), "row"))


def _write(sql: str, output: Path | None, store: Path | None, *, as_json: bool) -> None:
    from spanreplay.cli.stored import ready_store
    from spanreplay.cli.written_files import write_whole

    if as_json:
        raise click.UsageError("--json and --format parquet are two forms of the answer; give one of them")
    if output is None and sys.stdout.isatty():
        raise click.UsageError("parquet is binary, and standard output is a terminal; give a file with -o")
    with ready_store(store_path(store)) as opened:
        data = opened.query_to_parquet(sql)
    if output is None:
        print_bytes(data)
    else:
        write_whole(output, data)


def _exact(columns: Sequence[str], row: Sequence[object]) -> list[object]:
    """A row for JSON: times in nanoseconds exceed what JSON's readers keep exactly, and are texts."""
    return [str(v) if name.endswith("_ns") and isinstance(v, int) else v for name, v in zip(columns, row, strict=True)]


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
