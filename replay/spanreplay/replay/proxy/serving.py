"""The model proxy as a program of its own: ``python -m spanreplay.replay.proxy.serving``, recorded and replayed as any other.

It says where it is in a file, and goes when told so with the word it left there. What follows ``--`` is the command that it stands before,
which somebody else starts: a run's definition tells of that, see :func:`spanreplay.recording.definition.served_command`.
"""

import argparse
import asyncio
import json
import logging
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.manual import agent_run
from spanreplay.recording.definition import PROXY
from spanreplay.replay.proxy.http_app import ModelProxy
from spanreplay.replay.proxy.upstreams import upstreams


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a proxy that listens leaves in its file."""

    url: str
    token: str


def read_ready(file: Path) -> Ready | None:
    """Where the proxy is, once it listens."""
    try:
        told = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return Ready(url=told["url"], token=told["token"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog=PROXY)
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ready", type=Path, required=True)
    parser.add_argument("--upstream", action="append", default=[])
    parser.add_argument("command", nargs="*")
    given = parser.parse_args(arguments)
    with agent_run(given.name):
        asyncio.run(_serve(given.port, given.ready, given.upstream))


async def _serve(port: int, ready: Path, given: Sequence[str]) -> None:
    token = secrets.token_hex(16)
    proxy = ModelProxy(upstreams(given), token=token, stop=lambda: setattr(server, "should_exit", True))
    proxy.scope = here()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    settings = uvicorn.Config(
        proxy, loop="asyncio", http="h11", ws="none", lifespan="off", log_level="error", access_log=False, timeout_graceful_shutdown=5
    )
    logging.getLogger("uvicorn.error").addFilter(_is_a_fault)
    server = uvicorn.Server(settings)
    listener.listen(128)
    _tell(ready, f"http://127.0.0.1:{listener.getsockname()[1]}", token)
    try:
        await server.serve(sockets=[listener])
    finally:
        await proxy.close()


def _is_a_fault(record: logging.LogRecord) -> bool:
    """A response that ends before its time ends so because the other side's did, and is kept as that."""
    return record.exc_info is None or not isinstance(record.exc_info[1], ConnectionAbortedError)


def _tell(ready: Path, url: str, token: str) -> None:
    data = json.dumps({"url": url, "token": token}).encode()
    descriptor = os.open(ready, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # no act of an agent, and so not by open()
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
