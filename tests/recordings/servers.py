"""The two servers that a recipe talks to, on loopback: a model with a script, and a receiver of OTLP."""

import gzip
import json
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from spanreplay.instrumentation.provider import recognise
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import Record

Reply = tuple[int, str, bytes]
"""Status, content type, body."""


class Loopback(AbstractContextManager["Loopback"]):
    """An HTTP server on a free port of 127.0.0.1 that gives every request to one function.

    Args:
        answer: from method, path with query, headers in lower case, body.
        tls: speaks HTTPS with this.
    """

    def __init__(self, answer: Callable[[str, str, Mapping[str, str], bytes], Reply], *, tls: ssl.SSLContext | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)) if "content-length" in self.headers else self._chunks()
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                status, kind, reply = answer(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_POST

            def _chunks(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return b""
                parts: list[bytes] = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """Address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Model(Loopback):
    """Answers in whichever model API it is asked, the i-th request with the i-th turn of the script, the last one again and again.

    Args:
        script: turns: ``{"text": …}``, ``{"calls": [{"id", "name", "arguments"}], "text"?}``, or ``{"status": 500, "body": {…}}``.

    Attributes:
        requests: path and parsed body of every model request, in order.
        others: method and path of every other request.
    """

    def __init__(self, script: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(self._answer)
        self.requests: list[tuple[str, Any]] = []
        self.others: list[tuple[str, str]] = []
        self._script = script
        self._lock = threading.Lock()

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        found = recognise(method, path, headers.get("content-type", ""), body)
        if found is None:
            self.others.append((method, path))
            return 404, "application/json", b'{"error": {"message": "no model call"}}'
        provider, asked = found
        with self._lock:
            number = len(self.requests)
            self.requests.append((path, asked))
        turn = self._script[min(number, len(self._script) - 1)]
        if "status" in turn:
            return int(turn["status"]), "application/json", json.dumps(turn.get("body", {})).encode()
        parts: list[dict[str, Any]] = [{"type": "text", "content": turn["text"]}] if "text" in turn else []
        parts += [{"type": "tool_call", **call} for call in turn.get("calls", ())]
        said = [{"role": "assistant", "parts": parts, "finish_reason": "tool_call" if "calls" in turn else "stop"}]
        usage = {"input_tokens": 10 * (number + 1), "output_tokens": 5}
        kind, reply = provider.render(said, request=asked, response_id=f"resp_{number + 1}", model=None, usage=usage)
        return 200, kind, reply


class Receiver(Loopback):
    """Takes OTLP over HTTP, traces and logs, protobuf and JSON; anything else is answered with 200 and forgotten.

    Attributes:
        batches: the records of each request, in order.
    """

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.batches: list[list[Record]] = []

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        kind = headers.get("content-type", "")
        if method == "POST" and path.rstrip("/").endswith(("/traces", "/logs")) and body:
            decoded = otlp_json.decode(json.loads(body)) if "json" in kind else otlp_proto.decode(body)
            self.batches.append(list(decoded))
        return 200, kind or "application/json", b"{}" if "json" in kind else b""
