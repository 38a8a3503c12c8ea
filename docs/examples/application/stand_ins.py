"""Stand-ins on loopback: a model with a script, and the platform that the shop runs on.

`python stand_ins.py PORT` serves both; port 0 takes a free one. The address is printed.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FIXED = "    whole = sum(prices)\n    return whole * 9 // 10 if len(prices) >= 10 else whole\n"

SCRIPT: list[list[tuple[str, dict[str, Any]]] | str] = [
    [("read_file", {"path": "prices.py"}), ("run_tests", {})],
    [("edit_file", {"path": "prices.py", "old": "    return sum(prices)\n", "new": FIXED})],
    [("run_tests", {})],
    [("commit", {"message": "Ten items cost a tenth less"})],
    [("migrate", {"statement": "alter table orders add column discount integer default 0"})],
    [("set_auth", {"setting": "require_email_verification", "value": True})],
    [("deploy", {"version": "2.0"})],
    "Orders of ten items cost a tenth less; the database knows the discount, e-mails are verified, and 2.0 is deployed.",
]
"""What the model says, turn by turn: tools to call, or the end."""


class StandIns(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    settings: dict[str, Any] = {"require_email_verification": False}
    deployed: list[str] = ["1.0"]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v1/chat/completions":
            self._answer(turn(asked))
        elif self.path == "/deployments":
            self.deployed.append(asked["version"])
            self._answer({"id": f"dep_{len(self.deployed)}", "version": asked["version"], "commit": asked["commit"], "state": "live"})
        elif self.path == "/auth/settings":
            before = {name: self.settings.get(name) for name in asked}
            self.settings.update(asked)
            self._answer({"before": before, "after": asked})
        else:
            self._answer({"error": f"there is no {self.path}"}, 404)

    def do_GET(self) -> None:
        self._answer({"settings": self.settings, "deployed": self.deployed})

    def _answer(self, document: object, status: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


def turn(asked: dict[str, Any]) -> dict[str, Any]:
    """The next turn of the model, as the Chat Completions API has it."""
    number = sum(message["role"] == "assistant" for message in asked["messages"])
    said = SCRIPT[number]
    message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        message["tool_calls"] = [
            {"id": f"call_{number}_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for place, (name, arguments) in enumerate(said)
        ]
    reason = "stop" if isinstance(said, str) else "tool_calls"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100 + 20 * number, "completion_tokens": 20, "total_tokens": 120 + 20 * number},
    }


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), StandIns)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
