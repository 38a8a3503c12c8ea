"""Every recording of the three model APIs: its requests sent once more by the SDKs, its tools called, recorded and replayed here.

One test for many recordings, so that the SDKs are imported once.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest
from anthropic import Anthropic
from openai import OpenAI

from acceptance.commands import MATERIAL, NO_MATERIAL, runs_of
from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reexecution.engine import Replayer
from support.cassette_server import CassetteServer, Recorded, read_cassette

_APIS: Final = {"openai.chat", "openai.responses", "anthropic"}


def _files() -> list[tuple[str, Path]]:
    truth = json.loads((MATERIAL.parent / "ground_truth_cassettes.json").read_text(encoding="utf-8"))
    return [(each["id"], MATERIAL.parent / each["file"]) for each in truth if set(each["api"].split("+")) <= _APIS]


def _calls(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, arguments) of the tool calls in what the SDKs gave."""
    if isinstance(value, list):
        for each in value:
            yield from _calls(each)
    elif isinstance(value, dict):
        if value.get("type") in ("function_call", "tool_use") and "name" in value:
            yield value["name"], value.get("arguments", value.get("input"))
        elif isinstance(value.get("function"), dict) and value["function"].get("name"):
            yield value["function"]["name"], value["function"].get("arguments")
        else:
            for each in value.values():
                yield from _calls(each)


class _Repeater:
    """Sends recorded requests one after the other, and calls the tools that the answers ask for."""

    def __init__(self, name: str, url: str, given: list[Recorded]) -> None:
        self._name = name
        self._url = url
        self.requests = len(given)
        self._given = given
        self.ran: list[str] = []

    @cached_property
    def _openai(self) -> Any:
        return OpenAI(base_url=f"{self._url}/v1", api_key="sk-test", max_retries=0)

    @cached_property
    def _anthropic(self) -> Any:
        return Anthropic(base_url=self._url, api_key="sk-test", max_retries=0)

    def close(self) -> None:
        """Close the connections."""
        for name in ("_openai", "_anthropic"):
            if name in vars(self):
                vars(self)[name].close()

    def run(self) -> str:
        """Returns everything the SDKs gave, as JSON."""
        said: list[Any] = []
        with agent_run(self._name) as this:
            for recorded in self._given:
                body = recorded.request
                try:
                    if recorded.path.endswith("/messages"):
                        made = self._ask(self._anthropic.messages, body, "messages", "max_tokens")
                    elif recorded.path.endswith("/responses"):
                        made = self._ask(self._openai.responses, body, "input")
                    else:
                        made = self._ask(self._openai.chat.completions, body, "messages")
                except Exception as error:
                    made = f"{type(error).__name__}: {error}"
                said.append(made)
                said += [self._use(name, arguments) for name, arguments in _calls(made)]
            this.output = said
        return json.dumps(said)

    def _ask(self, api: Any, body: dict[str, Any], *needed: str) -> Any:
        given = {name: body[name] for name in (*needed, "model")}
        rest = {name: value for name, value in body.items() if name not in given and name != "stream"}
        made = api.create(stream=bool(body.get("stream")), extra_body=rest, **given)
        return [part.model_dump(mode="json") for part in made] if body.get("stream") else made.model_dump(mode="json")

    def _use(self, name: str, arguments: Any) -> str:
        @tool(name=name, effect="read")
        def use(arguments: Any) -> str:
            self.ran.append(name)
            return f"{len(self.ran)}. result of {name}"

        return use(arguments)


@pytest.mark.skipif(not MATERIAL.is_dir(), reason=NO_MATERIAL)
def test_every_recording_replays_equal(tmp_path: Path) -> None:
    """Whatever is in it, what the SDKs make of a replayed response is what they made of the recorded one."""
    repeaters: dict[str, tuple[_Repeater, str]] = {}
    recording.start(store=tmp_path / "store")
    try:
        with CassetteServer() as server:
            for name, file in _files():
                given = read_cassette(file)
                server.serve(name, given)
                repeater = _Repeater(name, server.url(name), given)
                repeaters[name] = (repeater, repeater.run())
                assert server.unserved(name) == 0, name
    finally:
        recording.stop()
    assert len(repeaters) >= 20
    runs = {run.agent_name: run for run in runs_of(tmp_path / "store")}
    for name, (repeater, said) in repeaters.items():
        run, ran = runs[name], list(repeater.ran)
        assert {step.grade for step in run.steps} <= {"exact", "semantic"}, name

        result = Replayer(run).replay(repeater.run)

        assert result.error is None, f"{name}: {result.error!r}"
        assert result.equal, f"{name}: {[d.summary() for d in result.differences]} {result.verdict.refusals}"
        assert result.value == said, name
        assert result.verdict.matched == len(run.steps) == repeater.requests + len(ran), name
        assert repeater.ran == ran, f"{name}: a tool body ran"
        repeater.close()
