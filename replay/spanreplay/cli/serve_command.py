"""``spanreplay serve``."""

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.options import WrongUse, check_kept, common, many, print_json, quiet, say, store_path, verbose

if TYPE_CHECKING:
    from spanreplay.receiver.receiver import Receiver
    from spanreplay.receiver.settings import Settings

TOKEN_VARIABLE: Final = "SPANREPLAY_SERVE_TOKEN"  # noqa: S105 — its name
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
_PORT: Final = click.IntRange(0, 65535)


@click.command("serve")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen. Not loopback: needs a token and TLS."
)
@click.option("--http-port", type=_PORT, default=4318, show_default=True, help="OTLP over HTTP, and /healthz; 0 is any free one.")
@click.option("--grpc-port", type=_PORT, default=4317, show_default=True, help="OTLP over gRPC; 0 is any free one.")
@click.option(
    "--token-file", type=_FILE, help=f"File with the tokens that let a sender in, one a line. Default: the token in ${TOKEN_VARIABLE}."
)
@click.option("--tls-cert", type=_FILE, help="Certificate (PEM), with those that vouch for it.")
@click.option("--tls-key", type=_FILE, help="Its key (PEM).")
@common
def command(
    host: str,
    http_port: int,
    grpc_port: int,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Receive OTLP, traces and logs, into the store; Ctrl-C ends it. Acknowledges only what is on the disk.

    Every other command works meanwhile, on what has arrived. Needs: pip install 'spanreplay[serve]'

    \b
    spanreplay serve
    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 python agent.py
    """  # noqa: D301
    try:
        import grpc  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise WrongUse(f"serve needs {error.name}, which is not installed: pip install 'spanreplay[serve]'") from error

    from spanreplay.receiver.receiver import Receiver
    from spanreplay.receiver.settings import ReceiverError, Settings, tokens_in
    from spanreplay.replay.rebuilding.runs import index

    for secret in (token_file, tls_key):
        if secret is not None and os.name == "posix" and secret.stat().st_mode & 0o077:
            say(f"{secret} is open to other users of this machine: chmod 600 {secret}")
    try:
        text = token_file.read_text("utf-8") if token_file is not None else os.environ.get(TOKEN_VARIABLE)
        tokens = tokens_in(text) if text is not None else ()
        settings = Settings(
            store=store_path(store), host=host, http_port=http_port, grpc_port=grpc_port, tokens=tokens, certificate=tls_cert, key=tls_key
        )
        receiver = Receiver(settings, settle=index)
        check_kept(receiver.store)
        _look_at(receiver)
        _log()
        receiver.run(lambda: _started(receiver, settings, as_json=as_json))
    except (ReceiverError, UnicodeDecodeError) as error:
        raise WrongUse(str(error)) from error
    got = receiver.counts
    say(
        f"received {many(got.spans, 'span')} and {many(got.logs, 'log record')} in {many(got.requests, 'request')}, left out {got.rejected}"
    )
    if receiver.loading:
        say("not all of it is loaded yet, the next command goes on with that")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _look_at(receiver: "Receiver") -> None:
    """A store that is damaged, or of a newer version, is refused before anything is received for it.

    Raises:
        StoreError: it is such a one.
    """
    from spanreplay.store.errors import LockedStoreError
    from spanreplay.store.store import Store

    with suppress(LockedStoreError):
        Store.open(receiver.store, wait_s=1.0).find_runs(limit=1)


def _started(receiver: "Receiver", settings: "Settings", *, as_json: bool) -> None:
    scheme = "https" if settings.certificate is not None else "http"
    host = f"[{settings.address}]" if ":" in settings.address else settings.address
    over_http, over_grpc = f"{scheme}://{host}:{receiver.http_port}", f"{scheme}://{host}:{receiver.grpc_port}"
    if as_json:
        print_json({"schema": 1, "http": over_http, "grpc": over_grpc, "store": str(receiver.store)})
    say(f"receiving OTLP over HTTP at {over_http} and over gRPC at {over_grpc}, into {receiver.store}; Ctrl-C ends it")


def _log() -> None:
    """What a receiver has to say while it runs, on stderr."""
    level = logging.ERROR if quiet() else logging.INFO if verbose() else logging.WARNING
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.ERROR)
    logging.getLogger("spanreplay").setLevel(level)
