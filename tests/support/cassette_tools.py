"""An MCP server on loopback that answers as a recorded one did: each method with its recorded results, the last one again and again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import yaml

from support.cassette_server import body_of
from support.loopback import LoopbackServer

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Results = dict[str, list[Any]]
"""What a server gave, by method."""


def read_results(file: Path) -> Results:
    """The results of the JSON-RPC requests in a recording; none where it has none."""
    found: Results = {}
    for interaction in yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)["interactions"]:
        asked = _parsed(body_of(interaction["request"]))
        if isinstance(asked, dict) and asked.get("jsonrpc") == "2.0" and "id" in asked:
            for message in _messages(body_of(interaction["response"])):
                if message.get("id") == asked["id"] and "result" in message:
                    found.setdefault(asked["method"], []).append(message["result"])
    return found


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _messages(body: bytes) -> Iterator[dict[str, Any]]:
    """JSON-RPC messages of a response, which is one, or an event stream of them."""
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    yield from (message for message in map(_parsed, lines or [body]) if isinstance(message, dict))


def handler(results: Results) -> type[BaseHTTPRequestHandler]:
    """Answers over streamable HTTP, with one JSON document a request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in asked:
                return self._answer(202, b"")
            left = results.get(asked["method"])
            if not left:
                said: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
            else:
                said = {"result": left.pop(0) if len(left) > 1 else left[0]}
            return self._answer(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}).encode())

        def do_GET(self) -> None:
            self._answer(405, b"")

        def do_DELETE(self) -> None:
            self._answer(200, b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler


@contextmanager
def serving(kind: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on a free port of 127.0.0.1, which is given."""
    with LoopbackServer(kind) as server:
        yield server.server_address[1]
