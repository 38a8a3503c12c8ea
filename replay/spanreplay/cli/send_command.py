"""``spanreplay send``."""

from pathlib import Path

import click

from spanreplay.cli.fetching import endpoint_access, sending_to
from spanreplay.cli.options import common, complain, detail, many, print_json, print_text, say


@click.command("send")
@click.argument("target", default="last")
@click.option("--endpoint", required=True, metavar="URL", help="OTLP endpoint: http://localhost:4318, or grpc://localhost:4317.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="Request header, for example a tenant. May be repeated.")
@click.option(
    "--content",
    type=click.Choice(["view", "full"]),
    default="view",
    show_default=True,
    help="view: what people look at. full: also what a replay needs.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", default=10.0, show_default=True, help="Seconds to wait for an answer."
)
@sending_to
@common
@click.pass_context
def command(
    context: click.Context,
    target: str,
    endpoint: str,
    headers: tuple[str, ...],
    content: str,
    timeout: float,
    store: Path | None,
    as_json: bool,
) -> None:
    """Send a run to an OTLP endpoint, to look at it in Jaeger or Tempo. Prints the ids of its traces.

    TARGET is last, last~2, a run id or its beginning, a file or folder of traces, - for standard input, or FILE#RUN.

    \b
    spanreplay send last --endpoint http://localhost:4318
    spanreplay send traces.json --endpoint grpc://localhost:4317
    """  # noqa: D301
    from spanreplay.cli.about import about
    from spanreplay.cli.sending import NoEndpoint, SendFailed, address_of, send
    from spanreplay.cli.target import load
    from spanreplay.replay.outgoing import of_runs, view_of
    from spanreplay.spans.record import SpanRecord

    pairs = [h.partition("=") for h in headers]
    if wrong := [k for k, sep, _ in pairs if not sep or not k.strip()]:
        raise click.BadParameter(f"wanted NAME=VALUE, found {wrong[0]!r}", param_hint="--header")
    try:
        address = address_of(endpoint)
    except NoEndpoint as error:
        raise click.BadParameter(str(error), param_hint="--endpoint") from error
    access = endpoint_access()
    if access.ca is not None and not address.secure:
        raise click.BadParameter(f"{endpoint} is not reached over TLS; write https:// or grpcs://", param_hint="--ca")
    bearer = {"authorization": f"Bearer {access.bearer}"} if access.bearer is not None else {}
    loaded = load(target, store)
    about(loaded)
    records = of_runs(loaded.records, loaded.runs)
    spans = [r for r in records if isinstance(r, SpanRecord)]
    if len(records) > len(spans):
        say(f"{many(len(records) - len(spans), 'log record')} left out: only spans are sent")
    if content == "view":
        spans = [view_of(s) for s in spans]
    detail(f"sending {many(len(spans), 'span')} to {address.text}")
    try:
        sent = send(spans, address=address, headers={**{k.strip(): v for k, _, v in pairs}, **bearer}, timeout_s=timeout, ca=access.ca)
    except SendFailed as error:
        raise click.ClickException(str(error)) from error
    traces = sorted({s.trace_id for s in spans})
    if as_json:
        print_json(
            {
                "schema": 1,
                "endpoint": endpoint,
                "spans": len(spans),
                "rejected": sent.rejected,
                "messages": list(sent.messages),
                "trace_ids": traces,
            }
        )
    else:
        say(f"sent {many(len(spans), 'span')} to {endpoint}")
        print_text("\n".join(traces))
    for message in sent.messages:
        say(f"it says: {message}")
    if sent.rejected:
        complain(f"Error: {endpoint} rejected {many(sent.rejected, 'span')} of {len(spans)}")
        context.exit(1)
