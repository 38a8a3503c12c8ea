"""Responses that providers really sent, read and checked against their known tool calls."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]

from spanreplay.instrumentation.provider import ModelResponse, Provider, recognise
from spanreplay.semconv import attributes as names

MATERIAL = Path(__file__).parents[4] / "shared" / "material"
TRUTH = MATERIAL / "ground_truth_cassettes.json"
pytestmark = pytest.mark.skipif(not TRUTH.exists(), reason="../shared/material, recordings of providers, is not part of a clone")
OURS = {"openai.chat", "openai.responses", "anthropic", "bedrock.converse"}
ROWS: list[dict[str, Any]] = (
    [row for row in json.loads(TRUTH.read_text("utf-8")) if OURS.issuperset(row["api"].split("+"))] if TRUTH.exists() else []
)


def _bytes(message: dict[str, Any]) -> bytes:
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"]).encode()
    body = message.get("body") or b""
    if isinstance(body, dict):
        body = body.get("string") or (base64.b64decode(body["base64_string"]) if "base64_string" in body else b"")
    body = body.encode() if isinstance(body, str) else body
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


def exchanges(row: dict[str, Any]) -> Iterator[tuple[Provider, Any, ModelResponse, bytes]]:
    """The model calls of a recording: provider, parsed request, response as read, response body."""
    cassette = yaml.load((MATERIAL / row["file"]).read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for exchange in cassette["interactions"]:
        request, response = exchange["request"], exchange["response"]
        path = "/" + (request.get("uri") or request["url"]).split("://", 1)[1].split("/", 1)[1]
        found = recognise(request["method"], path, "application/json", _bytes(request))
        if found is None:
            continue
        headers = {key.lower(): value[0] for key, value in (response.get("headers") or {}).items()}
        status = response["status"]["code"] if isinstance(response["status"], dict) else response["code"]
        body = _bytes(response)
        yield (*found, found[0].response(status, headers.get("content-type", ""), body, found[1]), body)


COUNTED = [row for row in ROWS if row["api"] != "bedrock.converse"]
"""Whoever counted read no event streams."""


@pytest.mark.parametrize("row", COUNTED, ids=[row["id"] for row in COUNTED])
def test_tool_calls_per_response(row: dict[str, Any]) -> None:
    told: list[str] = []
    for provider, request, response, body in exchanges(row):
        if response.outcome == "error":
            assert response.error is not None
            assert response.error[1] == json.loads(body)["error"]["message"]
            told.append("HTTP400")
            continue
        assert (response.outcome, response.complete) == ("ok", True)
        told.append(f"[{','.join(call.name for call in response.tool_calls)}]")
        assert all(isinstance(call.arguments, dict) and call.id for call in response.tool_calls)
        view = provider.request(request)
        assert view.stream is (row["mode"] == "stream")
        offered = [tool.get("name") for tool in json.loads(str(view.attributes.get(names.GEN_AI_TOOL_DEFINITIONS, "[]")))]
        assert "search_tools" in offered or all(call.name in offered for call in response.tool_calls)
        assert provider.terminal(body) is view.stream
        if not view.stream:
            usage = json.loads(body)["usage"]
            assert response.attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == usage.get("output_tokens", usage.get("completion_tokens"))
    assert " ".join(told) == row["tool_calls_per_response"]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_texts_ids_and_arguments_equal_those_on_the_wire(row: dict[str, Any]) -> None:
    for provider, _, response, body in exchanges(row):
        if response.outcome == "ok":
            made = json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES]))
            texts = [part["content"] for message in made for part in message["parts"] if part["type"] == "text"]
            calls = [[call.id, call.name, call.arguments] for call in response.tool_calls]
            assert (texts, calls) == on_the_wire(provider.NAME, body)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_response_made_of_the_messages_reads_the_same(row: dict[str, Any]) -> None:
    for provider, request, response, _ in exchanges(row):
        if response.outcome == "ok":
            messages = json.loads(str(response.attributes[names.GEN_AI_OUTPUT_MESSAGES]))
            for stream in (False, True):
                asked = {**request, "stream": stream}
                kind, body = provider.render(messages, request=asked, response_id=None, model=None, usage={})
                again = provider.response(200, kind, body, asked)
                read = json.loads(str(again.attributes[names.GEN_AI_OUTPUT_MESSAGES]))
                # One server never says why it stopped; a client needs a reason, so one is told from the parts.
                assert [{"finish_reason": "tool_call", **message} for message in messages] == read or messages == read
                assert again.tool_calls == response.tool_calls


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_next_request_shows_the_calls_it_answers(row: dict[str, Any]) -> None:
    asked: dict[str | None, Any] = {}
    answered = 0
    for provider, request, response, _ in exchanges(row):
        for message in json.loads(str(provider.request(request).attributes[names.GEN_AI_INPUT_MESSAGES])):
            for part in message["parts"]:
                if part["type"] == "tool_call" and part["id"] in asked:
                    assert part["arguments"] == asked[part["id"]], part
                # One framework puts the response id in front of the call id.
                if part["type"] == "tool_call_response" and asked and part["id"].endswith(tuple(map(str, asked))):
                    answered += 1
        asked = {call.id: call.arguments for call in response.tool_calls}
    assert answered or row["tool_calls_per_response"].count("[]") == len(row["tool_calls_per_response"].split())


def on_the_wire(name: str, body: bytes) -> tuple[list[str], list[list[Any]]]:
    """Texts and calls, read a second way: from the plain body or the events."""
    streamed = body.lstrip().startswith((b"data:", b"event:"))
    if name == "openai.chat":
        return _chat(body, streamed)
    if name == "openai.responses":
        return _responses(body, streamed)
    if name == "aws.bedrock.converse":
        return _bedrock(body)
    return _anthropic(body, streamed)


def _data(body: bytes) -> list[Any]:
    lines = [line.removeprefix("data:").strip() for line in body.decode().replace("\r\n", "\n").split("\n") if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _chat(body: bytes, streamed: bool) -> tuple[list[str], list[list[Any]]]:
    if not streamed:
        message = json.loads(body)["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        texts = [message["content"]] if message.get("content") else []
        return texts, [[call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])] for call in calls]
    text, made = "", dict[int, list[Any]]()
    for chunk in _data(body):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or []:
                entry = made.setdefault(call["index"], [None, "", ""])
                entry[0] = call.get("id") or entry[0]
                entry[1] += call["function"].get("name") or ""
                entry[2] += call["function"].get("arguments") or ""
    return [text] if text else [], [[call_id, name, json.loads(arguments)] for call_id, name, arguments in made.values()]


def _responses(body: bytes, streamed: bool) -> tuple[list[str], list[list[Any]]]:
    whole = _data(body)[-1]["response"] if streamed else json.loads(body)
    texts = [chunk["text"] for item in whole["output"] if item["type"] == "message" for chunk in item["content"]]
    calls = [item for item in whole["output"] if item["type"] == "function_call"]
    return texts, [[item["call_id"], item["name"], json.loads(item["arguments"])] for item in calls]


def _bedrock(body: bytes) -> tuple[list[str], list[list[Any]]]:
    reader = EventStreamBuffer()
    reader.add_data(body)
    blocks: dict[int, dict[str, Any]] = {}
    for event in reader:
        payload = json.loads(event.payload)
        block = blocks.setdefault(payload.get("contentBlockIndex", -1), {"text": "", "input": ""})
        block.update(payload.get("start", {}).get("toolUse", {}))
        delta = payload.get("delta", {})
        block["text"] += delta.get("text", "")
        block["input"] += delta.get("toolUse", {}).get("input", "")
    blocks.pop(-1)
    calls = [[block["toolUseId"], block["name"], json.loads(block["input"])] for block in blocks.values() if "name" in block]
    return [block["text"] for block in blocks.values() if "name" not in block], calls


def _anthropic(body: bytes, streamed: bool) -> tuple[list[str], list[list[Any]]]:
    if not streamed:
        blocks = json.loads(body)["content"]
        calls = [[block["id"], block["name"], block["input"]] for block in blocks if block["type"] == "tool_use"]
        return [block["text"] for block in blocks if block["type"] == "text"], calls
    blocks = []
    for event in _data(body):
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "input": ""})
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                blocks[event["index"]]["text"] += delta["text"]
            elif delta["type"] == "input_json_delta":
                blocks[event["index"]]["input"] += delta["partial_json"]
    calls = [[block["id"], block["name"], json.loads(block["input"] or "{}")] for block in blocks if block["type"] == "tool_use"]
    return [block["text"] for block in blocks if block["type"] == "text"], calls
