"""The resource of spans that no tracer provider made: this process."""

import os
import socket
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Resource, Value

_WITH_VALUE: Final = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python whose value is an argument of its own."""


def process_resource() -> Resource:
    """This process, by the names of the resource conventions, from the same variables that the SDK reads."""
    attributes: dict[str, Value] = {
        "telemetry.sdk.language": "python",
        "process.runtime.name": sys.implementation.name,
        "process.runtime.version": sys.version.split()[0],
        names.PROCESS_PID: os.getpid(),
        names.HOST_NAME: socket.gethostname(),
    }
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = pair.partition("=")
        if equals and key.strip():
            attributes[key.strip()] = unquote(value.strip())
    service = os.environ.get("OTEL_SERVICE_NAME")
    if service:
        attributes[names.SERVICE_NAME] = service
    attributes.setdefault(names.SERVICE_NAME, program() or "unknown_service")
    return Resource(attributes=attributes)


def program() -> str | None:
    """What people know this program by: ``agent`` of ``python agent.py``, ``shop.worker`` of ``python -m shop.worker``."""
    arguments = iter(sys.orig_argv[1:])
    for argument in arguments:
        if argument == "-m":
            return next(arguments, None)
        if argument.startswith("-c") or argument == "-":
            return None
        if argument in _WITH_VALUE:
            next(arguments, None)
        elif not argument.startswith("-"):
            return Path(argument).stem or None
    return None
