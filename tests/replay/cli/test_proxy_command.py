"""``spanreplay proxy``: agents in processes of their own, recorded and replayed from between."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command_line import CommandLine
from support.model_server import ModelServer, as_events, as_json, chat, chat_chunks

AGENT = """
import json, sys
from openai import OpenAI

ask = [{"role": "user", "content": sys.argv[1]}]
with OpenAI(max_retries=0) as client:
    plain = client.chat.completions.create(model="gpt-4o-mini", messages=ask)
    stream = client.chat.completions.create(model="gpt-4o-mini", messages=ask, stream=True)
    with open(sys.argv[2], "w") as said:
        json.dump([plain.model_dump_json(), [chunk.model_dump_json() for chunk in stream]], said)
"""
SERVER = Path(__file__).parent.parent / "proxy" / "mcp_server.py"


def ran(folder: Path, *arguments: object, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SPANREPLAY_"))}
    program = [sys.executable, "-m", "spanreplay.cli.main", *map(str, arguments)]
    made = subprocess.run(program, cwd=folder, env={**environment, **variables}, input=stdin, capture_output=True, timeout=110)
    assert b"Traceback" not in made.stderr, made.stderr.decode()
    return made


def test_an_agent_of_another_process(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = [sys.executable, "-c", AGENT, "hi"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    with ModelServer() as server:
        server.script(as_json(chat(), compressed=True), as_events(chat_chunks("Par", "is."), done=True))
        live = spanreplay("proxy", "--upstream", f"openai={server.url}/v1", "--name", "asker", "--", *agent, spanreplay.folder / "live")
        assert (live.code, len(server.requests)) == (0, 2), live
    assert "kept 2 steps of 1 run" in live.err
    assert "its tools are not seen" in live.err
    monkeypatch.delenv("OPENAI_API_KEY")
    again = spanreplay("proxy", "--replay", "last", "--", *agent, spanreplay.folder / "again")
    assert (again.code, "0 differences" in again.out) == (0, True), again
    said = [json.loads((spanreplay.folder / name).read_text()) for name in ("live", "again")]
    assert said[0] == said[1]
    assert "Paris." in said[0][0]
    kept = b"".join(path.read_bytes() for path in spanreplay.store.rglob("*") if path.is_file())
    assert b"sk-0123456789abcdef" not in kept
    asked = spanreplay("replay", "last", "--rerun", "--yes")
    assert (asked.code, "spanreplay proxy --replay TARGET -- " in asked.err) == (2, True), asked
    changed = spanreplay("proxy", "--replay", "last", "--", *agent[:-1], "ho", spanreplay.folder / "again")
    assert changed.code == 1, changed
    assert "cause: the arguments" in changed.out
    assert "called at" not in changed.out, "the proxy made the call, which the agent asked for from outside"


def messages() -> bytes:
    talk: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"numbers": [1, 2]}}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in talk)


def test_an_mcp_server_that_is_there_no_more(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    server = [sys.executable, "-S", str(SERVER), str(marks)]
    live = ran(tmp_path, "proxy", "--mcp", "--", *server, stdin=messages())
    assert live.returncode == 0, live.stderr.decode()
    answers = {message["id"]: message["result"] for message in map(json.loads, live.stdout.splitlines())}
    assert answers[2]["content"][0]["text"] == "3"
    assert marks.read_text() == "started\n"
    again = ran(tmp_path, "proxy", "--mcp", "--replay", "last", stdin=messages())
    assert again.returncode == 0, again.stderr.decode()
    assert {message["id"]: message["result"] for message in map(json.loads, again.stdout.splitlines())} == answers
    assert b"2 of 2 recorded steps answered a call" in again.stderr
    assert marks.read_text() == "started\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--upstream", "nowhere"), 2, "an upstream is http(s)://HOST"),
        (("--mcp",), 2, "give the MCP server's command after --"),
        (("--store", __file__, "--", "true"), 2, "nothing can be kept: File exists"),
        (("--replay", "last"), 3, "there is no store"),
    ],
)
def test_wrong_use(spanreplay: CommandLine, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = spanreplay("proxy", *arguments)
    assert (done.code, said in done.err) == (code, True), done
