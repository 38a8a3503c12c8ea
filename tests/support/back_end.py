"""A stand-in for a back end that traces are fetched from."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fixtures.runs.spans import agent, chat
from recordings.servers import Loopback, Reply
from spanreplay.spans import otlp_json

TRACE = chat(1).trace_id
TRACES = otlp_json.encode([agent(1), chat(2, 1)])
Answer = Callable[[str, dict[str, list[str]], Mapping[str, str]], Reply]


@contextmanager
def back_end(answer: Answer) -> Iterator[tuple[str, list[tuple[str, dict[str, list[str]]]]]]:
    """A server, its address and what it was asked."""
    asked: list[tuple[str, dict[str, list[str]]]] = []

    def reply(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        assert (method, body) == ("GET", b"")
        url = urlsplit(path)
        query = parse_qs(url.query)
        asked.append((url.path, query))
        return answer(url.path, query, headers)

    with Loopback(reply) as server:
        yield server.url, asked


def ok(document: Any) -> Reply:
    return 200, "application/json", json.dumps(document).encode()


MISSING: Reply = (404, "application/json", b'{"error": "none"}')
