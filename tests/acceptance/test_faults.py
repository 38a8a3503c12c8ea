"""Every way in which a model call fails is recorded, and replays as the same exceptions after the same output."""

import json
import socket
import threading
from collections.abc import Sequence
from typing import Any

from acceptance.commands import Desk, agent, assert_equal
from support.model_server import (
    Drop,
    ModelServer,
    Scripted,
    as_events,
    as_json,
    chat,
    chat_chunks,
    message,
    message_events,
    response_events,
)

_WAIT = threading.Event()
"""Never set: the server is silent until it is closed."""


def _openai_error(status: int, code: str, **headers: Any) -> Scripted:
    return as_json({"error": {"message": f"told {code}", "type": code, "param": None, "code": code}}, status=status, **headers)


def _anthropic_error(status: int, kind: str, **headers: Any) -> Scripted:
    body = {"type": "error", "error": {"type": kind, "message": f"told {kind}"}, "request_id": "req_1"}
    return as_json(body, status=status, **headers)


def _cut(scripted: Scripted) -> Scripted:
    """The first half of a body, announced as the whole."""
    (part,) = scripted.parts
    assert isinstance(part, bytes)
    return Scripted(headers=scripted.headers, parts=[part[: len(part) // 2]])


def _cut_stream(scripted: Scripted, after: int, end: Any) -> Scripted:
    return Scripted(headers=scripted.headers, parts=[*scripted.parts[:after], end], chunked=True)


_WORDS = as_events(chat_chunks("Good ", "day", "."), done=True)
_SOON: dict[str, Any] = {"retry_after_ms": "1"}

RESPONSES: Sequence[tuple[str, Sequence[Scripted], str]] = (
    ("bad request", [_openai_error(400, "invalid_request_error")], "openai.BadRequestError"),
    ("limit, then an answer", [_openai_error(429, "rate_limit", **_SOON), as_json(chat("Hello."))], ""),
    ("limit twice", [_openai_error(429, "rate_limit", **_SOON)] * 2, "openai.RateLimitError"),
    ("no answer in time", [Scripted(before=_WAIT)], "openai.APITimeoutError"),
    ("nobody listens", [], "openai.APIConnectionError"),
    ("cut JSON", [_cut(as_json(chat()))], "json.decoder.JSONDecodeError"),
    ("a page instead of JSON", [Scripted(headers={"content-type": "text/html"}, parts=[b"<p>Hello</p>"])], "builtins.AttributeError"),
    (
        "hung up before the answer",
        [Scripted(headers={"content-type": "application/json", "content-length": "99"}, parts=[b"{", Drop])],
        "openai.APIConnectionError",
    ),
    ("stream cut", [_cut_stream(_WORDS, 2, Drop)], "openai.APIConnectionError"),
    ("stream stalls", [_cut_stream(_WORDS, 2, _WAIT)], "openai.APITimeoutError"),
    ("stream left early", [_WORDS], ""),
    ("async stream cut", [_cut_stream(_WORDS, 3, Drop)], "openai.APIConnectionError"),
    ("async stream left early", [_WORDS], ""),
    ("given up", [Scripted(before=_WAIT)], "builtins.TimeoutError"),
    (
        "response fails in its stream",
        [
            as_events(
                [*response_events()[:2], {"type": "error", "code": "server_error", "message": "told", "param": None, "sequence_number": 2}],
                named=True,
            )
        ],
        "",
    ),
    ("messages: bad request", [_anthropic_error(400, "invalid_request_error")], "anthropic.BadRequestError"),
    (
        "messages: overloaded, limit, then an answer",
        [_anthropic_error(529, "overloaded_error", **_SOON), _anthropic_error(429, "rate_limit_error", **_SOON), as_json(message())],
        "",
    ),
    ("messages: no answer in time", [Scripted(before=_WAIT)], "anthropic.APITimeoutError"),
    ("messages: nobody listens", [], "anthropic.APIConnectionError"),
    ("messages: cut JSON", [_cut(as_json(message()))], "json.decoder.JSONDecodeError"),
    ("messages: stream cut", [_cut_stream(as_events(message_events("Good"), named=True), 4, Drop)], "RemoteProtocolError"),
    (
        "messages: error in the stream",
        [
            as_events(
                [*message_events("Good")[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "told"}}],
                named=True,
            )
        ],
        "anthropic.",
    ),
    ("messages: stream left early", [as_events(message_events("Good", "day"), named=True)], ""),
    ("dies", [_openai_error(401, "invalid_api_key")], ""),
)


def _closed_url() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{found.getsockname()[1]}"


def test_failures_of_models_replay_as_the_same_exceptions(desk: Desk) -> None:
    """Statuses, retries, timeouts, refused and cut connections, bad bodies, streams cut, stalled and left; uncaught at last."""
    with ModelServer() as server:
        server.script(*(scripted for _, given, _ in RESPONSES for scripted in given))
        command = agent("faults_agent", server.url, _closed_url())
        recorded = desk.record(command)
    assert recorded.code == 1, str(recorded)
    assert "openai.AuthenticationError" in recorded.err, str(recorded)
    seen = [json.loads(line) for line in recorded.lines]
    assert [each["fault"] for each in seen] == [name for name, _, _ in RESPONSES[:-1]], str(recorded)
    for each, (name, _, wanted) in zip(seen, RESPONSES, strict=False):
        assert (wanted in str(each["errors"])) if wanted else not each["errors"], f"{name}: {each}"
    asked = len(server.requests)

    replayed = desk.replay(command, store=desk.carried_over())

    assert_equal(recorded, replayed)
    assert "openai.AuthenticationError" in replayed.err
    assert len(server.requests) == asked
    _check_attempts(desk)


def _check_attempts(desk: Desk) -> None:
    document = json.loads(desk.spanreplay("replay", desk.root / "run.otlp-json", "--json").out)
    steps = {run["agent"]["name"] if isinstance(run["agent"], dict) else run["agent"]: run["steps"] for run in document["runs"]}
    retried = [(s["attempt"], s["outcome"], s["retry_of"]) for s in steps["messages: overloaded, limit, then an answer"]]
    seqs = [s["seq"] for s in steps["messages: overloaded, limit, then an answer"]]
    assert retried == [(1, "error", None), (2, "error", seqs[0]), (3, "ok", seqs[1])]
    assert [(s["attempt"], s["outcome"]) for s in steps["limit twice"]] == [(1, "error"), (2, "error")]
    outcomes = {name: [s["outcome"] for s in found] for name, found in steps.items()}
    assert outcomes["no answer in time"] == outcomes["messages: no answer in time"] == ["timeout"]
    assert outcomes["stream stalls"] == ["timeout"]
    assert outcomes["stream left early"] == outcomes["async stream left early"] == ["abandoned"]
    assert outcomes["given up"] == ["cancelled"]
    assert outcomes["cut JSON"] == ["malformed"]
