"""google-genai is recorded and replayed over httpx, also where it would take aiohttp."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import _api_client, types

from spanreplay.boundary import boundary
from spanreplay.instrumentation.providers.gemini import PROVIDER
from spanreplay.instrumentation.transports import google_genai
from spanreplay.semconv import attributes as names
from support.http_tape import awaited
from support.model_server import ModelServer, Scripted
from support.sdk_agents import experiment

SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "Paris."}], "finish_reason": "stop"}]


def answer(*, stream: bool) -> Scripted:
    asked = {"model": "gemini-x", "stream": stream, "alt": "sse"}
    kind, body = PROVIDER.render(SAID, request=asked, response_id="r", model="gemini-x", usage={"input_tokens": 3})
    return Scripted(headers={"content-type": kind}, parts=[body])


@pytest.fixture(autouse=True)
def _aiohttp_is_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_api_client, "has_aiohttp", True)  # it is not: a call that took it would fail
    google_genai.install()
    yield
    google_genai.uninstall()


def client(server: ModelServer) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=server.url))


def plain(server: ModelServer) -> Any:
    with client(server) as made:
        return made.models.generate_content(model="gemini-x", contents="Capital of France?").text


async def plain_async(server: ModelServer) -> Any:
    async with client(server).aio as made:
        return (await made.models.generate_content(model="gemini-x", contents="Capital of France?")).text


async def streamed_async(server: ModelServer) -> Any:
    async with client(server).aio as made:
        chunks = await made.models.generate_content_stream(model="gemini-x", contents="Capital of France?")
        return [chunk.text async for chunk in chunks]


@pytest.mark.parametrize(("agent", "stream"), [(plain, False), (plain_async, False), (streamed_async, True)])
def test_recorded_and_replayed(server: ModelServer, agent: Any, stream: bool) -> None:
    run = awaited(lambda: agent(server)) if asyncio.iscoroutinefunction(agent) else lambda: agent(server)
    value, recorded = experiment(server, run, answer(stream=stream))
    assert value == (["Paris."] if stream else "Paris.")
    (step,) = recorded.steps
    assert (step["spanreplay.step.kind"], step[names.WIRE_PROVIDER], step[names.GEN_AI_REQUEST_MODEL]) == (
        "model_call",
        "gemini",
        "gemini-x",
    )
    assert json.loads(step[names.GEN_AI_OUTPUT_MESSAGES]) == SAID


def test_outside_a_session_and_when_taken_out_it_decides_itself() -> None:
    assert google_genai.status() == "active"
    made = _api_client.BaseApiClient.__new__(_api_client.BaseApiClient)
    made._http_options = types.HttpOptions()
    assert boundary.here() is None
    assert made._use_aiohttp()
    google_genai.uninstall()
    assert google_genai.status() == "off"
    assert not hasattr(_api_client.BaseApiClient._use_aiohttp, "__wrapped__")


def test_another_version_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    google_genai.uninstall()
    monkeypatch.setattr(_api_client.BaseApiClient, "_use_aiohttp", lambda self, why: True)
    google_genai.install()
    assert google_genai.status().startswith("unsupported: wanted BaseApiClient._use_aiohttp(self)")
    assert "cannot observe google_genai" in caplog.text
