"""A small HTTP server on loopback that gives scripted responses: streams with pauses, compressed bodies, failures."""

import gzip
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

from support.loopback import LoopbackServer


class Drop:
    """In a body: the connection is closed here, without an end of the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One response.

    Attributes:
        parts: what is sent, part by part. A ``threading.Event`` holds the rest back until it is set; :class:`Drop` ends the connection.
        chunked: ``Transfer-Encoding: chunked``, one chunk a part; with ``False`` the length is announced.
        before: an event to wait for before even the status is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[bytes | threading.Event | type[Drop]] = ()
    chunked: bool = False
    before: threading.Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ModelServer:
    """``with ModelServer() as server: server.script(…)``; responses are given in the order of the script, the last one again and again.

    Attributes:
        requests: what arrived, in order.
    """

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._script: list[Scripted] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = LoopbackServer(self._handler())

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        return self._server.url

    def script(self, *responses: Scripted) -> None:
        """Give these responses from now on."""
        with self._lock:
            self._script = list(responses)

    def next(self) -> Scripted:
        """The response to give now."""
        with self._lock:
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._server.__exit__(kind, error, trace)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model_server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                body = self._read()
                model_server.requests.append(Seen(method=self.command, path=self.path, headers=dict(self.headers), body=body))
                scripted = model_server.next()
                model_server.hold(scripted.before)
                try:
                    self._send(scripted)
                except OSError:  # the client is gone
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer

            def _read(self) -> bytes:
                if self.headers.get("transfer-encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length", 0)))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _send(self, scripted: Scripted) -> None:
                self.send_response(scripted.status)
                for name, value in scripted.headers.items():
                    self.send_header(name, value)
                if scripted.chunked:
                    self.send_header("transfer-encoding", "chunked")
                elif "content-length" not in scripted.headers and scripted.status != 204:
                    self.send_header("content-length", str(sum(len(p) for p in scripted.parts if isinstance(p, bytes))))
                self.end_headers()
                if self.command == "HEAD":
                    return
                for part in scripted.parts:
                    if isinstance(part, bytes):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if scripted.chunked else part)
                        self.wfile.flush()
                    elif isinstance(part, threading.Event):
                        model_server.hold(part)
                    else:
                        self.close_connection = True
                        return
                if scripted.chunked:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:
                return

        return Handler

    def hold(self, event: threading.Event | None) -> None:
        """Wait for the event, or for the end of the server."""
        while event is not None and not event.wait(0.02) and not self._closing.is_set():
            pass


# ---- responses in the shapes that model APIs send -----------------------------------------------------------------


def as_json(body: object, *, status: int = 200, compressed: bool = False, **headers: str) -> Scripted:
    """A plain JSON response; underscores in header names become dashes."""
    data = json.dumps(body).encode()
    given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if compressed:
        data, given["content-encoding"] = gzip.compress(data, mtime=0), "gzip"
    return Scripted(status=status, headers=given, parts=[data])


def as_events(
    events: Sequence[object], *, named: bool = False, done: bool = False, holds: Mapping[int, threading.Event | type[Drop]] | None = None
) -> Scripted:
    """A stream of server-sent events, one chunk an event.

    Args:
        events: JSON values.
        named: send the event's ``type`` as the name of the event, too.
        done: end with ``data: [DONE]``.
        holds: what comes before the event of that index.
    """
    parts: list[bytes | threading.Event | type[Drop]] = []
    for index, event in enumerate(events):
        if holds and index in holds:
            parts.append(holds[index])
        name = f"event: {event['type']}\n".encode() if named and isinstance(event, dict) else b""
        parts.append(name + b"data: " + json.dumps(event).encode() + b"\n\n")
    if done:
        parts.append(b"data: [DONE]\n\n")
    return Scripted(headers={"content-type": "text/event-stream; charset=utf-8"}, parts=parts, chunked=True)


def chat(content: str | None = "Paris.", tool_calls: Sequence[tuple[str, str, str]] = ()) -> dict[str, Any]:
    """Body of an OpenAI chat completion; tool calls are (id, name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in tool_calls]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def chat_chunks(*words: str) -> list[dict[str, Any]]:
    """Events of an OpenAI chat stream that says these words."""
    head = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 1700000000, "model": "gpt-4o-mini-2024-07-18"}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": word}, None) for word in words]
    deltas.append(({}, "stop"))
    return [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}]} for delta, end in deltas]


def response(text: str = "Paris.") -> dict[str, Any]:
    """Body of an OpenAI response."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": "gpt-4o-mini-2024-07-18",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 14,
        },
    }


def response_events(text: str = "Paris.") -> list[dict[str, Any]]:
    """Events of an OpenAI response stream."""
    full = response(text)
    item = full["output"][0]
    place: dict[str, Any] = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    started = {**full, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {"type": "output_text", "text": "", "annotations": []}},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": item["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": full},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def message(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Body of an Anthropic message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-1",
        "content": list(blocks) or [{"type": "text", "text": "Paris."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 3},
    }


def message_events(*words: str) -> list[dict[str, Any]]:
    """Events of an Anthropic message stream that says these words, then asks for two tools, their arguments interleaved."""
    tools = [{"type": "tool_use", "id": f"toolu_{n}", "name": f"tool_{n}", "input": {}} for n in (1, 2)]
    pieces = [(1, '{"a'), (2, '{"b'), (1, '": 1}'), (2, '": 2}')]
    return [
        {"type": "message_start", "message": {**message(), "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
        {"type": "content_block_stop", "index": 0},
        *({"type": "content_block_start", "index": n + 1, "content_block": tool} for n, tool in enumerate(tools)),
        *({"type": "content_block_delta", "index": n, "delta": {"type": "input_json_delta", "partial_json": piece}} for n, piece in pieces),
        *({"type": "content_block_stop", "index": n} for n in (1, 2)),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
