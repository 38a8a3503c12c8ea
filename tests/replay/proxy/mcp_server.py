"""An MCP server without an SDK: answers what the test asks, and leaves a mark where it was started."""

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "inputSchema": {"type": "object"}},
]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "sums", "version": "1.2"}}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call" and params["name"] == "add":
        total = sum(params["arguments"]["numbers"])
        return {"result": {"content": [{"type": "text", "text": str(total)}], "isError": False}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "no"}], "isError": True}}
    return {"error": {"code": -32601, "message": f"no method {method}", "data": {"asked": method}}}


def main() -> None:
    with Path(sys.argv[1]).open("a") as marks:
        marks.write("started\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if message["method"] == "tools/call" and message["params"]["name"] == "slow":
            continue
        if message["method"] == "tools/call" and message["params"]["name"] == "ask":
            print(json.dumps({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}), flush=True)
        if message["method"] == "tools/call" and message["params"]["name"] == "tell":
            token = message["params"]["_meta"]["progressToken"]
            for method, params in (("message", {"level": "info", "data": "begun"}), ("progress", {"progressToken": token, "progress": 1})):
                print(json.dumps({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)


main()
