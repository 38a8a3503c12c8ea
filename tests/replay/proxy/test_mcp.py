"""The MCP proxy: requests become steps, and are answered without a server."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from spanreplay.instrumentation import agent_run
from spanreplay.replay.proxy.mcp import McpProxy
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

SERVER = Path(__file__).parent / "mcp_server.py"


class Client:
    """Sends one message after another, each as soon as the one before is answered."""

    def __init__(self, argv: list[str], *messages: tuple[str, Any]) -> None:
        self._messages = messages
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        self.reads: IO[bytes] = os.fdopen(reads, "rb")
        self.writes: IO[bytes] = os.fdopen(writes, "wb")
        self.proxy = McpProxy(argv, self.reads, self.writes)
        self.answers: list[Any] = []
        self.inbound: list[Any] = []

    def talk(self) -> list[Any]:
        talking = threading.Thread(target=self._talk)
        talking.start()
        self.proxy.run()
        self.writes.close()
        talking.join()
        self.reads.close()
        return self.answers

    def _talk(self) -> None:
        with os.fdopen(self._to, "wb") as out, os.fdopen(self._from, "rb") as answers:
            for number, (method, params) in enumerate(self._messages):
                message = {"jsonrpc": "2.0", "method": method, "params": params}
                if not method.startswith("notifications/"):
                    message["id"] = number
                out.write(json.dumps(message).encode() + b"\n")
                out.flush()
                if "id" in message and params.get("name") != "slow":
                    self._wait(answers)

    def _wait(self, answers: IO[bytes]) -> None:
        while line := answers.readline():
            message = json.loads(line)
            if "method" not in message:
                self.answers.append(message)
                return
            self.inbound.append(message)


TALK: list[tuple[str, Any]] = [
    ("initialize", {"protocolVersion": "2025-06-18", "clientInfo": {"name": "c", "version": "1"}}),
    ("notifications/initialized", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "add", "arguments": {"numbers": [1, 2]}, "_meta": {"progressToken": 7}}),
    ("tools/call", {"name": "fail", "arguments": {}}),
    ("tools/call", {"name": "slow", "arguments": {}}),
    ("notifications/cancelled", {"requestId": 5}),
    ("no/such", {}),
]


def agent(argv: list[str], *messages: tuple[str, Any]) -> Any:
    with agent_run("sums"):
        client = Client(argv, *messages)
        answers = client.talk()
    return answers, client.inbound


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    return [sys.executable, "-S", str(SERVER), str(tmp_path / "marks")]


def starts(argv: list[str]) -> int:
    marks = Path(argv[-1])
    return marks.read_text().count("started") if marks.exists() else 0


def test_recorded_and_replayed_without_a_server(argv: list[str]) -> None:
    live: list[Any] = []
    tape = recorded(lambda: live.append(agent(argv, *TALK)))
    ((answers, _),) = live
    assert [message["id"] for message in answers] == [0, 2, 3, 4, 7]
    assert answers[2]["result"]["content"][0]["text"] == "3"
    assert answers[4]["error"]["code"] == -32601
    steps = [s for s in tape.steps if s[names.STEP_KIND] != "agent"]
    assert [(s[names.STEP_KIND], s[names.STEP_NAME], s.get(names.STEP_EFFECT)) for s in steps] == [
        ("mcp", "initialize", "read"),
        ("mcp", "tools/list", "read"),
        ("tool_call", "add", "read"),
        ("tool_call", "fail", "unknown"),
        ("tool_call", "slow", "unknown"),
        ("mcp", "no/such", "unknown"),
    ]
    assert [s[names.STEP_OUTCOME] for s in steps] == ["ok", "ok", "ok", "tool_error", "cancelled", "error"]
    assert steps[2][names.TOOL_VERSION] == "1.2"
    assert json.loads(steps[2][names.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"numbers": [1, 2]}
    (run,) = tape.runs()
    assert [item for item in run.untaped if item["what"] == "process started"] == []
    assert starts(argv) == 1
    result = replayed(tape, agent, [], *TALK, guard=True)
    assert result.equal, result.differences
    assert result.value[0] == answers
    assert starts(argv) == 1


def test_another_argument_is_a_difference_and_an_answer(argv: list[str]) -> None:
    tape = recorded(lambda: agent(argv, *TALK[:4]))
    changed = [*TALK[:3], ("tools/call", {"name": "add", "arguments": {"numbers": [1, 3]}})]
    result = replayed(tape, agent, [], *changed)
    assert [(d.kind, d.field) for d in result.differences] == [("input", "arguments.numbers[1]")]
    told = result.value[0] if result.value else []
    assert not told or told[-1]["error"]["code"] == -32603


def test_what_the_server_asks_is_passed_on_and_named(argv: list[str]) -> None:
    live: list[Any] = []
    tape = recorded(lambda: live.append(agent(argv, ("tools/call", {"name": "ask", "arguments": {}}))))
    ((_, inbound),) = live
    assert [message["method"] for message in inbound] == ["roots/list"]
    (run,) = tape.runs()
    assert [(u["what"], u["target"]) for u in run.untaped] == [("request of an MCP server passed on", "roots/list")]
    asked = "request of an MCP server passed on roots/list; a replay answers the request that it came with, and does not ask"
    assert any(asked in reason.detail for reason in run.grade_reasons), run.grade_reasons


def test_what_the_server_tells_is_told_again_by_the_token_of_now(argv: list[str]) -> None:
    def talk(token: str) -> list[tuple[str, Any]]:
        call = {"name": "tell", "arguments": {}, "_meta": {"progressToken": token}}
        return [("tools/list", {}), ("tools/call", call), ("tools/call", call)]

    live: list[Any] = []
    tape = recorded(lambda: live.append(agent(argv, *talk("first"))))
    ((answers, told),) = live
    assert [message["params"].get("progressToken") for message in told] == [None, "first"] * 2
    again = replayed(tape, agent, [], *talk("second"))
    assert again.verdict.equal
    assert again.value[0] == answers
    assert [message["params"].get("progressToken") for message in again.value[1]] == [None, "second"] * 2
    assert again.value[1][::2] == told[::2]


def test_where_the_server_ends_the_client_sees_it_in_a_replay_too() -> None:
    argv = [sys.executable, "-S", "-c", "import sys; sys.stdin.readline()"]
    asked = ("tools/call", {"name": "late", "arguments": {}})
    live: list[Any] = []
    tape = recorded(lambda: live.append(agent(argv, asked)))
    assert [s[names.STEP_OUTCOME] for s in tape.steps if s[names.STEP_KIND] == "tool_call"] == ["error"]
    again = replayed(tape, lambda: agent([], asked))
    assert again.value == live[0] == ([], []), "no answer, and the end of the pipe"
    assert again.verdict.equal


def test_a_client_that_leaves_waits_for_nothing(argv: list[str]) -> None:
    tape = recorded(lambda: agent(argv, ("tools/call", {"name": "slow", "arguments": {}})))
    assert [s[names.STEP_OUTCOME] for s in tape.steps if s[names.STEP_KIND] == "tool_call"] == ["cancelled"]


def test_one_that_is_told_to_end_ends_its_server(argv: list[str]) -> None:
    client = Client(argv)
    threading.Timer(0, client.proxy.leave).start()
    assert client.talk() == []
