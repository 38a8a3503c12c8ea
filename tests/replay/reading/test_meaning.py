"""A run whose spans carry the view and not the exchange replays by meaning."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from fixtures.runs.spans import chat
from spanreplay import recording
from spanreplay.cli.target import load
from spanreplay.instrumentation import agent_run
from spanreplay.replay.model import Run
from spanreplay.replay.reading.meaning import live_meaning, recorded_meaning
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Record, SpanRecord

REPLY = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello, Ana."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
}
LEFT_OFF = (names.STEP_INPUT, names.STEP_RESULT, names.STEP_ITEMS)


def events() -> bytes:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello, "}}]},
        {"choices": [{"index": 0, "delta": {"content": "Ana."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    base = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return b"".join(b"data: " + json.dumps({**base, **c}).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


class Model:
    """Counts the requests that reach it."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        if json.loads(request.content).get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=events())
        return httpx2.Response(200, json=REPLY)


def agent(model: Model, *, stream: bool, system: str = "Be polite.", name: str = "m-1") -> str:
    client = openai.OpenAI(
        api_key="k-123456789", base_url="http://model.test/v1", http_client=httpx2.Client(transport=httpx2.MockTransport(model))
    )
    messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": "I am Ana."}]
    with agent_run("greeter") as run:
        if stream:
            parts = [c.choices[0].delta.content or "" for c in client.chat.completions.create(model=name, messages=messages, stream=True)]
            run.output = "".join(parts)
        else:
            run.output = client.chat.completions.create(model=name, messages=messages).choices[0].message.content
        return str(run.output)


def view(record: Record) -> Record:
    if not isinstance(record, SpanRecord):
        return record
    kept = {k: v for k, v in record.attributes.items() if not k.startswith(names.WIRE_PREFIX) and k not in LEFT_OFF}
    return dataclasses.replace(record, attributes=kept)


def recorded(folder: Path, *, stream: bool, whole: bool = False) -> Run:
    recording.start(store=folder)
    try:
        agent(Model(), stream=stream)
    finally:
        recording.stop()
    runs = build_runs([r if whole else view(r) for r in load("last", folder).records])
    return next(r for r in runs if r.agent_name == "greeter")


@pytest.mark.parametrize("stream", [False, True])
def test_a_view_is_replayed_by_meaning(tmp_path: Path, stream: bool) -> None:
    run, model = recorded(tmp_path, stream=stream), Model()
    assert run.grade == "semantic"
    result = Replayer(run).replay(agent, model, stream=stream)
    assert result.equal, result.differences
    assert result.value == "Hello, Ana."
    assert model.requests == 0


def test_a_changed_word_is_found_in_its_message(tmp_path: Path) -> None:
    result = Replayer(recorded(tmp_path, stream=False)).replay(agent, Model(), stream=False, system="Be brief.")
    assert [(d.step, d.field) for d in result.differences] == [(1, "messages[0].parts[0].content")]


@pytest.mark.parametrize("whole", [False, True])
def test_another_model_is_found_at_its_step(tmp_path: Path, whole: bool) -> None:
    result = Replayer(recorded(tmp_path, stream=False, whole=whole)).replay(agent, Model(), stream=False, name="m-2")
    found = [(d.step, d.name, d.field, d.recorded, d.actual) for d in result.differences]
    assert found == [(1, "model_call m-1", "model", '"m-1"', '"m-2"')]
    assert result.differences[0].cause == "the model has changed: m-1 → m-2"


@pytest.mark.parametrize("asked", ["[]", "null", "{}", '{"body": 1}', '{"method": 1, "url": 2, "body": {"messages": []}}'])
def test_what_no_provider_knows_has_no_meaning(asked: str) -> None:
    assert live_meaning(asked, tools=True) is None


@pytest.mark.parametrize(
    "held",
    [
        {"type": "uri", "modality": "image", "uri": "https://pictures.example/cat.png"},
        {"type": "uri", "mime_type": None, "modality": "image", "uri": "https://pictures.example/cat.png"},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}},
        {"type": "image", "url": "https://pictures.example/cat.png", "id": "lc_1"},
    ],
    ids=["OpenLLMetry", "the conventions", "chat completions", "LangChain"],
)
def test_a_picture_means_the_same_however_it_was_recorded(held: dict[str, Any]) -> None:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "What is it?"}, held]}])
    step = build_runs([chat(1, attributes={names.GEN_AI_INPUT_MESSAGES: said})])[0].steps[0]
    sent = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}}]
    body = {"model": "m-1", "messages": [{"role": "user", "content": sent}]}
    asked = json.dumps({"method": "POST", "url": "http://model.test/v1/chat/completions", "body": body})
    meaning = live_meaning(asked, tools=False)
    assert meaning is not None
    assert recorded_meaning(step, tools=False) == meaning
