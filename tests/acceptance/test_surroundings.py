"""What agents do besides calling models: recorded where it passes a seam, named where it does not."""

import json
import re

from acceptance.commands import Desk, agent, assert_equal
from support.cassette_server import Listener
from support.model_server import ModelServer, Seen, as_json, chat

TOKEN = "fresh-token-9f3c2a71d0"
FILES = ("librarian.log", "checkpoints.sqlite")


def _as_answered(requests: list[Seen]) -> list[tuple[str, str]]:
    return [(r.method, r.path) for r in requests]


def test_an_agent_with_everything_around_it_replays_unchanged(desk: Desk) -> None:
    """Prompt server, token refresh, vector store; the log and the database were named while recording and are allowed by these names."""
    search = chat(None, [("call_1", "search", '{"text": "tides of the sea"}')])
    matches = {"matches": [{"id": "b7", "score": 0.91, "title": "The Tides"}, {"id": "b2", "score": 0.4, "title": "Salt"}]}
    with ModelServer() as model, ModelServer() as services:
        model.script(as_json(search), as_json(chat("The Tides.")))
        services.script(
            as_json({"name": "librarian", "version": 7, "template": "You are a {tone} librarian."}),
            as_json({"error": "token expired"}, status=401),
            as_json({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}),
            as_json(matches),
        )
        command = agent("librarian_agent", model.url, services.url)
        recorded = desk.record(command)
    assert recorded.code == 0, str(recorded)
    assert json.loads(recorded.lines[0])["answer"] == "The Tides."
    assert _as_answered(services.requests) == [
        ("GET", "/prompts/librarian?version=latest"),
        ("POST", "/collections/books/query"),
        ("POST", "/oauth/token"),
        ("POST", "/collections/books/query"),
    ]
    assert services.requests[3].headers["authorization"] == f"Bearer {TOKEN}"
    named = re.findall(r"^  not recorded: (.+?) (\S+?)(?:;|$)", recorded.err, re.MULTILINE)
    assert sorted(named) == [("database opened", "checkpoints.sqlite"), ("file written", "librarian.log")], str(recorded)

    allowed = [part for _, name in named for part in ("--allow-write", name)]
    replayed = desk.replay(command, *allowed, store=desk.carried_over())

    assert_equal(recorded, replayed)
    before = {name: (desk.work / name).read_bytes() for name in FILES}
    refused = desk.replay(command)
    assert refused.code == 4, str(refused)
    assert "--allow-write" in refused.out
    assert {name: (desk.work / name).read_bytes() for name in FILES} == before, "written without being allowed to"
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in desk.root.rglob("*") if file.is_file())


def test_a_bare_connection_is_named_and_refused_in_a_replay(desk: Desk) -> None:
    """Nothing can answer it from the record; so it is named while recording, and a replay does not make it."""
    with Listener() as listener:
        command = agent("socket_agent", str(listener.port))
        recorded = desk.record(command)
        assert recorded.code == 0, str(recorded)
        assert f"not recorded: connection made 127.0.0.1:{listener.port}" in recorded.err
        assert listener.connections() == 1

        replayed = desk.replay(command)

        assert replayed.code == 4, str(replayed)
        assert listener.connections() == 1
