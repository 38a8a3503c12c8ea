"""``spanreplay export``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.joining import joining
from spanreplay.cli.options import WrongUse, common, many, print_bytes, print_json, say
from spanreplay.cli.written_files import write_whole

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded

WRITERS: Final = ("otlp-json", "otlp-proto", "jaeger", "parquet", "messages")
"""Names of the writers, here so that ``--help`` imports none of them."""
PYTEST: Final = "pytest"
FORMATS: Final = (*WRITERS, PYTEST)
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
@click.option(
    "--call", metavar="MODULE:FUNCTION", help="With pytest: the agent, called with the run's input. Default: the recorded command."
)
@joining
@fetching
@common
def command(target: str, form: str, output: Path, call: str | None, store: Path | None, as_json: bool) -> None:
    """Write a run, with every span it was recorded in, to a file: OTLP, Jaeger's JSON for its UI, Parquet, or chat messages.

    With pytest the file is a test that replays the run; its recording is written beside it, into runs/.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, a
    URL such as jaeger+http://localhost:16686/TRACEID, or SOURCE#RUN.
    --json describes what was written, and needs -o.

    \b
    spanreplay export last -o run.json
    spanreplay export traces.json --format otlp-proto -o traces.pb
    spanreplay export 4f2a --format pytest --call agent:answer -o tests/test_refund.py
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.target import is_bare_command, load
    from spanreplay.replay.outgoing import of_runs
    from spanreplay.replay.writer import registry
    from spanreplay.spans.record import SpanRecord

    if call is not None and form != PYTEST:
        raise click.UsageError("--call is for --format pytest")
    if form == PYTEST:
        _write_test(target, store, output, call, as_json=as_json)
        return
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
        raise WrongUse(f"nothing to write as {form}: no model call of {many(len(loaded.runs), 'run')} has its messages")
    if form == "jaeger" and (odd := sum(s.end_ns is None or s.end_ns < s.start_ns for s in spans)):
        say(f"{many(odd, 'span')} without an end, or with an end before the start: Jaeger has no form for it, written as 0 long")
    if left_out:
        say(f"{many(left_out, 'log record')} left out: {form} holds spans only; otlp-json holds both")
    if output == _STDOUT:
        print_bytes(data)
        return
    write_whole(output, data)
    runs = [r.run_id for r in loaded.siblings if not is_bare_command(r, loaded.siblings)]
    if as_json:
        print_json({"schema": 1, "file": str(output), "format": form, "spans": len(spans), "left_out": left_out, "runs": runs})
    else:
        say(f"{output}: {many(len(spans), 'span')} of {many(len(loaded.runs), 'run')}")


def _write_test(target: str, store: Path | None, output: Path, call: str | None, *, as_json: bool) -> None:
    from spanreplay.cli.about import about
    from spanreplay.cli.target import load
    from spanreplay.replay.making_tests import is_reference, pytest_module
    from spanreplay.replay.outgoing import of_runs
    from spanreplay.spans import otlp_json

    if output != _STDOUT and output.suffix != ".py":
        raise click.UsageError(f"a test is a Python file: wanted a name that ends in .py, such as -o tests/test_refund.py; found {output}")
    if output == _STDOUT:
        raise click.UsageError("a test is written to a file; name it with -o, such as -o tests/test_refund.py")
    if call is not None and not is_reference(call):
        raise click.UsageError(f"--call: wanted MODULE:FUNCTION, found {call!r}")
    loaded: Loaded = load(target, store)
    about(loaded)
    made = pytest_module(output, loaded.one(), loaded.siblings, call=call)
    for path in (output, made.recording):
        if path.exists():
            raise WrongUse(f"{path} is there already; name another file with -o, or delete it")
    document = otlp_json.encode(of_runs(loaded.records, loaded.siblings))
    write_whole(made.recording, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"), folder=True)
    write_whole(output, made.text.encode(), folder=True)
    if as_json:
        runs = [run.run_id for run in loaded.runs]
        print_json({"schema": 1, "file": str(output), "format": PYTEST, "recording": str(made.recording), "runs": runs})
    else:
        say(f"{output}: {'run it with: pytest ' + str(output) if made.complete else 'fill in which agent to call'}")
        say(f"{made.recording}: its recording")
