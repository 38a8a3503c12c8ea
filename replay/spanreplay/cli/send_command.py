"""``spanreplay send``."""

from pathlib import Path

import click

from spanreplay.cli.options import common, print_json, say


@click.command("send")
@click.argument("target", default="last")
@click.option("--endpoint", required=True, help="OTLP endpoint: http://localhost:4318, or grpc://localhost:4317.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="Request header, for example a tenant. May be repeated.")
@click.option("--content", type=click.Choice(["view", "full"]), default="view", show_default=True, help="full: the wire content too.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds to wait for an answer.")
@common
def command(
    target: str,
    endpoint: str,
    headers: tuple[str, ...],
    content: str,
    timeout: float,
    store: Path | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Send a run to an OTLP endpoint, to look at it in Jaeger or Tempo.

    \b
    spanreplay send last --endpoint http://localhost:4318
    """  # noqa: D301
    from spanreplay.cli.sending import SendFailed, send
    from spanreplay.cli.target import load
    from spanreplay.replay.outgoing import of_runs, view_of
    from spanreplay.spans.record import SpanRecord

    pairs = [h.partition("=") for h in headers]
    if wrong := [k for k, sep, _ in pairs if not sep]:
        raise click.BadParameter(f"wanted NAME=VALUE, found {wrong[0]!r}", param_hint="--header")
    loaded = load(target, store)
    spans = [r for r in of_runs(loaded.records, loaded.runs) if isinstance(r, SpanRecord)]
    if content == "view":
        spans = [view_of(s) for s in spans]
    try:
        rejected = send(spans, endpoint=endpoint, headers={k: v for k, _, v in pairs}, timeout_s=timeout)
    except SendFailed as error:
        raise click.ClickException(str(error)) from error
    traces = sorted({s.trace_id for s in spans})
    if as_json:
        print_json({"schema": 1, "endpoint": endpoint, "spans": len(spans), "rejected": rejected, "trace_ids": traces})
    else:
        say(f"sent {len(spans)} spans to {endpoint}" + (f"; it rejected {rejected}" if rejected else ""), quiet=quiet)
        click.echo("\n".join(traces))
