"""The models of the agents here."""

import os
from typing import Any

from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient


def client(api: str = "responses") -> Any:
    """A client of one of the two APIs."""
    kind = OpenAIChatClient if api == "responses" else OpenAIChatCompletionClient
    return kind(model="gpt-4o-mini", api_key="a-key", base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))
