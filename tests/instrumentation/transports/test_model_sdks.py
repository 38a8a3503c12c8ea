"""The real SDKs of further model APIs: recorded against a scripted server, replayed without it, and fed from messages alone."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import anthropic
import boto3  # type: ignore[import-untyped]
import botocore.config  # type: ignore[import-untyped]
import ollama
import openai
import pytest
from botocore.exceptions import ClientError, EventStreamError, ReadTimeoutError  # type: ignore[import-untyped]

from spanreplay.instrumentation import _eventstream
from spanreplay.instrumentation.provider import by_name
from spanreplay.instrumentation.transports import botocore as botocore_transport
from spanreplay.instrumentation.transports import urllib3 as urllib3_transport
from spanreplay.semconv import attributes as names
from support.http_tape import Tape, awaited, record, replay
from support.model_server import ModelServer, Scripted, as_events, as_json, chat, chat_chunks
from support.sdk_agents import ASK, experiment

SAID = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "One moment…"},
            {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"city": "Zürich"}},
        ],
        "finish_reason": "tool_call",
    }
]
USAGE = {names.GEN_AI_USAGE_INPUT_TOKENS: 40, names.GEN_AI_USAGE_OUTPUT_TOKENS: 21}
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
KEY = "sk-testKey0123456789abcdef"


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    urllib3_transport.install()
    botocore_transport.install()
    yield
    while _open:
        _open.pop().close()
    assert botocore_transport.status() == "active"
    botocore_transport.uninstall()
    urllib3_transport.uninstall()


def answer(api: str, **request: Any) -> Scripted:
    """A response of an API, made of messages; streams one frame a chunk."""
    provider = by_name(api)
    assert provider is not None
    kind, body = provider.render(SAID, request={"model": "m", **request}, response_id="id_1", model="m-1", usage=USAGE)
    if kind == _eventstream.CONTENT_TYPE:
        parts = []
        while body:
            size = int.from_bytes(body[:4], "big")
            parts.append(body[:size])
            body = body[size:]
    else:
        parts = [body] if request.get("stream") is not True else body.splitlines(keepends=True)
    return Scripted(headers={"content-type": kind}, parts=parts, chunked=len(parts) > 1)


SIGNED = {names.WIRE_REQUEST_HEADERS}
"""AWS signs each request with the time, and gives it an id."""


# ---- Bedrock ------------------------------------------------------------------------------------------------------


_open: list[Any] = []
"""Clients and streams to close after a test."""


def bedrock(server: ModelServer, **config: Any) -> Any:
    config = {"retries": {"total_max_attempts": 1}, **config}
    made = boto3.client(
        "bedrock-runtime",
        region_name="eu-test-1",
        endpoint_url=server.url,
        aws_access_key_id="AKIDEXAMPLE0000001",
        aws_secret_access_key=SECRET,
        config=botocore.config.Config(**config),
    )
    _open.append(made)
    return made


def plain(made: dict[str, Any]) -> Any:
    made["ResponseMetadata"].pop("HTTPHeaders")
    return made


BEDROCK_ASK: dict[str, Any] = {"modelId": "us.acme.m-1:0", "messages": [{"role": "user", "content": [{"text": "Zürich?"}]}]}


def converse(server: ModelServer) -> Any:
    return plain(bedrock(server).converse(**BEDROCK_ASK))


def converse_stream(server: ModelServer) -> Any:
    return list(bedrock(server).converse_stream(**BEDROCK_ASK)["stream"])


@pytest.mark.parametrize(("agent", "stream"), [(converse, False), (converse_stream, True)])
def test_bedrock(server: ModelServer, agent: Callable[[ModelServer], Any], stream: bool) -> None:
    value, recorded = experiment(server, partial(agent, server), answer("aws.bedrock.converse", stream=stream), unlike=SIGNED)
    if stream:
        assert len(value) == 8
        assert value[-1]["metadata"]["usage"]["inputTokens"] == 40
    else:
        assert value["output"]["message"]["content"][0] == {"text": "One moment…"}
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome) == ("model_call", "ok")
    assert step[names.GEN_AI_REQUEST_MODEL] == "us.acme.m-1:0"
    assert step[names.GEN_AI_PROVIDER_NAME] == "aws.bedrock"
    assert json.loads(step[names.GEN_AI_OUTPUT_MESSAGES]) == SAID
    assert step[names.WIRE_RESPONSE_COMPLETE] is True
    told = json.dumps(step.attributes, default=str)
    assert "Signature=" not in told or "Signature=[" in told
    assert SECRET not in told


@pytest.mark.parametrize("agent", [converse, converse_stream])
def test_bedrock_is_fed_from_messages_alone(server: ModelServer, agent: Callable[[ModelServer], Any]) -> None:
    stream = agent is converse_stream
    server.script(answer("aws.bedrock.converse", stream=stream))
    value, recorded = record(partial(agent, server))
    meaning = json.dumps({"messages": SAID, "model": None, "response_id": None, "usage": USAGE})
    again, _ = replay(partial(agent, server), Tape(recorded, change=lambda a: replace(a, exchange=None, result=meaning)))
    if stream:
        assert again == value
    else:
        assert again["output"] == value["output"]
        assert again["usage"] == value["usage"]


def test_bedrock_retries_and_refusals(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.01)

    def agent() -> Any:
        client = bedrock(server, retries={"total_max_attempts": 2, "mode": "standard"})
        try:
            return plain(client.converse(**BEDROCK_ASK))
        except ClientError as error:
            return error.response["Error"]

    busy = as_json({"message": "Too many requests"}, status=429, x_amzn_errortype="ThrottlingException")
    _, recorded = experiment(server, agent, busy, answer("aws.bedrock.converse"), unlike=SIGNED)
    assert [(s.outcome, s[names.STEP_ATTEMPT]) for s in recorded.steps] == [("error", 1), ("ok", 2)]
    bad = as_json({"message": "The provided model identifier is invalid."}, status=400, x_amzn_errortype="ValidationException")
    value, recorded = experiment(server, agent, bad, unlike=SIGNED)
    assert value == {"Message": "The provided model identifier is invalid.", "Code": "ValidationException"}
    assert recorded.steps[0].ended is not None
    assert recorded.steps[0].ended.message == value["Message"]


def test_a_bedrock_stream_that_fails(server: ModelServer) -> None:
    def agent() -> Any:
        got: list[Any] = []
        stream = bedrock(server).converse_stream(**BEDROCK_ASK)["stream"]
        _open.append(stream)
        try:
            got.extend(stream)
        except EventStreamError as error:
            return got, str(error)

    failing = _eventstream.encode({":exception-type": "throttlingException", ":message-type": "exception"}, b'{"message": "wait"}')
    whole = answer("aws.bedrock.converse", stream=True)
    (_, told), recorded = experiment(server, agent, replace(whole, parts=[*whole.parts[:3], failing]), unlike=SIGNED)
    assert "throttlingException" in told
    assert (recorded.steps[0].outcome, recorded.steps[0][names.ERROR_TYPE]) == ("error", "throttlingException")


def test_a_bedrock_stream_left_early_and_a_call_that_is_late(server: ModelServer) -> None:
    def leave() -> Any:
        stream = bedrock(server).converse_stream(**BEDROCK_ASK)["stream"]
        first = next(iter(stream))
        stream.close()
        return first

    rest = threading.Event()
    whole = answer("aws.bedrock.converse", stream=True)
    _, recorded = experiment(server, leave, replace(whole, parts=[whole.parts[0], rest, *whole.parts[1:]]), unlike=SIGNED)
    assert [s.outcome for s in recorded.steps] == ["abandoned"]

    def late() -> Any:
        with pytest.raises(ReadTimeoutError) as caught:
            bedrock(server, read_timeout=0.05).converse(**BEDROCK_ASK)
        return str(caught.value)

    never = threading.Event()
    _, recorded = experiment(server, late, Scripted(before=never), unlike=SIGNED)
    assert [s.outcome for s in recorded.steps] == ["timeout"]


# ---- Ollama -------------------------------------------------------------------------------------------------------


def ollama_chat(server: ModelServer, *, stream: bool) -> Any:
    with ollama.Client(host=server.url) as client:
        made = client.chat(model="m", messages=ASK, stream=stream)
        return [chunk.model_dump() for chunk in made] if stream else made.model_dump()


def ollama_chat_async(server: ModelServer, *, stream: bool) -> Any:
    async def agent() -> Any:
        async with ollama.AsyncClient(host=server.url) as client:
            made: Any = await client.chat(model="m", messages=ASK, stream=stream)
            return [chunk.model_dump() async for chunk in made] if stream else made.model_dump()

    return asyncio.run(agent())


def ollama_generate(server: ModelServer, *, stream: bool) -> Any:
    with ollama.Client(host=server.url) as client:
        made = client.generate(model="m", prompt="Capital of France?", stream=stream)
        return [chunk.model_dump() for chunk in made] if stream else made.model_dump()


@pytest.mark.parametrize("agent", [ollama_chat, ollama_chat_async, ollama_generate])
@pytest.mark.parametrize("stream", [False, True])
def test_ollama(server: ModelServer, agent: Any, stream: bool) -> None:
    asked: dict[str, Any] = {"prompt": "x"} if agent is ollama_generate else {"messages": []}
    value, recorded = experiment(server, partial(agent, server, stream=stream), answer("ollama", stream=stream, **asked))
    assert (value[-1] if stream else value)["done"] is True
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome, step[names.GEN_AI_PROVIDER_NAME]) == ("model_call", "ok", "ollama")
    assert step[names.GEN_AI_REQUEST_STREAM] is stream
    assert "One moment…" in step[names.GEN_AI_OUTPUT_MESSAGES]


# ---- Azure OpenAI -------------------------------------------------------------------------------------------------


def azure(server: ModelServer, **options: Any) -> openai.AzureOpenAI:
    return openai.AzureOpenAI(azure_endpoint=server.url, api_key=KEY, api_version="2026-01-01", max_retries=0, **options)


def azure_chat(server: ModelServer, *, stream: bool) -> Any:
    with azure(server) as client:
        made: Any = client.chat.completions.create(model="my-deployment", messages=ASK, stream=stream)
        return [chunk.model_dump_json() for chunk in made] if stream else made.model_dump_json()


def azure_chat_async(server: ModelServer, *, stream: bool) -> Any:
    async def agent() -> Any:
        made = openai.AsyncAzureOpenAI(azure_endpoint=server.url, api_key=KEY, api_version="2026-01-01")
        async with made as client:
            answered: Any = await client.chat.completions.create(model="my-deployment", messages=ASK, stream=stream)
            return [chunk.model_dump_json() async for chunk in answered] if stream else answered.model_dump_json()

    return awaited(agent)()


@pytest.mark.parametrize("agent", [azure_chat, azure_chat_async])
@pytest.mark.parametrize("stream", [False, True])
def test_azure_openai(server: ModelServer, agent: Any, stream: bool) -> None:
    script = as_events(chat_chunks("Par", "is."), done=True) if stream else as_json(chat())
    _, recorded = experiment(server, partial(agent, server, stream=stream), script)
    (step,) = recorded.steps
    assert server.requests[0].path == "/openai/deployments/my-deployment/chat/completions?api-version=2026-01-01"
    assert (step[names.STEP_KIND], step[names.STEP_NAME], step.outcome) == ("model_call", "my-deployment", "ok")
    assert KEY not in json.dumps(step.attributes, default=str)


# ---- embeddings ---------------------------------------------------------------------------------------------------


def openai_embeddings(server: ModelServer) -> Any:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        return client.embeddings.create(model="m", input=["a", "b"]).model_dump()


def azure_embeddings(server: ModelServer) -> Any:
    with azure(server) as client:
        return client.embeddings.create(model="m", input="a").model_dump()


def ollama_embeddings(server: ModelServer) -> Any:
    with ollama.Client(host=server.url) as client:
        return client.embed(model="m", input=["a", "b"]).model_dump()


def titan_embeddings(server: ModelServer) -> Any:
    made = bedrock(server).invoke_model(modelId="m", body=json.dumps({"inputText": "a"}))
    return json.loads(made["body"].read())


VECTORS = [{"parts": [{"type": "generic", "generic_type": "embeddings", "value": [[0.5, -1.0], [0.25, 2.0]]}]}]


@pytest.mark.parametrize(
    ("agent", "asked", "vendor"),
    [
        (openai_embeddings, {"encoding_format": "base64"}, "openai"),
        (azure_embeddings, {"encoding_format": "base64"}, "openai"),
        (ollama_embeddings, {"api": "ollama"}, "ollama"),
        (titan_embeddings, {"api": "titan"}, "aws.bedrock"),
    ],
)
def test_embeddings(server: ModelServer, agent: Any, asked: dict[str, Any], vendor: str) -> None:
    provider = by_name("embeddings")
    assert provider is not None
    kind, body = provider.render(VECTORS, request={"model": "m", **asked}, response_id=None, model=None, usage={"input_tokens": 3})
    value, recorded = experiment(
        server,
        partial(agent, server),
        Scripted(headers={"content-type": kind}, parts=[body]),
        unlike=SIGNED if vendor == "aws.bedrock" else (),
    )
    assert "[0.5, -1.0]" in json.dumps(value)
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome, step[names.STEP_NAME]) == ("retrieval", "ok", "m")
    assert step.started.name == "embeddings m"
    assert step[names.GEN_AI_PROVIDER_NAME] == vendor
    assert step[names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT] == 2
    assert step[names.GEN_AI_USAGE_INPUT_TOKENS] == 3


# ---- Claude, hosted by others -------------------------------------------------------------------------------------


def invoke(server: ModelServer, *, stream: bool) -> Any:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": ASK})
    if not stream:
        return json.loads(bedrock(server).invoke_model(modelId="m", body=body)["body"].read())
    made = bedrock(server).invoke_model_with_response_stream(modelId="m", body=body)
    return [json.loads(event["chunk"]["bytes"]) for event in made["body"]]


def claude_on_bedrock(server: ModelServer, *, stream: bool) -> Any:
    options = {"aws_access_key": "AKIDEXAMPLE0000001", "aws_secret_key": SECRET, "aws_region": "eu-test-1"}
    with anthropic.AnthropicBedrock(base_url=server.url, max_retries=0, **options) as client:  # type: ignore[arg-type]
        if not stream:
            return client.messages.create(model="m", max_tokens=9, messages=ASK).model_dump_json()
        return [event.model_dump_json() for event in client.messages.create(model="m", max_tokens=9, messages=ASK, stream=True)]


@pytest.mark.parametrize("agent", [invoke, claude_on_bedrock])
@pytest.mark.parametrize("stream", [False, True])
def test_claude_on_bedrock(server: ModelServer, agent: Any, stream: bool) -> None:
    script = answer("anthropic.messages", stream=stream, frames="aws")
    value, recorded = experiment(server, partial(agent, server, stream=stream), script, unlike=SIGNED)
    assert "weather" in json.dumps(value)
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step[names.STEP_NAME], step.outcome) == ("model_call", "m", "ok")
    assert json.loads(step[names.GEN_AI_OUTPUT_MESSAGES]) == SAID
    assert SECRET not in json.dumps(step.attributes, default=str)
