"""The plain SDKs: each request of a recording is sent once more, and the tools that are asked for are called.

OpenAI's APIs are asked by its SDK, Bedrock by boto3, anything else by requests.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import boto3
import requests
from openai import OpenAI
from playing import SCENE, say, use

from spanreplay.instrumentation import agent_run, tool

Call = tuple[str, dict[str, Any]]
URL = os.environ["SERVER"]
openai = OpenAI(base_url=f"{URL}/v1", api_key="a-key", max_retries=0)
bedrock = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url=URL,
    aws_access_key_id="a-key-of-nobody",
    aws_secret_access_key="a-secret-of-nobody",
)


def chat(path: str, body: dict[str, Any]) -> tuple[Any, list[Call]]:
    said = [chunk.model_dump() for chunk in openai.chat.completions.create(**body)]
    parts = [call["function"] for chunk in said for choice in chunk["choices"] for call in choice["delta"].get("tool_calls") or ()]
    names = [part["name"] for part in parts if part.get("name")]
    return said, [(name, json.loads("".join(part["arguments"] or "" for part in parts))) for name in names]


def responses(path: str, body: dict[str, Any]) -> tuple[Any, list[Call]]:
    said = [event.model_dump() for event in openai.responses.create(**body)]
    items = [event["item"] for event in said if event["type"] == "response.output_item.done"]
    return said, [(item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"]


def converse(path: str, body: dict[str, Any]) -> tuple[Any, list[Call]]:
    said = list(bedrock.converse_stream(modelId=unquote(path.split("/")[2]), **body)["stream"])
    return said, list(_used(said))


def _used(events: Iterable[dict[str, Any]]) -> Iterator[Call]:
    name, text = "", ""
    for event in events:
        begun = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
        if begun:
            name, text = begun["name"], ""
        text += event.get("contentBlockDelta", {}).get("delta", {}).get("toolUse", {}).get("input", "")
        if name and "contentBlockStop" in event:
            yield name, json.loads(text or "{}")
            name = ""


def anything(method: str, path: str, body: Any) -> tuple[Any, list[Call]]:
    answer = requests.request(method, URL + path, json=body, timeout=30)
    return [answer.status_code, answer.text], []


def ask(method: str, path: str, body: Any) -> tuple[Any, list[Call]]:
    ways: dict[str, Callable[[str, dict[str, Any]], tuple[Any, list[Call]]]] = {
        "/chat/completions": chat,
        "/responses": responses,
        "/converse-stream": converse,
    }
    way = next((way for end, way in ways.items() if path.endswith(end)), None)
    return anything(method, path, body) if way is None else way(path, body)


with agent_run("plain") as run:
    for sent in SCENE["requests"]:
        output, calls = ask(sent["method"], sent["path"], sent["body"])
        say(output)
        for name, arguments in calls:
            tool(name=name)(lambda name=name, **arguments: use(name, arguments))(**arguments)
    run.output = "done"
