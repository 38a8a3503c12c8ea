"""Phoenix's REST API: the spans of a project, a page at a time (``/v1/projects/{project}/spans``, arize-phoenix 20.26)."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from spanreplay.replay.inputs.remote import Fetch, Location

SCHEME: Final = "phoenix"
TENANT_HEADER: Final = "x-tenant"
"""Phoenix has none of its own."""

_SEARCH: Final = ("project", "since", "until", "limit")
_PAGE: Final = 1000
_PAGES: Final = 10_000


def documents(location: Location, fetch: Fetch) -> Iterator[tuple[str, bytes]]:
    """One trace, ``…/PROJECT/TRACEID``, or a search, ``…/?project=NAME&since=2h``, where ``limit`` counts traces."""
    if location.searches:
        query = location.known(*_SEARCH)
        if "project" not in query:
            raise location.wrong("…/PROJECT/TRACEID or …/?project=NAME", "neither")
        since, until = location.period()
        within: dict[str, Any] = {"start_time": since.isoformat(), "end_time": until.isoformat()}
        roots = {**within, "parent_id": "null"}
        traces = [
            str(span["context"]["trace_id"]) for body in _pages(location, fetch, query["project"], roots) for span in _spans(location, body)
        ]
        if not traces:
            raise location.wrong("a trace that the search finds", "none")
        for trace in list(dict.fromkeys(traces))[: location.limit()]:
            for number, body in enumerate(_pages(location, fetch, query["project"], {"trace_id": trace})):
                yield f"{location.base} trace {trace} page {number + 1}", body
        return
    if len(location.path) < 2:
        raise location.wrong("…/PROJECT/TRACEID or …/?project=NAME", f"…/{''.join(location.path)}")
    *before, project, trace = location.path
    at = Location(text=location.text, scheme=location.scheme, base="/".join([location.base, *before]), path=(), query={})
    for number, body in enumerate(_pages(at, fetch, project, {"trace_id": trace})):
        yield f"{location.text} page {number + 1}", body


def _pages(location: Location, fetch: Fetch, project: str, asked: dict[str, Any]) -> Iterator[bytes]:
    cursor: str | None = None
    for _ in range(_PAGES):
        params = {**asked, "limit": _PAGE, **({"cursor": cursor} if cursor else {})}
        body = fetch(location.under("v1", "projects", quote(project, safe=""), "spans"), params)
        if body is None:
            raise location.wrong(f"project {project}", "none (404)")
        if not _spans(location, body):
            if cursor is None and "trace_id" in asked:
                raise location.wrong(f"trace {asked['trace_id']}", "no spans of it")
            return
        yield body
        cursor = json.loads(body).get("next_cursor")
        if not isinstance(cursor, str) or not cursor:
            return


def _spans(location: Location, body: bytes) -> list[dict[str, Any]]:
    try:
        listed = json.loads(body)["data"]
        return [span for span in listed if span["context"]["trace_id"]]
    except (ValueError, KeyError, TypeError):
        raise location.wrong("a page of spans from Phoenix's API", body[:80].decode("utf-8", "replace")) from None
