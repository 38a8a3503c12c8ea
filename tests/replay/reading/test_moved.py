"""Content that was moved off the spans into log records beside them is read as if it had stayed."""

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, chat, log, span, tool
from recordings.reading import HERE, recordings, runs_as_read, spans_file
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.reading.fields import jsonable
from spanreplay.replay.reading.spoken import CHOICE, NAMES
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import LogRecord, Record, SpanRecord, Value
from support.size import FULL

# ---- what moves it -----------------------------------------------------------------------------------------------------

WHOLE: Final = {
    "input.value": "user",
    "output.value": "assistant",
    "traceloop.entity.input": "user",
    "traceloop.entity.output": "assistant",
    "gen_ai.prompt": "user",
    "gen_ai.completion": "assistant",
}
"""Attributes that are moved, by the role that they get."""
NUMBERED: Final = re.compile(r"((?:llm\.(input|output)_messages|gen_ai\.(prompt|completion))\.(\d+)\.(?:message\.)?)content")


def moved_off(records: Iterable[Record]) -> Iterator[Record]:
    """The same records with the content of each span in a log record, as Amazon's distribution leaves them."""
    for record in records:
        if not isinstance(record, SpanRecord):
            yield record
            continue
        messages = [(role, record.attributes[name], role == "user") for name, role in WHOLE.items() if name in record.attributes]
        numbered = sorted(
            (match.group(2) or match.group(3), int(match.group(4)), match.group(1))
            for name in record.attributes
            if (match := NUMBERED.fullmatch(name)) is not None
        )
        for side, _, stem in numbered:
            role = str(record.attributes.get(f"{stem}role", "unknown"))
            asked = role in ("system", "user") or (role != "assistant" and side in ("input", "prompt"))
            messages.append((role, record.attributes[f"{stem}content"], asked))
        told = [event for event in record.events if event.name in NAMES]
        messages += [(event.name.split(".")[1], dict(event.attributes), event.name != CHOICE) for event in told]
        sides = {
            side: {
                "messages": [
                    {"role": "assistant" if role == "choice" else role, "content": content}
                    for role, content, asked in messages
                    if asked is asks
                ]
            }
            for side, asks in (("input", True), ("output", False))
        }
        names = {name for name in record.attributes if name in WHOLE or NUMBERED.fullmatch(name)}
        yield replace(
            record,
            attributes={name: value for name, value in record.attributes.items() if name not in names},
            events=tuple(event for event in record.events if event not in told),
        )
        if messages:
            yield LogRecord(
                trace_id=record.trace_id,
                span_id=record.span_id,
                time_ns=record.end_ns or record.start_ns,
                event_name=record.scope.name,
                body={side: held for side, held in sides.items() if held["messages"]},
            )


MOVED: Final = (
    "openinference/openai",
    "openinference/anthropic",
    "openinference/langchain",
    "openinference/openai-agents",
    "openinference/autogen",
    "openinference/smolagents",
    "openllmetry/openai",
    "openllmetry/openai-0.47",
    "openllmetry/langchain",
    "strands/events",
    "strands/swarm",
    "langsmith/otel",
    "gen_ai/openai",
)
"""One of each kind; all where there is time for it."""


@pytest.mark.parametrize("name", [str(folder.relative_to(HERE)) for folder in recordings()] if FULL else MOVED)
def test_a_recording_whose_content_was_moved_is_read_as_before(name: str) -> None:
    records = list(open_source(str(spans_file(HERE / name))).records)
    away = list(moved_off(records))
    assert runs_as_read(away) == runs_as_read(records)
    random.Random(len(away)).shuffle(away)
    assert [run["steps"] for run in runs_as_read(away)] == [run["steps"] for run in runs_as_read(records)]


# ---- what is moved, and where to ---------------------------------------------------------------------------------------


def body(asked: list[Any] | None = None, answered: list[Any] | None = None) -> dict[str, Any]:
    return {side: {"messages": held} for side, held in (("input", asked), ("output", answered)) if held is not None}


def only_step(*records: Record) -> Step:
    ((step,),) = [run.steps for run in build_runs(records)]
    return step


ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How warm?"}]
ANSWERED = [{"role": "assistant", "content": "4 °C"}]
AS_EVENTS = body(
    [{"role": "system", "content": {"content": "Be brief."}}, {"role": "user", "content": {"content": '[{"text": "How warm?"}]'}}],
    [{"role": "assistant", "content": {"message": '[{"text": "4 °C"}]', "finish_reason": "end_turn"}}],
)


def texts(view: Any) -> list[tuple[str, Any]]:
    return [(message["role"], part["content"]) for message in view["messages"] for part in message["parts"]]


@pytest.mark.parametrize("given", [body(ASKED, ANSWERED), AS_EVENTS, json.dumps(AS_EVENTS)], ids=["texts", "events", "as-text"])
def test_messages_of_models_and_agents(given: Any) -> None:
    around, inside = agent(1), chat(2, 1, content=False)
    (run,) = build_runs([around, inside, *(log(number, "any.scope", {"session.id": "s"}, body=given) for number in (1, 2))])
    everything: list[Run | Step] = [run, *run.steps]
    for told in everything:
        assert texts(told.input) == [("system", "Be brief."), ("user", "How warm?")]
        assert texts(told.output) == [("assistant", "4 °C")]
        assert told.grade == "semantic"


CALLED = [{"role": "tool", "content": {"role": "tool", "content": '{"city": "Oslo"}', "id": "call_9"}}]
GAVE = [{"role": "assistant", "content": {"message": '[{"text": "4 °C"}]', "id": "call_9"}}]


@pytest.mark.parametrize(
    ("asked", "answered", "result"),
    [(CALLED, GAVE, [{"text": "4 °C"}]), ([{"role": "user", "content": '{"city": "Oslo"}'}], ANSWERED, "4 °C")],
    ids=["events", "texts"],
)
def test_arguments_and_result_of_a_tool(asked: list[Any], answered: list[Any], result: Any) -> None:
    step = only_step(tool(1, args=None, result=None), log(1, "any.scope", {}, body=body(asked, answered)))
    assert (step.input, step.output) == ({"arguments": {"city": "Oslo"}}, {"result": result})
    assert step.call_id == ("call_9" if asked is CALLED else None)


def test_what_the_span_has_itself_stays() -> None:
    moved = log(1, "any.scope", {}, body=body(ASKED, ANSWERED))
    step = only_step(chat(1), moved)
    assert (texts(step.input), texts(step.output)) == ([("user", "hello")], [("assistant", "hi")])
    step = only_step(tool(1, call="call_1", args='{"a": 1}', result=None), log(1, "any.scope", {}, body=body(CALLED, GAVE)))
    assert (step.input, step.output, step.call_id) == ({"arguments": {"a": 1}}, {"result": [{"text": "4 °C"}]}, "call_1")


def test_of_several_records_the_latest_counts_in_whatever_order_they_come() -> None:
    logs = [
        log(1, "any.scope", {}, body=body([{"role": "user", "content": f"question {n}"}], ANSWERED if n == 1 else None), time=n)
        for n in (1, 2, 3)
    ]
    for order in (logs, logs[::-1]):
        step = only_step(chat(1, content=False), *order)
        assert (texts(step.input), texts(step.output)) == ([("user", "question 3")], [("assistant", "4 °C")])


def test_texts_that_fit_no_place_are_put_in_none() -> None:
    attributes: dict[str, Value] = {"openinference.span.kind": "LLM", "llm.model_name": "m", "input.mime_type": "text/plain"}
    attributes |= {f"llm.input_messages.{n}.message.role": "user" for n in range(3)}
    full = with_content(
        span(1, attributes=attributes), [log(1, "any.scope", {}, body=body([{"role": "user", "content": text} for text in "ab"]))]
    ).span
    assert full.attributes == {**attributes, "input.value": "a"}


CHAT = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}


@pytest.mark.parametrize(
    "beside",
    [
        {**CHAT, "body": body(ASKED, ANSWERED)},
        {"traceId": CHAT["trace_id"], "spanId": CHAT["span_id"], "timeUnixNano": "5", "observedTimeUnixNano": "6", "body": AS_EVENTS},
    ],
    ids=["bare", "record"],
)
def test_a_list_with_spans_and_records_beside_them(beside: dict[str, Any], tmp_path: Path) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    given = [{**CHAT, "name": "chat m", "start_time": 1, "end_time": 2, "attributes": attributes}, beside]
    (tmp_path / "given.json").write_text(json.dumps(given), encoding="utf-8")
    opened = open_source(str(tmp_path / "given.json"))
    step = only_step(*opened.records)
    assert (texts(step.input)[-1], texts(step.output)) == (("user", "How warm?"), [("assistant", "4 °C")])
    assert (opened.format, opened.report.logs, opened.report.rejected) == ("span-list", 1, 0)


def test_an_event_with_a_body_in_a_list_of_spans() -> None:
    (run,) = build_runs(open_source(str(HERE.parent / "fixtures/span_list/lines.jsonl")).records)
    step = next(step for step in run.steps if step.kind == "model_call")
    assert (texts(step.input), texts(step.output)) == ([("user", "how warm?")], [("assistant", "let me look")])


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "message", "messages", "id"]), inner),
    max_leaves=8,
)
SPANS: tuple[SpanRecord, ...] = (
    chat(1, content=False),
    tool(1, args=None, result=None),
    span(1, attributes={"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user"}),
    span(1, attributes={"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.role": 5, "llm.request.type": "chat"}),
)


@settings(max_examples=300 if FULL else 40, deadline=None)
@given(st.sampled_from(SPANS), st.fixed_dictionaries({}, optional={"input": ODD, "output": ODD}) | ODD)
def test_whatever_a_body_holds_nothing_is_raised(record: SpanRecord, held: Any) -> None:
    for wrapped in (held, {"input": {"messages": held}, "output": {"messages": [held]}}, json.dumps({"input": {"messages": [held]}})):
        (run,) = build_runs([record, log(1, "any.scope", {}, body=wrapped)])
        assert all(step.grade != "exact" for step in run.steps)
        json.dumps([jsonable(step.input) for step in run.steps])
