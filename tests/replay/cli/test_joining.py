"""Traces that were broken on the way become one run, where the user asks for it."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.cli.joining import NAMES
from spanreplay.replay.rebuilding.joins import JOINS
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine

ONE, TWO = "aa" * 16, "bb" * 16


def asking(**more: Any) -> SpanRecord:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "call_7", "name": "search", "arguments": {}}]}])
    return chat(2, 1, trace=ONE, start=10, attributes={a.GEN_AI_OUTPUT_MESSAGES: said}, **more)


def broken() -> list[SpanRecord]:
    session = {a.GEN_AI_CONVERSATION_ID: "conv-1"}
    return [
        agent(1, trace=ONE, start=0, end=90, attributes=session),
        asking(),
        tool(3, trace=TWO, start=30, call="call_7", attributes={**tool(3).attributes, **session, a.GEN_AI_TOOL_CALL_ID: "call_7"}),
    ]


def test_the_names_are_those_of_the_joins() -> None:
    assert NAMES == JOINS


@pytest.mark.parametrize("by", NAMES)
def test_nothing_is_joined_unless_it_is_asked_for(spanreplay: CommandLine, by: str) -> None:
    path = spanreplay.file("t.json", *broken())
    assert len(spanreplay("replay", path, "--json").json["runs"]) == 2
    (run,) = spanreplay("replay", path, "--json", "--join", by).json["runs"]
    assert sorted(run["trace_ids"]) == [ONE, TWO]
    assert [step["kind"] for step in run["steps"]] == ["model_call", "tool_call"]
    assert run["steps"][1]["requested_by"] == 1


@pytest.mark.parametrize("by", NAMES)
def test_the_traces_of_a_store_too(spanreplay: CommandLine, by: str) -> None:
    assert spanreplay("import", spanreplay.file("t.json", *broken())).code == 0
    assert len(spanreplay("runs", "--json").json["runs"]) == 2
    (run,) = spanreplay("show", ONE, "--json", "--join", by).json["runs"]
    assert sorted(run["trace_ids"]) == [ONE, TWO]
