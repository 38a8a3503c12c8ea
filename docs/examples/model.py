"""A model without a mind, to run the examples with: no key, no cost, nothing leaves this machine. Standard library only.

    python model.py -- spanreplay record -- python openai_agents/agent.py

starts it on a free port of 127.0.0.1, runs the command with ``OPENAI_BASE_URL`` and its like set, and ends with the command's exit code;
without a command it serves until it is interrupted, and prints what to export. It speaks OpenAI's Chat Completions and Responses,
Anthropic's Messages and Gemini's ``generateContent``, in one piece and as streams. Each tool that a request offers is asked for once, one
a turn, with arguments that fit its schema; then it answers with what the tools gave. Agents that want calls in a text (code between
``<code>`` and ``</code>``, DSPy's fields) are answered in kind.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from turns import Call, in_text, read, turn

ids = itertools.count(1)


# ---- the APIs: a turn as one document, and as the events of a stream ----------------------------------------------


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def chat(said: Call | str, body: dict[str, Any]) -> tuple[Any, list[Any]]:
    """https://platform.openai.com/docs/api-reference/chat"""
    number, end = next(ids), "tool_calls" if isinstance(said, Call) else "stop"
    head = {"id": f"chatcmpl-{number}", "created": 1700000000, "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if isinstance(said, Call):
        name, data = said.name, json.dumps(said.arguments)
        call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": data}}
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
        first = {"index": 0, **call, "function": {"name": name, "arguments": ""}}
        deltas = [{"role": "assistant", "content": None, "tool_calls": [first]}]
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": half}}]} for half in halves(data)]
    else:
        message, deltas = {"role": "assistant", "content": said}, [{"role": "assistant", "content": half} for half in halves(said)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": end}]
    events: list[Any] = [{**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    whole = {"index": 0, "message": message, "finish_reason": end}
    return {**head, "object": "chat.completion", "choices": [whole], "usage": usage}, [*events, "[DONE]"]


def responses(said: Call | str, body: dict[str, Any]) -> tuple[Any, list[Any]]:
    """https://platform.openai.com/docs/api-reference/responses"""
    number = next(ids)
    usage: dict[str, Any] = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    full: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "output": [],
    }
    full |= {"model": body.get("model", "scripted"), "parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools") or []}
    at: dict[str, Any] = {"item_id": f"item_{number}", "output_index": 0}
    if isinstance(said, Call):
        data = json.dumps(said.arguments)
        item: dict[str, Any] = {"id": f"item_{number}", "type": "function_call", "status": "completed", "call_id": f"call_{number}"}
        item |= {"name": said.name, "arguments": data}
        kind, open_item = "response.function_call_arguments", {**item, "arguments": ""}
        last: dict[str, Any] = {"arguments": data, "name": said.name}
    else:
        data = said
        part: dict[str, Any] = {"type": "output_text", "text": said, "annotations": []}
        item = {"id": f"item_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        kind, last, open_item = "response.output_text", {"text": said, "logprobs": []}, {**item, "content": []}
        at["content_index"] = 0
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**full, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**open_item, "status": "in_progress"}},
        *([] if isinstance(said, Call) else [{"type": "response.content_part.added", **at, "part": {**part, "text": ""}}]),
        *({"type": f"{kind}.delta", **at, "delta": half, **({} if isinstance(said, Call) else {"logprobs": []})} for half in halves(data)),
        {"type": f"{kind}.done", **at, **last},
        *([] if isinstance(said, Call) else [{"type": "response.content_part.done", **at, "part": part}]),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**full, "output": [item], "usage": usage}},
    ]
    return {**full, "output": [item], "usage": usage}, [{**event, "sequence_number": place} for place, event in enumerate(events)]


