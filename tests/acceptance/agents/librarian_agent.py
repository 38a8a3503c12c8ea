"""An agent as people have them: a prompt from a server, a token that has to be refreshed, a vector store, a log file, checkpoints.

``librarian_agent.py MODEL_URL SERVICE_URL``, run in a folder where it may write ``librarian.log`` and ``checkpoints.sqlite``.
"""

import json
import logging
import sqlite3
import sys
from typing import Any

import httpx
from openai import OpenAI

from spanreplay.instrumentation import agent_run


class Librarian:
    """Answers one question from a vector store."""

    def __init__(self, model_url: str, service_url: str) -> None:
        self._model: Any = OpenAI(base_url=f"{model_url}/v1", api_key="sk-test", max_retries=0)
        self._services = httpx.Client(base_url=service_url)
        self._log = logging.getLogger("librarian")
        self._log.setLevel(logging.INFO)
        self._log.addHandler(logging.FileHandler("librarian.log"))
        self._state = sqlite3.connect("checkpoints.sqlite")
        self._state.execute("create table if not exists checkpoint (turn integer, messages text)")
        self._token = "expired-token-0001"
        self._messages: list[dict[str, Any]] = []

    def ask(self, question: str) -> str:
        """Ask the model until it answers."""
        prompt = self._services.get("/prompts/librarian", params={"version": "latest"}).raise_for_status().json()
        self._say({"role": "system", "content": prompt["template"].format(tone="friendly")}, {"role": "user", "content": question})
        while True:
            message = self._model.chat.completions.create(model="gpt-4o-mini", messages=self._messages).choices[0].message
            self._say(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return str(message.content)
            for call in message.tool_calls:
                found = self._search(**json.loads(call.function.arguments))
                self._say({"role": "tool", "tool_call_id": call.id, "content": json.dumps(found)})

    def _say(self, *messages: dict[str, Any]) -> None:
        self._messages += messages
        self._log.info("turn %d", len(self._messages))
        self._state.execute("insert into checkpoint values (?, ?)", (len(self._messages), json.dumps(self._messages)))
        self._state.commit()

    def _search(self, text: str) -> Any:
        response = self._query(text)
        if response.status_code == 401:
            form = {"grant_type": "refresh_token", "refresh_token": "refresh-me-1", "client_secret": "very-secret-client-word-1"}
            self._token = self._services.post("/oauth/token", data=form).raise_for_status().json()["access_token"]
            response = self._query(text)
        return response.raise_for_status().json()["matches"]

    def _query(self, text: str) -> httpx.Response:
        vector = [len(word) / 10 for word in text.split()]
        return self._services.post(
            "/collections/books/query", json={"vector": vector, "top_k": 2}, headers={"authorization": f"Bearer {self._token}"}
        )

    def close(self) -> None:
        """Close what is open."""
        self._model.close()
        self._services.close()
        self._state.close()


def main() -> None:
    """Answer."""
    librarian = Librarian(*sys.argv[1:3])
    with agent_run("librarian", input="Which book is about tides?") as this:
        this.output = librarian.ask("Which book is about tides?")
    print(json.dumps({"answer": this.output, "messages": librarian._messages}))
    librarian.close()


if __name__ == "__main__":
    main()
