"""Stands in for the Claude CLI: asks the model at ANTHROPIC_BASE_URL, and speaks the CLI's stream of JSON with the program.

It has ``Bash`` and ``Write``, which do nothing (the command ``wait`` never ends), and ``Task``, a sub-agent. Like the CLI it lists the
tools of the program's servers, has the program's hooks called and asks it before it runs a tool that is not allowed from the start.
"""

import argparse
import itertools
import json
import os
import queue
import re
import sys
import threading
import urllib.request

OWN = {"Bash": "ran", "Write": "written"}


class Cli:
    def __init__(self, options):
        self.options = options
        self.ids = itertools.count(1)
        self.prompts = queue.Queue()
        self.waiting = {}
        self.lock = threading.Lock()
        self.tools, self.owners, self.hooks = [], {}, {}
        self.agents = json.loads(options.agents or "{}")
        self.history = []

    def say(self, message):
        with self.lock:
            print(json.dumps({"session_id": "s1", **message}), flush=True)

    def listen(self):
        for line in sys.stdin:
            message = json.loads(line)
            if message["type"] == "control_response":
                self.waiting.pop(message["response"]["request_id"]).put(message["response"])
            else:
                self.prompts.put(message)
        os._exit(0)  # nobody waits for what is under way

    def send(self, request):
        number = f"cli_{next(self.ids)}"
        answer = self.waiting[number] = queue.Queue()
        self.say({"type": "control_request", "request_id": number, "request": request})
        return answer

    def mcp(self, server, method, params=None, number=None):
        message = {"jsonrpc": "2.0", "method": method, **({"id": number or next(self.ids)} if not method.startswith("notif") else {})}
        if params is not None:
            message["params"] = params
        return self.send({"subtype": "mcp_message", "server_name": server, "message": message})

    def begin(self, request):
        self.hooks = request.get("hooks") or {}
        self.agents |= request.get("agents") or {}
        for server in json.loads(self.options.mcp_config or "{}").get("mcpServers", {}):
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
            self.mcp(server, "initialize", client).get()
            self.mcp(server, "notifications/initialized").get()
            listed = self.mcp(server, "tools/list").get()["response"]["mcp_response"]["result"]["tools"]
            for tool in listed:
                name = f"mcp__{server}__{tool['name']}"
                self.owners[name] = (server, tool["name"])
                self.tools.append({"name": name, "description": tool.get("description", ""), "input_schema": tool["inputSchema"]})
        own = [*OWN, "Task"] if self.agents else [*OWN]
        self.tools += [{"name": name, "description": name, "input_schema": {"type": "object"}} for name in own]

    def ask(self, messages, system, tools):
        body = {"model": self.options.model or "claude-test", "max_tokens": 100, "messages": messages, "system": system, "tools": tools}
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def loop(self, messages, system, tools, parent=None):
        while True:
            answer = self.ask(messages, system, tools)
            if self.options.include_partial_messages:
                for index, block in enumerate(answer["content"]):
                    delta = {"type": "text_delta", "text": block.get("text", "")}
                    event = {"type": "content_block_delta", "index": index, "delta": delta}
                    self.say({"type": "stream_event", "uuid": f"e{index}", "event": event, "parent_tool_use_id": parent})
            for block in answer["content"]:  # each block by itself, under the same id
                self.say({"type": "assistant", "message": {**answer, "content": [block]}, "parent_tool_use_id": parent})
            messages.append({"role": "assistant", "content": answer["content"]})
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not calls:
                return "".join(block.get("text", "") for block in answer["content"])
            started = [self.start(call) for call in calls]
            results = []
            for call, finish in zip(calls, started, strict=True):
                text, failed = finish()
                self.hook("PostToolUse", call, tool_response=text)
                block = {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}
                results.append(block)
                self.say({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": parent})
            messages.append({"role": "user", "content": results})

    def hook(self, event, call, **more):
        answers = []
        for matcher in self.hooks.get(event, []):
            if matcher.get("matcher") and not re.fullmatch(matcher["matcher"], call.get("name", "")):
                continue
            given = {"hook_event_name": event, "session_id": "s1", "cwd": "/", "transcript_path": "/t", **more}
            if call:
                given |= {"tool_name": call["name"], "tool_input": call["input"]}
            for number in matcher["hookCallbackIds"]:
                request = {"subtype": "hook_callback", "callback_id": number, "input": given, "tool_use_id": call.get("id")}
                answers.append(self.send(request).get().get("response", {}))
        return answers

    def refused(self, call):
        for answer in self.hook("PreToolUse", call):
            said = answer.get("hookSpecificOutput", {})
            if said.get("permissionDecision") == "deny":
                return said.get("permissionDecisionReason", "denied")
            if said.get("permissionDecision") == "allow":
                return None
        if not self.options.permission_prompt_tool or call["name"] in (self.options.allowedTools or "").split(","):
            return None
        request = {"subtype": "can_use_tool", "tool_name": call["name"], "input": call["input"], "tool_use_id": call["id"]}
        answer = self.send(request).get().get("response", {})
        call["input"] = answer.get("updatedInput") or call["input"]
        return None if answer.get("behavior") == "allow" else answer.get("message", "denied")

    def start(self, call):
        refusal = self.refused(call)
        if refusal is not None:
            return lambda: (refusal, True)
        name, given = call["name"], call["input"]
        if name in self.owners:
            server, short = self.owners[name]
            answer = self.mcp(server, "tools/call", {"name": short, "arguments": given})

            def finish():
                result = answer.get()["response"]["mcp_response"]["result"]
                return result["content"][0]["text"], result.get("isError", False)

            return finish
        if name == "Task":
            agent = self.agents[given["subagent_type"]]
            asked = [{"role": "user", "content": given["prompt"]}]
            return lambda: (self.loop(asked, agent["prompt"], [], call["id"]), False)
        if given.get("command") == "wait":
            return queue.Queue().get
        with open(os.environ["TOOL_BODIES"], "a") as file:
            file.write(f"{name}\n")
        return lambda: (OWN[name], False)

    def run(self):
        threading.Thread(target=self.listen, daemon=True).start()
        while message := self.prompts.get():
            if message["type"] == "control_request":
                request, answer = message["request"], {"commands": []}
                if request["subtype"] == "initialize":
                    self.begin(request)
                self.say(
                    {
                        "type": "control_response",
                        "response": {"subtype": "success", "request_id": message["request_id"], "response": answer},
                    }
                )
            elif message["type"] == "user":
                self.hook("UserPromptSubmit", {}, prompt=message["message"]["content"])
                self.history.append({"role": "user", "content": message["message"]["content"]})
                text = self.loop(self.history, self.options.system_prompt or "", self.tools)
                done = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1}
                self.say({"type": "result", **done, "result": text, "total_cost_usd": 0.01, "usage": {}})


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-v", "--version", action="store_true")
    parser.add_argument("--include-partial-messages", action="store_true")
    for name in ("--model", "--system-prompt", "--agents", "--mcp-config", "--permission-prompt-tool", "--allowedTools"):
        parser.add_argument(name)
    options, _ = parser.parse_known_args()
    if options.version:
        print("9.9.9 (Claude Code)")
        return
    Cli(options).run()


main()
