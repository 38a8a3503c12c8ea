"""Jaeger's query API, version 3 (stable), and where a server is too old for it the internal JSON API.

Parameters are written in snake case and ``num_traces`` is named so: that is understood by 1.76 as well as by 2.19 and later
(``apiv3/http_gateway.go``). ``raw_traces`` asks for spans as they were stored, without Jaeger's adjustments.
"""

from collections.abc import Iterator
from typing import Final

from spanreplay.replay.inputs.remote import Fetch, Location

SCHEME: Final = "jaeger"
TENANT_HEADER: Final = "x-tenant"

_SEARCH: Final = ("service", "operation", "since", "until", "limit", "min_duration", "max_duration")


def documents(location: Location, fetch: Fetch) -> Iterator[tuple[str, bytes]]:
    """One trace, ``…/TRACEID``, or a search, ``…/?service=NAME&since=2h``."""
    if not location.searches:
        trace = location.path[-1]
        body = fetch(location.under("api", "v3", "traces", trace), {"raw_traces": "true"})
        if body is None:
            body = fetch(location.under("api", "traces", trace), {"raw": "true"})
        if body is None:
            raise location.wrong("a trace of that id", "none (404)")
        yield location.text, body
        return
    query = location.known(*_SEARCH)
    if "service" not in query:
        raise location.wrong("…/TRACEID or …/?service=NAME", "neither a trace id nor a service")
    since, until = location.period()
    asked = {
        "query.service_name": query["service"],
        "query.operation_name": query.get("operation"),
        "query.start_time_min": since.isoformat().replace("+00:00", "Z"),
        "query.start_time_max": until.isoformat().replace("+00:00", "Z"),
        "query.num_traces": location.limit(),
        "query.duration_min": query.get("min_duration"),
        "query.duration_max": query.get("max_duration"),
        "query.raw_traces": "true",
    }
    body = fetch(location.under("api", "v3", "traces"), asked)
    if body is None:
        older = {
            "service": query["service"],
            "operation": query.get("operation"),
            "start": int(since.timestamp() * 1e6),
            "end": int(until.timestamp() * 1e6),
            "limit": location.limit(),
            "minDuration": query.get("min_duration"),
            "maxDuration": query.get("max_duration"),
        }
        body = fetch(location.under("api", "traces"), older)
    if body is None:
        raise location.wrong("a trace that the search finds", "none (404)")
    yield location.text, body
