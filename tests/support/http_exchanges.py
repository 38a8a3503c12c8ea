"""Exchanges made by hand, without a client library."""

import json

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Mode, RunContext, Session
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation import http
from spanreplay.instrumentation.http_exchange import Exchange
from spanreplay.instrumentation.http_request import Head
from support.http_tape import POLICY, Kept, Recorder, TapedExchange

JSON = ("content-type", "application/json")
KEY = "tok-4f9a8e7d6c5b4a39"
ASK = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}).encode()
CHAT = "https://api.example.com/v1/chat/completions"


def head(url: str = CHAT, method: str = "POST", headers: tuple[tuple[str, str], ...] = (JSON,)) -> Head:
    """A request."""
    scheme, _, rest = url.partition("://")
    authority, slash, target = rest.partition("/")
    host, _, port = authority.partition(":")
    return Head(method=method, scheme=scheme, host=host, port=int(port) if port else None, target=slash + target, headers=headers)


def scope(mode: Mode = "record", recorder: Recorder | None = None) -> Scope:
    """A place to make calls from."""
    session = Session(mode=mode, sink=recorder, open_spans=False, redactor=Redactor(POLICY))
    return session.root(RunContext(run_id="0" * 32, name="agent"))


def opened(where: Scope, sent: Head | None = None, body: bytes = ASK) -> Exchange:
    """An exchange whose request has been sent."""
    exchange = http.begin(where, sent or head(), body)
    assert isinstance(exchange, Exchange)
    return exchange


def finished(
    body: bytes, *, headers: tuple[tuple[str, str], ...] = (JSON,), sent: Head | None = None, status: int = 200, ask: bytes = ASK
) -> Kept:
    """The record of an exchange whose response came in one piece."""
    recorder = Recorder()
    exchange = opened(scope(recorder=recorder), sent, ask)
    exchange.responded(status, headers)
    exchange.chunk(body)
    exchange.exhausted()
    return recorder.steps[0]


def taped(body: bytes, sizes: tuple[int, ...], *, complete: bool = True) -> TapedExchange:
    """A recorded exchange of JSON."""
    return TapedExchange(200, (JSON,), body, tuple((size, 0) for size in sizes), complete)


def undecided(text: str) -> BaseException:
    """Decodes an exception to one that says nothing of its class."""
    return ValueError(text)
