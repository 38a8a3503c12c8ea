"""An agent that lets its secrets go everywhere: headers, URLs, bodies, arguments, results, exceptions.

``careless_agent.py MODEL_URL SERVICE_URL SECRETS``: the secrets are a JSON file, one also comes in the environment.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from spanreplay.instrumentation import agent_run, record_decision, tool

SECRETS: dict[str, str] = json.loads(Path(sys.argv[3]).read_text()) if len(sys.argv) > 3 else {}


@tool(effect="read")
def connect(host: str, api_key: str, options: dict[str, str]) -> dict[str, str]:
    """Secrets as arguments, and in the result."""
    return {"session_token": SECRETS["session"], "note": f"env says {os.environ['BILLING_API_TOKEN']}", "host": host}


@tool(effect="read")
def fail(how: str) -> None:
    """Secrets in exceptions."""
    texts = {
        "known": f"401 for the key {SECRETS['openai']}",
        "header": f"request failed: {{'Authorization': 'Bearer {SECRETS['unseen']}'}}",
        "url": f"cannot reach https://reader:{SECRETS['userinfo']}@db.example/x?api_key={SECRETS['in_url']}",
    }
    try:
        raise KeyError(f"password={SECRETS['cause']!r}")
    except KeyError as cause:
        raise RuntimeError(texts[how]) from cause


def _tools(services: httpx.Client) -> list[str]:
    met: list[str] = []
    connect("db.example", api_key=SECRETS["argument"], options={"password": SECRETS["nested"]})
    for how in ("known", "header", "url"):
        try:
            fail(how)
        except RuntimeError as error:
            met.append(type(error).__name__)
    record_decision("connect", "allow", by="policy", arguments={"client_secret": SECRETS["decision"]})
    services.get("/data", params={"api_key": SECRETS["query"], "token": SECRETS["query_token"]}, headers={"x-api-key": SECRETS["header"]})
    tokens = services.post("/login", json={"user": "ana", "password": SECRETS["body"]}).json()
    services.post(
        "/form",
        data={"client_secret": SECRETS["form"], "text": "hello"},
        headers={"authorization": f"Bearer {tokens['access_token']}", "cookie": f"session={SECRETS['cookie']}"},
    )
    return met


def main() -> None:
    """Do it all, and die of an exception with a secret in it."""
    chat: Any = OpenAI(base_url=f"{sys.argv[1]}/v1", api_key=SECRETS["openai"], max_retries=0)
    with (
        httpx.Client(base_url=sys.argv[2]) as services,
        agent_run("careless", input={"password": SECRETS["run_input"]}, definition={"api_key": SECRETS["definition"]}) as run,
    ):
        question: Any = [{"role": "user", "content": f"my key is {SECRETS['prompt']}, is it good?"}]
        chat.chat.completions.create(model="gpt-4o-mini", messages=question)
        met = _tools(services)
        for _ in chat.chat.completions.create(model="gpt-4o-mini", messages=question, stream=True):
            pass
        try:
            chat.responses.create(model="gpt-5.5", input=question)
        except Exception as error:
            met.append(type(error).__name__)
        run.output = {"met": met, "secret": SECRETS["run_output"]}
        print(json.dumps({"met": met}))
        raise ConnectionError(f"the session of {SECRETS['openai']} is over; api_key={SECRETS['last']!r}")


if __name__ == "__main__":
    main()
