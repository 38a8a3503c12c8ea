"""``spanreplay export``."""

import os
import sys
from pathlib import Path

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.joining import joining
from spanreplay.cli.options import WrongUse, common, many, print_bytes, print_json, say

FORMATS = ("otlp-json", "otlp-proto", "jaeger", "parquet", "messages")
"""Names of the writers, here so that ``--help`` imports none of them."""
_STDOUT = Path("-")


@click.command("export")
@click.argument("target", default="last")
@click.option("--format", "form", type=click.Choice(FORMATS), default="otlp-json", show_default=True, help="What to write.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=_STDOUT,
    help="File to write. Default: standard output.",
)
@joining
@fetching
@common
def command(target: str, form: str, output: Path, store: Path | None, as_json: bool) -> None:
    """Write a run, with every span it was recorded in, to a file: OTLP, Jaeger's JSON for its UI, Parquet, or chat messages.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN.
    --json describes what was written, and needs -o.

    \b
    spanreplay export last -o run.json
    spanreplay export traces.json --format otlp-proto -o traces.pb
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.target import is_bare_command, load
    from spanreplay.replay.outgoing import of_runs
    from spanreplay.replay.writer import registry
    from spanreplay.spans.record import SpanRecord

    writer = registry()[form]
    if as_json and output == _STDOUT:
        raise click.UsageError("--json describes what was written to a file; give one with -o")
    if writer.BINARY and output == _STDOUT and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary, and standard output is a terminal; give a file with -o")
    loaded = load(target, store)
    about(loaded)
    records = of_runs(loaded.records, loaded.siblings)
    spans = [r for r in records if isinstance(r, SpanRecord)]
    left_out = 0 if writer.LOGS else len(records) - len(spans)
    data = writer.write(records, loaded.runs)
    if not data:
        say(f"nothing to write as {form}: no model call of {many(len(loaded.runs), 'run')} has its messages")
    if form == "jaeger" and (odd := sum(s.end_ns is None or s.end_ns < s.start_ns for s in spans)):
        say(f"{many(odd, 'span')} without an end, or with an end before the start: Jaeger has no form for it, written as 0 long")
    if left_out:
        say(f"{many(left_out, 'log record')} left out: {form} holds spans only; otlp-json holds both")
    if output == _STDOUT:
        print_bytes(data)
        return
    _write(output, data)
    runs = [r.run_id for r in loaded.siblings if not is_bare_command(r, loaded.siblings)]
    if as_json:
        print_json({"schema": 1, "file": str(output), "format": form, "spans": len(spans), "left_out": left_out, "runs": runs})
    else:
        say(f"{output}: {many(len(spans), 'span')} of {many(len(loaded.runs), 'run')}")


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; what is there already and is no file, such as a pipe, is written to as it is."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        try:
            part.write_bytes(data)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WrongUse(f"{path} cannot be written: {error.strerror or error}") from error