def as_items(given: str | list[Any]) -> list[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def messages(said: Call | str, body: dict[str, Any]) -> tuple[Any, list[Any]]:
    """https://docs.anthropic.com/en/api/messages"""
    number, end = next(ids), "tool_use" if isinstance(said, Call) else "end_turn"
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model", "scripted"), "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    if isinstance(said, Call):
        block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number}", "name": said.name, "input": said.arguments}
        empty = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(json.dumps(said.arguments))]
    else:
        block, empty = {"type": "text", "text": said}, {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": half} for half in halves(said)]
    events = [
        {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return {**head, "content": [block], "stop_reason": end, "usage": usage}, events


def gemini(said: Call | str, _body: dict[str, Any]) -> tuple[Any, list[Any]]:
    """https://ai.google.dev/api/generate-content"""
    head: dict[str, Any] = {"modelVersion": "scripted", "responseId": f"response-{next(ids)}"}
    head |= {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}}
    called = isinstance(said, Call)
    parts = (
        [{"functionCall": {"name": said.name, "args": said.arguments}}] if isinstance(said, Call) else [{"text": h} for h in halves(said)]
    )

    def document(*of: Any, end: bool) -> dict[str, Any]:
        return {
            **head,
            "candidates": [{"content": {"role": "model", "parts": of}, "index": 0, **({"finishReason": "STOP"} if end else {})}],
        }

    whole = document(*(parts if called else [{"text": said}]), end=True)
    return whole, [document(part, end=part is parts[-1]) for part in parts]


APIS: dict[str, Callable[[Call | str, dict[str, Any]], tuple[Any, list[Any]]]] = {
    r"/chat/completions$": chat,
    r"/responses$": responses,
    r"/messages$": messages,
    r"/models/[^/]+:(stream)?[gG]enerateContent$": gemini,
}


# ---- the server ---------------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """Serves while its block runs: ``with Server() as server``, at ``server.url``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests = 0
        self.conversations: dict[str, list[Any]] = {}  # by response, for ``previous_response_id``

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def environment(self) -> dict[str, str]:
        """Where clients find the model, with a key that is none; what else would leave the machine is switched off."""
        found = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{self.url}/v1")
        found |= dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), self.url)
        found |= dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "not-needed")
        found |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false"}  # all tools are offered at once
        found |= {"CREWAI_DISABLE_TELEMETRY": "true"}
        return found | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1", "HAYSTACK_TELEMETRY_ENABLED": "False"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        url = urlsplit(self.path)
        api = next((api for path, api in APIS.items() if re.search(path, url.path)), None)
        try:
            body = json.loads(data)
            before = self.server.conversations.get(body.get("previous_response_id"), [])
            asked = read({**body, "input": [*before, *as_items(body["input"])]} if before else body)
            said = in_text(asked) or turn(asked)
        except Exception as error:  # whatever a request lacks, the client is told
            self.answer(400, {"error": {"message": f"not a request to a model: {error!r}"}})
            return
        if api is None:
            self.answer(404, {"error": {"message": f"there is no {url.path}"}})
            return
        self.server.requests += 1
        whole, events = api(said, body)
        if api is responses:
            self.server.conversations[whole["id"]] = [*before, *as_items(body["input"]), *whole["output"]]
        if not (body.get("stream") or ":stream" in url.path):
            self.answer(200, whole)
        elif ":stream" in url.path and "alt=sse" not in url.query:
            self.answer(200, events)
        else:
            named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
            lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
            self.send(200, "text/event-stream", "".join(f"{name}data: {line}\n\n" for name, line in zip(named, lines, strict=True)))

    def answer(self, status: int, document: object) -> None:
        self.send(status, "application/json", json.dumps(document))

    def send(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


def main(arguments: list[str]) -> int:
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    with Server() as server:
        try:
            if command:
                return subprocess.run(command, env=os.environ | server.environment(), check=False).returncode
            print("\n".join(f"export {name}={value}" for name, value in server.environment().items()), flush=True)
            threading.Event().wait()
        except FileNotFoundError as error:
            print(f"model.py: there is no program {error.filename!r}", file=sys.stderr)
            return 127
        except KeyboardInterrupt:
            return 130
        finally:
            print(f"model.py: {server.requests} requests answered", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
