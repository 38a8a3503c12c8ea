"""``spanreplay export``."""

import json
from pathlib import Path

import click

from spanreplay.cli.options import common, say

FORMATS = ("otlp-json", "otlp-proto")


@click.command("export")
@click.argument("target", default="last")
@click.option("--format", "form", type=click.Choice(FORMATS), default="otlp-json", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: standard output.")
@common
def command(target: str, form: str, output: Path | None, store: Path | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Write a run, with every span it was recorded in, to a file that any OTLP reader takes.

    \b
    spanreplay export last -o run.json
    """  # noqa: D301
    from spanreplay.cli.target import load
    from spanreplay.replay.outgoing import of_runs
    from spanreplay.spans import otlp_json, otlp_proto
    from spanreplay.spans.record import SpanRecord

    loaded = load(target, store)
    records = of_runs(loaded.records, loaded.siblings)
    if form == "otlp-proto":
        data = otlp_proto.encode(r for r in records if isinstance(r, SpanRecord))
    else:
        data = (json.dumps(otlp_json.encode(records), ensure_ascii=True) + "\n").encode()
    if output is None:
        click.get_binary_stream("stdout").write(data)
        return
    output.write_bytes(data)
    say(f"{output}: {sum(isinstance(r, SpanRecord) for r in records)} spans of {len(loaded.siblings)} run(s)", quiet=quiet)
