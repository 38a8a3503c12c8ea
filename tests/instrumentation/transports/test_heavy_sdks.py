"""SDKs too large for the development environment: Mistral's and Cohere's. ``SPANREPLAY_FOREIGN=1`` runs this file in one of theirs."""

import asyncio
import importlib.util
import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation.provider import by_name
from spanreplay.semconv import attributes as names
from support.environments import environment
from support.model_server import ModelServer, Scripted
from support.sdk_agents import ASK, experiment

HERE = Path(__file__)
THERE = all(importlib.util.find_spec(name) is not None for name in ("mistralai", "cohere"))
needs_them = pytest.mark.skipif(
    not THERE, reason="mistralai and cohere are not installed here; SPANREPLAY_FOREIGN=1 runs this where they are"
)
SAID = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "One moment…"},
            {"type": "tool_call", "id": "call00001", "name": "weather", "arguments": {"city": "Zürich"}},
        ],
        "finish_reason": "tool_call",
    }
]
USAGE = {names.GEN_AI_USAGE_INPUT_TOKENS: 40, names.GEN_AI_USAGE_OUTPUT_TOKENS: 21}


@pytest.mark.skipif(THERE or os.environ.get("SPANREPLAY_FOREIGN") != "1", reason="SPANREPLAY_FOREIGN=1 runs it: it makes an environment")
@pytest.mark.timeout(1200)
def test_in_an_environment_of_theirs() -> None:
    made = environment("heavy-sdks", HERE.parent / "heavy" / "requirements.txt")
    command = [str(made / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception", str(HERE)]
    done = subprocess.run(command, cwd=HERE.parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def answer(api: str, *, stream: bool) -> Scripted:
    provider = by_name(api)
    assert provider is not None
    asked = {"model": "m", "stream": stream, "stream_options": {"include_usage": True}}
    kind, body = provider.render(SAID, request=asked, response_id="id_1", model="m-1", usage=USAGE)
    return Scripted(headers={"content-type": kind}, parts=body.splitlines(keepends=True) if stream else [body], chunked=stream)


def mistral(server: ModelServer, *, stream: bool) -> Any:
    from mistralai.client import Mistral  # type: ignore[import-not-found,unused-ignore]

    with Mistral(api_key="a-key-0123456789", server_url=server.url) as client:
        if not stream:
            return client.chat.complete(model="m", messages=ASK).model_dump_json()
        with client.chat.stream(model="m", messages=ASK) as events:
            return [event.data.model_dump_json() for event in events]


def mistral_async(server: ModelServer, *, stream: bool) -> Any:
    from mistralai.client import Mistral

    async def agent() -> Any:
        async with Mistral(api_key="a-key-0123456789", server_url=server.url) as client:
            if not stream:
                return (await client.chat.complete_async(model="m", messages=ASK)).model_dump_json()
            async with await client.chat.stream_async(model="m", messages=ASK) as events:
                return [event.data.model_dump_json() async for event in events]

    return asyncio.run(agent())


def cohere(server: ModelServer, *, stream: bool) -> Any:
    from cohere import ClientV2  # type: ignore[import-not-found,unused-ignore]

    client = ClientV2(api_key="a-key-0123456789", base_url=server.url)
    if not stream:
        return client.chat(model="m", messages=ASK).model_dump_json()
    return [event.model_dump_json() for event in client.chat_stream(model="m", messages=ASK)]


def cohere_async(server: ModelServer, *, stream: bool) -> Any:
    from cohere import AsyncClientV2

    async def agent() -> Any:
        async with AsyncClientV2(api_key="a-key-0123456789", base_url=server.url) as client:
            if not stream:
                return (await client.chat(model="m", messages=ASK)).model_dump_json()
            return [event.model_dump_json() async for event in client.chat_stream(model="m", messages=ASK)]

    return asyncio.run(agent())


@needs_them
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("agent", "api"), [(mistral, "openai.chat"), (mistral_async, "openai.chat"), (cohere, "cohere.chat"), (cohere_async, "cohere.chat")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_recorded_and_replayed(server: ModelServer, agent: Any, api: str, stream: bool) -> None:
    value, recorded = experiment(server, partial(agent, server, stream=stream), answer(api, stream=stream))
    told = "".join(value)
    assert "One moment" in told
    assert "call00001" in told
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step.outcome, step[names.WIRE_PROVIDER]) == ("model_call", "ok", api)
    assert json.loads(step[names.GEN_AI_OUTPUT_MESSAGES]) == SAID
    assert "a-key-0123456789" not in json.dumps(step.attributes, default=str)


@needs_them
@pytest.mark.filterwarnings("default")
def test_embeddings_of_cohere(server: ModelServer) -> None:
    from cohere import ClientV2

    provider = by_name("embeddings")
    assert provider is not None
    said = [{"parts": [{"type": "generic", "generic_type": "embeddings", "value": [[0.5, -1.0]]}]}]
    kind, body = provider.render(said, request={"api": "cohere", "texts": ["a"]}, response_id="e", model=None, usage={"input_tokens": 3})

    def agent() -> Any:
        client = ClientV2(api_key="a-key-0123456789", base_url=server.url)
        made = client.embed(model="m", texts=["a"], input_type="search_query", embedding_types=["float"])
        return made.embeddings.float_

    value, recorded = experiment(server, agent, Scripted(headers={"content-type": kind}, parts=[body]))
    assert value == [[0.5, -1.0]]
    (step,) = recorded.steps
    assert (step[names.STEP_KIND], step[names.GEN_AI_PROVIDER_NAME]) == ("retrieval", "cohere")
