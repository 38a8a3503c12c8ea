"""``spanreplay doctor``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.options import common, print_json, print_text

if TYPE_CHECKING:
    from spanreplay.cli.probing import Examined

VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DEFAULT: Final = "http://localhost:4318"


@click.command("doctor")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="URL",
    help="Collector, Jaeger or Tempo. May be repeated. Default: $OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318.",
)
@fetching
@common
@click.pass_context
def command(context: click.Context, endpoints: tuple[str, ...], store: Path | None, as_json: bool) -> None:
    """Check a Collector, Jaeger or Tempo: is it there, would it cut or refuse what agents say, and which line changes that.

    It is asked only: no span is left there. Exit code: 0 all is well, 1 something has to be changed.

    \b
    spanreplay doctor
    spanreplay doctor --endpoint grpc://localhost:4317 --endpoint http://localhost:3200
    """  # noqa: D301
    del store
    from spanreplay.cli.fetching import access
    from spanreplay.cli.probing import examine
    from spanreplay.cli.sending import NoEndpoint

    given = access()
    named = endpoints or (next((os.environ[name] for name in VARIABLES if os.environ.get(name)), DEFAULT),)
    try:
        examined = [examine(endpoint, given) for endpoint in named]
    except NoEndpoint as error:
        raise click.BadParameter(str(error), param_hint="--endpoint") from error
    if as_json:
        print_json({"schema": 1, "ok": all(found.ok for found in examined), "endpoints": [_json(found) for found in examined]})
    else:
        _print(examined)
    context.exit(0 if all(found.ok for found in examined) else 1)


def _json(found: "Examined") -> dict[str, object]:
    checks = [{"what": check.what, "ok": check.ok, "detail": check.detail, "advice": check.advice} for check in found.checks]
    return {"endpoint": found.endpoint, "kind": found.kind, "version": found.version, "ok": found.ok, "checks": checks}


def _print(examined: "list[Examined]") -> None:
    from spanreplay.replay.showing import safe_lines

    lines: list[str] = []
    for found in examined:
        lines.append(found.endpoint)
        for check in found.checks:
            lines.append(f"  {'ok ' if check.ok else 'NO '} {check.detail}")
            if check.advice:
                lines.append(f"      → {check.advice}")
    print_text("\n".join(safe_lines(line) for line in lines))
