"""No secret is in any file of a store, wherever in a run it turned up: the bytes are searched."""

import json
import os
import secrets
from dataclasses import replace
from pathlib import Path

from acceptance.commands import EQUAL, Desk, Done, agent
from spanreplay.recording.children import SITE, child_environment, finish_command
from support.model_server import ModelServer, as_events, as_json, chat, chat_chunks

_PLAIN = (
    *("session", "unseen", "userinfo", "in_url", "cause", "argument", "nested", "decision", "query", "query_token", "header"),
    *("body", "form", "cookie", "run_input", "definition", "openai", "environment", "access", "refresh", "set_cookie", "last"),
)


def _made() -> dict[str, str]:
    """Each secret is one that no other test or file has; those in running text have a form that gives them away."""
    made = {name: secrets.token_hex(16) for name in _PLAIN}
    return made | {
        "prompt": f"sk-proj-{secrets.token_hex(20)}",
        "echoed": f"sk-ant-{secrets.token_hex(20)}",
        "run_output": f"ghp_{secrets.token_hex(18)}",
    }


def _found(folder: Path, wanted: dict[str, str]) -> list[str]:
    found = []
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            found += [
                f"{name} in {file.relative_to(folder)} at {data.find(value.encode())}"
                for name, value in wanted.items()
                if value.encode() in data
            ]
    return found


def _recorded_but_not_loaded(desk: Desk, command: list[str]) -> Done:
    """As ``spanreplay record`` does, but for the end, where it loads the journal into the database."""
    variables = desk.variables()
    made = child_environment(secrets.token_hex(16), secrets.token_hex(16), desk.store, "record")
    ours = {name: value for name, value in made.items() if name.startswith("SPANREPLAY_") or name == "TRACEPARENT"}
    ours["PYTHONPATH"] = os.pathsep.join([SITE, variables["PYTHONPATH"]])
    done = desk.run(command, variables | ours)
    finish_command(variables | ours, done.code)
    return done


def test_no_file_of_the_store_holds_a_secret(desk: Desk) -> None:
    """Journal, database and both exports; and the run replays equal, though the agent gets replacements in their place."""
    made = _made()
    wanted = desk.root / "secrets.json"
    wanted.write_text(json.dumps(made))
    desk = replace(desk, environment={"BILLING_API_TOKEN": made["environment"]})
    with ModelServer() as model, ModelServer() as services:
        model.script(
            as_json(chat(f"The key {made['prompt']} looks good.")),
            as_events(chat_chunks("It ", f"is {made['openai']}", "."), done=True),
            as_json({"error": {"code": "invalid_api_key", "message": f"Incorrect API key provided: {made['echoed']}"}}, status=401),
        )
        services.script(
            as_json({"rows": []}, set_cookie=f"id={made['set_cookie']}; Path=/"),
            as_json({"access_token": made["access"], "refresh_token": made["refresh"]}),
            as_json({"ok": True}),
        )
        command = agent("careless_agent", model.url, services.url, str(wanted))
        recorded = _recorded_but_not_loaded(desk, command)
    assert recorded.code == 1, str(recorded)
    assert json.loads(recorded.lines[0])["met"] == ["RuntimeError", "RuntimeError", "RuntimeError", "AuthenticationError"]
    assert [r.headers.get("authorization") for r in services.requests][2] == f"Bearer {made['access']}", "the agent itself is not redacted"

    assert list(desk.root.rglob("*.journal"))
    assert not list(desk.root.rglob("*.duckdb"))
    assert _found(desk.store, made) == []

    other = desk.carried_over("otlp-json")
    desk.carried_over("otlp-proto")
    replayed = desk.replay(command, store=other)

    wanted.unlink()
    assert replayed.code == 0, str(replayed)
    assert EQUAL.search(replayed.out)
    assert replayed.lines == recorded.lines
    assert list(desk.root.rglob("*.duckdb"))
    assert _found(desk.root, made) == []
    assert b"[redacted:" in (desk.root / "run.otlp-json").read_bytes()
