"""A model API on loopback that gives recorded responses: the i-th model request of a recording gets its i-th response.

Recordings are YAML in the form of VCR.py: ``interactions`` with ``request`` (method, uri) and ``response`` (status, headers, and the body
as ``body.string``, text or base64 of gzip, or as ``parsed_body``).
"""

import gzip
import json
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import yaml

from support.loopback import LoopbackServer

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MODEL_PATHS: Final = ("/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One response, and what it answered."""

    status: int
    content_type: str
    body: bytes
    path: str
    """Path of the request."""
    request: Any = None
    """Body of the request, parsed."""


def read_cassette(file: Path) -> list[Recorded]:
    """The model requests in a recording and their responses, in order; requests to anything else (tracing, search) are left out."""
    document = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    return [_recorded(i["request"], i["response"]) for i in document["interactions"] if _is_model_request(i["request"])]


def exchanges(file: Path) -> list[dict[str, Any]]:
    """Every request in a recording, in order: ``method``, ``path`` with query, parsed ``body``, and the ``reply``: status, type, body."""
    document = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    return [_exchange(i["request"], i["response"]) for i in document["interactions"]]


def _exchange(request: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    url, sent = urlsplit(_url(request)), body_of(request)
    made = _recorded({**request, "body": "null"}, response)
    path = url.path + (f"?{url.query}" if url.query else "")
    body = json.loads(sent) if sent else None
    return {"method": request["method"].upper(), "path": path, "body": body, "reply": (made.status, made.content_type, made.body)}


def _url(request: dict[str, Any]) -> str:
    return str(request["uri"] if "uri" in request else request["url"])  # go-vcr: "url"


def _is_model_request(request: dict[str, Any]) -> bool:
    return request["method"].upper() == "POST" and urlsplit(_url(request)).path.endswith(_MODEL_PATHS)


def _recorded(request: dict[str, Any], response: dict[str, Any]) -> Recorded:
    types = [values[0] if isinstance(values, list) else values for n, values in response["headers"].items() if n.lower() == "content-type"]
    return Recorded(
        status=response["code"] if "code" in response else response["status"]["code"],
        content_type=types[0] if types else "application/json",
        body=body_of(response),
        path=urlsplit(_url(request)).path,
        request=json.loads(body_of(request)),
    )


def body_of(message: dict[str, Any]) -> bytes:
    """The body of a request or a response of a recording, unpacked."""
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"]).encode()
    body = message.get("body") or ""
    if isinstance(body, dict):
        body = body["string"]
    data: bytes = body.encode() if isinstance(body, str) else body
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class CassetteServer:
    """``with CassetteServer() as server: server.serve("C1", read_cassette(file))``, then talk to ``server.url("C1")``.

    Attributes:
        requests: recording name and path of each request that arrived, in order.
        port: port on 127.0.0.1.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self._left: dict[str, list[Recorded]] = {}
        self._lock = threading.Lock()
        self._server = LoopbackServer(self._handler())
        self.port: int = self._server.server_address[1]

    def serve(self, name: str, responses: Sequence[Recorded]) -> None:
        """Give these responses below :meth:`url` of ``name``."""
        self._left[name] = list(responses)

    def url(self, name: str) -> str:
        """Base address of one recording."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def take(self, name: str, path: str) -> Recorded:
        """The response to give now; a 404 where the recording has no more."""
        with self._lock:
            self.requests.append((name, path))
            left = self._left.get(name)
            if not left or not path.endswith(_MODEL_PATHS):
                return Recorded(status=404, content_type="text/plain", body=b"no response is recorded for this request", path=path)
            return left.pop(0)

    def unserved(self, name: str) -> int:
        """Responses nobody has asked for yet."""
        return len(self._left[name])

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.__exit__(kind, error, trace)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                _, name, rest = urlsplit(self.path).path.split("/", 2)
                recorded = owner.take(name, "/" + rest)
                self.send_response(recorded.status)
                self.send_header("content-type", recorded.content_type)
                self.send_header("content-length", str(len(recorded.body)))
                self.end_headers()
                self.wfile.write(recorded.body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        return Handler


class Listener:
    """Listens on a port of 127.0.0.1 and counts who connects: a replay must not.

    Args:
        port: the port; any free one by default.
    """

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(16)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._count = 0

    def connections(self) -> int:
        """How many connections were made."""
        while True:
            try:
                self._socket.accept()[0].close()
            except BlockingIOError:
                return self._count
            self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()
