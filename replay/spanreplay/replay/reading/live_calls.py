"""A live model call, in the form in which it is matched, read by the provider that knows its API."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from spanreplay.instrumentation.provider import recognise
from spanreplay.replay.model import Json


class LiveCall(NamedTuple):
    """What is asked in one."""

    provider: str
    """Name of the provider whose API it is."""
    view: Mapping[str, Any]
    """The request as attributes ``gen_ai.*``; messages and tools as JSON text."""
    body: Json
    """The request as it is sent."""


def read_live(asked: str) -> LiveCall | None:
    """Read a live call; ``None`` where no provider knows it.

    Args:
        asked: JSON text with ``method``, ``url`` and ``body``.
    """
    document = json.loads(asked)
    if not isinstance(document, dict) or "body" not in document:
        return None
    body = json.dumps(document["body"]).encode("utf-8", "surrogatepass")
    found = recognise(str(document.get("method", "POST")), str(document.get("url", "")), "application/json", body)
    if found is None:
        return None
    provider, request = found
    return LiveCall(provider.NAME, provider.request(request).attributes, document["body"])
