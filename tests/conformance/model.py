"""The model: a server on loopback that answers as a scenario says, counts requests, and never gives an id twice."""

import json
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from conformance import wire

HOLD: Final = 5.0
"""Seconds after which an answer that is held back is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for an answer."""

    path: str
    body: Any
    number: int
    """How many came before it, in this recording or replay."""
    fresh: str
    """Something that no other request was given."""

    @property
    def turn(self) -> int:
        """How many answers the conversation has already."""
        items = self.body.get("messages") or self.body.get("input") or []
        return sum(isinstance(i, dict) and (i.get("role") == "assistant" or i.get("type") == "function_call") for i in items)

    @property
    def last(self) -> Any:
        """Content of the last message."""
        items = self.body.get("messages") or self.body.get("input")
        return items if isinstance(items, str) else items[-1].get("content", items[-1].get("output"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer.

    Attributes:
        text: what the model says; split at spaces where it is streamed.
        calls: tools that it asks for, with their arguments.
        status: of the response; above 299 the body is ``error``.
        error: body of a failure.
        headers: further ones.
        raw: body of the response instead of everything else.
        wait: seconds before it is given.
        hold: it is not given before the end.
        drop_after: the connection ends after so many pieces of a stream.
    """

    text: str | None = None
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    status: int = 200
    error: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    wait: float = 0.0
    hold: bool = False
    drop_after: int | None = None


class Conversation:
    """What one scenario asks, in one recording or replay after the other."""

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        self.answer = answer
        self.requests = 0
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def begin(self) -> None:
        """A recording or a replay begins."""
        with self.lock:
            self.requests = 0
            self.ended = threading.Event()

    def end(self) -> int:
        """It has ended; how many requests came."""
        with self.lock:
            self.ended.set()
            return self.requests


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class ModelServer:
    """``with ModelServer() as server: url = server.add("name", answer)``."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}
        self._server = _Server(("127.0.0.1", 0), _handler(self._conversations))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def add(self, name: str, conversation: Conversation) -> str:
        """The address of a conversation's model."""
        self._conversations[name] = conversation
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for conversation in self._conversations.values():
            conversation.end()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(conversations: Mapping[str, Conversation]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            name, _, path = self.path.lstrip("/").partition("/")
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            conversation = conversations[name]
            with conversation.lock:
                number, ended = conversation.requests, conversation.ended
                conversation.requests += 1
            asked = Asked(path=path, body=body, number=number, fresh=uuid.uuid4().hex[:8])
            reply = conversation.answer(asked)
            ended.wait(HOLD if reply.hold else reply.wait)
            try:
                self._send(asked, reply)
            except OSError:  # the client is gone
                self.close_connection = True

        def _send(self, asked: Asked, reply: Reply) -> None:
            streamed = bool(asked.body.get("stream")) and reply.raw is None and reply.status < 300
            self.send_response(reply.status)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("x-request-id", f"req_{asked.fresh}")
            for header, value in reply.headers.items():
                self.send_header(header, value)
            if not streamed:
                body = reply.raw
                if body is None:
                    body = json.dumps(reply.error if reply.status > 299 else wire.body(asked, reply)).encode()
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number, event in enumerate(wire.events(asked, reply)):
                if number == reply.drop_after:
                    self.close_connection = True
                    return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler
