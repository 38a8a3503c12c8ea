"""What Jaeger's GenAI view reads (its UI 2.20: ``utils/genai/detect.ts``, ``GenAITab/genAiData.ts``) is on the spans that people look at.

The pages themselves are not in the Jaeger that is built for these tests; its rules are written down here.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from fixtures.runs.spans import own
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.outgoing import view_of
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, SpanRecord
from support.command_line import CommandLine

LLM: Final = {"chat", "text_completion", "generate_content", "embeddings"}
AGENT: Final = {"invoke_agent", "create_agent", "invoke_workflow"}
PARTS: Final[Mapping[str, set[str]]] = {
    "text": {"content"},
    "reasoning": {"content"},
    "compaction": {"content"},
    "tool_call": {"name", "arguments"},
    "server_tool_call": {"name"},
    "tool_call_response": {"response"},
    "blob": set(),
    "file": set(),
    "uri": set(),
}
"""Types of parts that it draws, and what it draws of each."""


def classified(span: SpanRecord) -> str | None:
    """What the view takes a span for."""
    operation = span.attributes.get("gen_ai.operation.name")
    if operation in LLM:
        return "model"
    if operation == "execute_tool":
        return "tool"
    if operation in AGENT:
        return "agent"
    if operation == "retrieval":
        return "retrieval"
    if "gen_ai.tool.name" in span.attributes:
        return "tool"
    return "unknown" if any(name.startswith("gen_ai.") and name != "gen_ai.tool.call.id" for name in span.attributes) else None


def parts(span: SpanRecord, name: str) -> Iterator[dict[str, Any]]:
    for message in json.loads(str(span.attributes[name])):
        assert message["role"] in {"system", "user", "assistant", "tool"}
        yield from message["parts"]


@pytest.fixture
def spans(spanreplay: CommandLine) -> list[SpanRecord]:
    """The demo's run as ``send`` lets people look at it."""
    assert spanreplay("demo", "-q").code == 0
    assert spanreplay("export", "last", "-o", "run.json").code == 0
    records = [record for record in open_source("run.json").records if isinstance(record, SpanRecord)]
    return [view_of(record) for record in records if a.RUN_COMMAND not in record.attributes]


def test_every_step_is_what_it_is(spans: list[SpanRecord]) -> None:
    assert sorted(str(classified(span)) for span in spans) == ["agent"] + 4 * ["model"] + 5 * ["tool"]
    assert {span.name for span in spans if classified(span) == "model"} == {"chat scripted-1"}
    assert {"invoke_agent trip-planner", "execute_tool book_hotel"} <= {span.name for span in spans}
    (run,) = {str(span.attributes[a.RUN_ID]) for span in spans}
    assert run, "to come back from what is looked at"
    (failed,) = (span for span in spans if span.status == STATUS_ERROR)
    assert failed.name == "execute_tool book_hotel"
    assert failed.attributes[a.ERROR_TYPE] == "LookupError"
    assert any(event.name == "exception" for event in failed.events)


def test_conversations_are_drawn(spans: list[SpanRecord]) -> None:
    drawn = set()
    for span in spans:
        if classified(span) != "model":
            continue
        for name in (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES):
            for part in parts(span, name):
                assert PARTS[part["type"]] <= part.keys()
                drawn.add(part["type"])
        for name in ("gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"):
            assert isinstance(span.attributes[name], str)
        for name in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
            assert isinstance(span.attributes[name], int)
    assert drawn == {"text", "tool_call", "tool_call_response"}


def test_tools_and_agents_are_drawn(spans: list[SpanRecord]) -> None:
    for span in spans:
        assert span.attributes["gen_ai.agent.name"] == "trip-planner"
        if span.attributes.get("gen_ai.operation.name") == "execute_tool":
            assert isinstance(span.attributes["gen_ai.tool.call.id"], str)
            assert isinstance(json.loads(str(span.attributes["gen_ai.tool.call.arguments"])), dict)
            if span.status != STATUS_ERROR:
                json.loads(str(span.attributes["gen_ai.tool.call.result"]))
    (root,) = (span for span in spans if classified(span) == "agent")
    assert root.attributes["gen_ai.agent.version"] == "1"
    assert root.attributes["gen_ai.conversation.id"] == "demo"


def test_tokens_have_the_names_that_it_knows() -> None:
    usage = {"cache_read.input_tokens": 1, "cache_write.input_tokens": 2, "reasoning.output_tokens": 3}
    span = view_of(own(1, kind="model_call", attributes={f"gen_ai.usage.{name}": count for name, count in usage.items()}))
    known = ("cache_read.input_tokens", "cache_creation.input_tokens", "reasoning.output_tokens")
    assert [span.attributes[f"gen_ai.usage.{name}"] for name in known] == [1, 2, 3]
