"""An agent that is told very much, and told very much back: ``large_agent.py BASE_URL CHARACTERS``."""

import json
import sys
from hashlib import sha256
from typing import Any

from openai import OpenAI

from spanreplay.instrumentation import agent_run, tool

BASE_URL, SIZE = sys.argv[1], int(sys.argv[2])


@tool(effect="read")
def archive(characters: int) -> str:
    """Everything that was ever said."""
    return "é— 𝄞 " * (characters // 5)


with agent_run("archivist", input=SIZE) as run, OpenAI(base_url=f"{BASE_URL}/v1", api_key="sk-test", max_retries=0) as client:
    messages: list[Any] = [{"role": "user", "content": archive(SIZE)}]
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=messages).choices[0].message.content or ""
    run.output = sha256(reply.encode()).hexdigest()
    print(json.dumps({"characters": len(reply), "digest": run.output}))
