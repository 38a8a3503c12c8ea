"""The models of the agents here."""

import os
from typing import Any

from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)  # it would ask api.openai.com; tracing.py has it on


def model(api: str = "responses") -> Model:
    """A model of one of the two APIs."""
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    # The SDK sends other fields to OpenAI's own address, which is what it takes in a replay without the variable.
    return kind(model="gpt-4o-mini", openai_client=AsyncOpenAI(base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")))


def transport(turns: list[dict[str, Any]]) -> Any:
    """An HTTP client that answers by itself, for what the scripted server cannot say."""
    try:
        import httpx2 as httpx
    except ImportError:  # releases before openai 3
        import httpx

    left = iter(turns)
    return httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=next(left))))
