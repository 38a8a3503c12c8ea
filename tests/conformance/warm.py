"""What the SDKs do once in a process, done before the processes of the scenarios are forked. No socket is opened and no thread started."""

import json
from typing import Any

import anthropic
import httpx2
import openai

from conformance import wire
from conformance.model import Asked, Reply
from conformance.world import CLAUDE, MODEL


def _answer(request: httpx2.Request) -> httpx2.Response:
    asked = Asked(path=request.url.path, body=json.loads(request.content), number=0, fresh="0" * 8)
    return httpx2.Response(200, json=wire.body(asked, Reply(text="warm")))


def up() -> None:
    """Build what the SDKs build lazily."""
    messages: Any = [{"role": "user", "content": "Are you warm?"}]
    with httpx2.Client(transport=httpx2.MockTransport(_answer)) as client:
        warm = openai.OpenAI(api_key="a-key", base_url="http://model.test/v1", http_client=client)
        warm.chat.completions.create(model=MODEL, messages=messages)
        warm.responses.create(model=MODEL, input="Are you warm?")
        told = anthropic.Anthropic(api_key="a-key", base_url="http://model.test", http_client=client)
        told.messages.create(model=CLAUDE, max_tokens=50, messages=messages)
    openai.AsyncOpenAI(api_key="a-key")
    openai.OpenAI(api_key="a-key").close()
