"""Stands in for the Claude CLI: speaks its stream of JSON, asks no model, and does what the prompt's name says.

It runs one tool of its own, asks to be allowed another, and calls one of the program's.
"""

import itertools
import json
import os
import sys

ids = itertools.count(1)
later = []


def say(message):
    print(json.dumps(message), flush=True)


def hear():
    if later:
        return later.pop(0)
    return listen()


def listen():
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def assistant(number, *blocks):
    usage = {"input_tokens": 10 * number, "output_tokens": 5}
    for block in blocks:
        inner = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-test", "content": [block], "usage": usage}
        say({"type": "assistant", "message": inner, "parent_tool_use_id": None, "session_id": "s1"})


def result_of(call_id, text, failed=False):
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
    say({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None, "session_id": "s1"})


def ask(request):
    number = f"cli_{next(ids)}"
    say({"type": "control_request", "request_id": number, "request": request})
    while True:
        heard = listen()
        if heard is None:
            return {}
        if heard.get("type") == "control_response" and heard["response"]["request_id"] == number:
            return heard["response"].get("response", {})
        later.append(heard)


def tool(call_id, name, **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def turn(prompt, number):
    with open(os.environ["TOOL_BODIES"], "a") as file:
        file.write("cli\n")
    assistant(
        number,
        {"type": "text", "text": "Let me look."},
        tool(f"toolu_{number}a", "Bash", command="ls"),
        tool(f"toolu_{number}b", "Write", path="a"),
    )
    result_of(f"toolu_{number}a", "a.txt")
    allowed = ask({"subtype": "can_use_tool", "tool_name": "Write", "input": {"path": "a"}, "tool_use_id": f"toolu_{number}b"})
    result_of(f"toolu_{number}b", allowed.get("message", "written"), failed=allowed.get("behavior") != "allow")
    assistant(number + 1, tool(f"toolu_{number}c", "mcp__desk__get_weather", city="Paris"))
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Paris"}}}
    answer = ask({"subtype": "mcp_message", "server_name": "desk", "message": call})
    text = answer["mcp_response"]["result"]["content"][0]["text"]
    result_of(f"toolu_{number}c", text)
    assistant(number + 2, {"type": "text", "text": f"{prompt}: {text}"})
    done = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 3, "session_id": "s1"}
    say({"type": "result", **done, "result": f"{prompt}: {text}", "total_cost_usd": 0.01, "usage": {}})


def main():
    if "-v" in sys.argv or "--version" in sys.argv:
        print("9.9.9 (Claude Code)")
        return
    number = 1
    while (heard := hear()) is not None:
        if heard.get("type") == "control_request":
            ready = {"subtype": "success", "request_id": heard["request_id"], "response": {"commands": []}}
            say({"type": "control_response", "response": ready})
            if heard["request"]["subtype"] == "initialize":
                shake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
                ask(
                    {
                        "subtype": "mcp_message",
                        "server_name": "desk",
                        "message": {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": shake},
                    }
                )
                ask({"subtype": "mcp_message", "server_name": "desk", "message": {"jsonrpc": "2.0", "method": "notifications/initialized"}})
        elif heard.get("type") == "user":
            turn(heard["message"]["content"], number)
            number += 3


main()
