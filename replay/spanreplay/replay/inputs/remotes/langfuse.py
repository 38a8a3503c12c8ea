"""Langfuse's public API (HTTP basic authentication: public key and secret key)."""

import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from spanreplay.replay.inputs.remote import Fetch, Location

SCHEME: Final = "langfuse"
TENANT_HEADER: Final = "x-tenant"
"""Langfuse has none of its own; a key belongs to one project."""

_SEARCH: Final = ("name", "user", "session", "tags", "since", "until", "limit")
_PAGE: Final = 50


def documents(location: Location, fetch: Fetch) -> Iterator[tuple[str, bytes]]:
    """One trace, ``…/TRACEID``, or a search, ``…/?session=ID&since=2d``: each trace with its observations."""
    if not location.searches:
        yield location.text, _trace(location, fetch, location.path[-1])
        return
    query = location.known(*_SEARCH)
    since, until = location.period()
    wanted, seen, page = location.limit(), 0, 1
    while seen < wanted:
        asked = {
            "page": page,
            "limit": min(_PAGE, wanted),
            "name": query.get("name"),
            "userId": query.get("user"),
            "sessionId": query.get("session"),
            "tags": query.get("tags"),
            "fromTimestamp": since.isoformat(),
            "toTimestamp": until.isoformat(),
        }
        ids = _ids(location, fetch(location.under("api", "public", "traces"), asked))
        for trace in ids[: wanted - seen]:
            yield f"{location.base} trace {trace}", _trace(location, fetch, trace)
        seen += len(ids)
        page += 1
        if len(ids) < min(_PAGE, wanted):
            break
    if not seen:
        raise location.wrong("a trace that the search finds", "none")


def _trace(location: Location, fetch: Fetch, trace: str) -> bytes:
    body = fetch(location.under("api", "public", "traces", quote(trace, safe="")))
    if body is None:
        raise location.wrong(f"trace {trace}", "none (404)")
    return body


def _ids(location: Location, found: bytes | None) -> list[str]:
    try:
        return [str(entry["id"]) for entry in json.loads(found or b"")["data"]]
    except (ValueError, KeyError, TypeError):
        raise location.wrong("a list of traces from Langfuse's API", (found or b"nothing")[:80].decode("utf-8", "replace")) from None
