"""The MCP proxy: stands between a client and a server that it starts, on standard input and output, and makes each request a step.

In a replay there is no server: every request is answered from the record. Transport: one JSON-RPC message a line,
<https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#stdio>. What the server tells (progress, log messages)
passes, and is told again by a replay before the answer to the request that it came with; what it asks (sampling, elicitation, roots) passes
too and is named, as it cannot be asked in a replay. Where the server ends, so does the proxy: the client sees it
as it would without one.
"""

import asyncio
import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.boundary import here
from spanreplay.boundary.call import Answer
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.instrumentation import mcp_requests
from spanreplay.instrumentation.mcp_requests import Server
from spanreplay.instrumentation.mcp_told import Message, Told
from spanreplay.instrumentation.shims import untaped
from spanreplay.replay.proxy.lines import Lines
from spanreplay.replay.reasons import ASKED_BY_SERVER

MAX_LINE: Final = 64 * 2**20
"""Bytes of a message above which the other side is not listened to any more."""

_PATIENCE_S: Final = 5
_INTERNAL: Final = -32603
_PROGRESS: Final = "notifications/progress"


class ServerEndedError(ConnectionError):
    """The server ended without an answer; the client got none either, and saw its pipe end."""


class RequestFailedError(Exception):
    """The server answered with an error.

    Args:
        error: its ``error`` object.
    """

    def __init__(self, error: Any) -> None:
        super().__init__(error)

    @property
    def error(self) -> Any:
        """The ``error`` object."""
        return self.args[0]

    def __str__(self) -> str:
        return str(self.error.get("message", "")) if isinstance(self.error, dict) else str(self.error)


@dataclass(slots=True)
class _Waiting:
    """A request whose answer has not come."""

    step: Step | None
    method: str
    token: object = None
    """By which the server tells of its progress."""
    came: threading.Event = field(default_factory=threading.Event)
    line: bytes | None = None
    message: dict[str, Any] | None = None
    cancelled: bool = False


