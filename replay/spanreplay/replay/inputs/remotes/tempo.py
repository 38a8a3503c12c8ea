"""Tempo's query API: traces by id as version 2 gives them (version 1 of an older server), and TraceQL search.

JSON is asked for, not protobuf: Tempo cuts texts at a byte, and a character that was cut in two cannot be read as protobuf at all.
"""

import json
from collections.abc import Iterator
from typing import Final

from spanreplay.replay.inputs.remote import Fetch, Location

SCHEME: Final = "tempo"
TENANT_HEADER: Final = "X-Scope-OrgID"

_SEARCH: Final = ("q", "since", "until", "limit")


def documents(location: Location, fetch: Fetch) -> Iterator[tuple[str, bytes]]:
    """One trace, ``…/TRACEID``, or a search, ``…/?q={ span.gen_ai.agent.name = "x" }&since=2h``."""
    if not location.searches:
        yield location.text, _trace(location, fetch, location.path[-1])
        return
    query = location.known(*_SEARCH)
    since, until = location.period()
    asked = {"q": query.get("q", "{}"), "limit": location.limit(), "start": int(since.timestamp()), "end": int(until.timestamp()) + 1}
    found = fetch(location.under("api", "search"), asked)
    if found is None:
        raise location.wrong("Tempo's search API", "nothing there (404)")
    for trace in _ids(location, found):
        yield f"{location.under()} trace {trace}", _trace(location, fetch, trace)


def _trace(location: Location, fetch: Fetch, trace: str) -> bytes:
    # Span pruning may be a server's default; it would leave spans out.
    body = fetch(location.under("api", "v2", "traces", trace), {"span_pruning": "false"})
    if body is None:
        body = fetch(location.under("api", "traces", trace))
    if body is None:
        raise location.wrong(f"trace {trace}", "none (404)")
    return body


def _ids(location: Location, found: bytes) -> list[str]:
    try:
        listed = json.loads(found).get("traces") or []
        ids = [str(entry["traceID"]) for entry in listed]
    except (ValueError, AttributeError, KeyError, TypeError):
        raise location.wrong("a list of traces from Tempo's search API", found[:80].decode("utf-8", "replace")) from None
    if not ids:
        raise location.wrong("a trace that the search finds", "none")
    return [trace.rjust(32, "0") for trace in ids]  # leading zeros may be left off