class McpProxy:
    """One client, and one server or a record in place of it.

    Args:
        argv: the server to start; empty in a replay.
        reads: what the client sends.
        writes: what the client gets.
    """

    def __init__(self, argv: Sequence[str], reads: IO[bytes], writes: IO[bytes]) -> None:
        self._argv = list(argv)
        self._lines = Lines(reads, MAX_LINE)
        self._writes = writes
        self._lock = threading.Lock()
        self._server = Server()
        self._waiting: dict[str, _Waiting] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._workers: list[threading.Thread] = []
        self._scope: Scope | None = None
        self._has_left = False
        self._has_ended = False

    def leave(self) -> None:
        """The client has told this process to end: so has the server, and :meth:`run` comes to its end."""
        self._lines.leave()
        if self._child is not None:
            with suppress(OSError):
                self._child.terminate()

    def run(self) -> int:
        """Serve until the client closes its end, or the server ends; returns the server's exit code, 0 in a replay.

        Raises:
            OSError: the server cannot be started.
        """
        self._scope = here()
        listener: threading.Thread | None = None
        if self._argv:
            with untaped.unnamed():
                self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 — the user's own
            listener = threading.Thread(target=self._listen, name="spanreplay-mcp", daemon=True)
            listener.start()
        for line in self._lines:
            self._from_client(line)
        self._has_left = not self._has_ended
        code = 0
        if self._child is not None and listener is not None:
            code = self._close(self._child)
            listener.join(_PATIENCE_S)
            if not listener.is_alive() and self._child.stdout is not None:
                self._child.stdout.close()
        for worker in self._workers:
            worker.join(_PATIENCE_S)
        self._lines.close()
        return code

    def _close(self, child: subprocess.Popen[bytes]) -> int:
        if child.stdin is not None:
            with suppress(OSError):
                child.stdin.close()
        try:
            return child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.terminate()
        try:
            return child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    # ---- from the client ----------------------------------------------------------------------------------------

    def _from_client(self, line: bytes) -> None:
        message = _parsed(line)
        method = message.get("method")
        if not isinstance(method, str) or "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(message)
            self._send(line)
            return
        params = message.get("params")
        self._request(line, message["id"], method, params if isinstance(params, dict) else None)

    def _request(self, line: bytes, request_id: Any, method: str, params: dict[str, Any] | None) -> None:
        scope, step, answer = self._scope, None, None
        meta = (params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        try:
            call = None if scope is None else mcp_requests.call_of(scope, self._server, method, params)
            if scope is not None and call is not None:
                call.held = self._server.told(lambda message: self._tell(message, token))
                step = boundary.begin(scope, call)
            answer = None if step is None else step.ask()
        except ControlSignal as stop:
            self._reply(request_id, error={"code": _INTERNAL, "message": str(stop)})
            return
        if step is not None and answer is not None:
            self._work(self._answer, step, answer, request_id, method)
            return
        waiting = self._waiting[_key(request_id)] = _Waiting(step, method, token)
        self._send(line)
        self._work(self._await, waiting)

    def _work(self, target: Any, *args: Any) -> None:
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        worker = threading.Thread(target=target, args=args, name="spanreplay-mcp-request", daemon=True)
        self._workers.append(worker)
        worker.start()

    def _cancel(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        waiting = self._waiting.pop(_key(params.get("requestId") if isinstance(params, dict) else None), None)
        if waiting is not None:
            waiting.cancelled = True
            waiting.came.set()

    def _send(self, line: bytes) -> None:
        if self._child is not None and self._child.stdin is not None:
            with suppress(OSError, ValueError):
                self._child.stdin.write(line)
                self._child.stdin.flush()

    # ---- answers ------------------------------------------------------------------------------------------------

    def _answer(self, step: Step, answer: Answer, request_id: Any, method: str) -> None:
        try:
            result = boundary.give(step, answer)
        except asyncio.CancelledError:  # the client gave it up, and got no answer
            return
        except ServerEndedError:
            self._lines.leave()
        except RequestFailedError as failed:
            self._reply(request_id, error=failed.error)
        except (Exception, ControlSignal) as error:  # noqa: BLE001 — the client must not wait for ever
            self._reply(request_id, error={"code": _INTERNAL, "message": f"{type(error).__name__}: {error}"})
        else:
            self._server.learn(method, result)
            self._reply(request_id, result=result)

    def _await(self, waiting: _Waiting) -> None:
        waiting.came.wait()
        step, message = waiting.step, waiting.message
        if message is None:
            if step is not None:  # a client that has closed its end waits no more
                ended = self._has_ended and not waiting.cancelled
                step.fail(ServerEndedError("the server ended without an answer") if ended else asyncio.CancelledError())
            return
        result = message.get("result")
        self._server.learn(waiting.method, result)
        if step is not None and "error" in message:
            step.fail(RequestFailedError(message["error"]))
        elif step is not None:
            outcome = mcp_requests.ending(result)
            step.end(outcome or "ok", result=step.encoded(result))
        if waiting.line is not None:
            self._write(waiting.line)

    def _tell(self, message: Message, token: object) -> None:
        """Tell the client what the server told it while the request was open that now has this token."""
        params = message.get("params")
        if message.get("method") == _PROGRESS:
            params = {**(params or {}), "progressToken": token}
        self._write(_line({"method": message.get("method"), "params": params} if params else {"method": message.get("method")}))

    def _hear(self, method: str, params: Any) -> None:
        """Keep what the server tells with the request that it belongs to: the one with its token, else the last one, else the next."""
        token = params.get("progressToken") if method == _PROGRESS and isinstance(params, dict) else None
        waiting = [left for left in list(self._waiting.values()) if token is None or left.token == token]
        held = waiting[-1].step.call.held if waiting and waiting[-1].step is not None else None
        if isinstance(held, Told):
            held.messages.append({"method": method, "params": params})
        elif token is None:
            self._server.hear({"method": method, "params": params})

    def _listen(self) -> None:
        assert self._child is not None  # noqa: S101 — started before this
        assert self._child.stdout is not None  # noqa: S101 — a pipe
        while line := self._child.stdout.readline(MAX_LINE):
            message = _parsed(line)
            method = message.get("method")
            waiting = None if method is not None else self._waiting.pop(_key(message.get("id")), None)
            if waiting is not None:
                waiting.line, waiting.message = line, message
                waiting.came.set()
                continue
            if isinstance(method, str) and "id" in message:
                untaped.note(ASKED_BY_SERVER, method)
            elif isinstance(method, str):
                self._hear(method, message.get("params"))
            self._write(line)
        self._has_ended = not self._has_left
        for left in list(self._waiting.values()):
            left.came.set()
        self._lines.leave()

    def _reply(self, request_id: Any, **answered: Any) -> None:
        self._write(_line({"id": request_id, **answered}))

    def _write(self, line: bytes) -> None:
        with self._lock, suppress(OSError, ValueError):
            self._writes.write(line if line.endswith(b"\n") else line + b"\n")
            self._writes.flush()


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"


def _key(request_id: Any) -> str:
    return json.dumps(request_id)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
