import json
from typing import Any

from fixtures.runs.spans import agent, span
from spanreplay.replay.dialects.logfire import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Scope, SpanRecord, Value

SCOPE = Scope(name="logfire.openai")
ASKED = {"model": "m", "messages": [{"role": "user", "content": "q"}], "temperature": 0.5}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"n":1}'}}]


def one(
    number: int, parent: int | None = None, *, name: str = "Chat Completion with {request_data[model]!r}", body: Any = ASKED, **more: Any
) -> SpanRecord:
    attributes: dict[str, Value] = {"request_data": json.dumps(body), a.GEN_AI_REQUEST_MODEL: "m", "logfire.span_type": "span"}
    attributes |= more.pop("attributes", {})
    return span(number, parent, name=name, scope=SCOPE, attributes=attributes, **more)


def remark(number: int, parent: int | None, answer: str, *, start: int, body: Any = ASKED, **more: Any) -> SpanRecord:
    told: dict[str, Value] = {
        "logfire.span_type": "log",
        "duration": 0.1,
        "response_data": json.dumps({"message": {"role": "assistant", "content": answer}, "usage": None}),
    }
    return one(
        number,
        parent,
        name="streaming response from {…}",
        body=body,
        attributes={**told, **more.pop("attributes", {})},
        start=start,
        end=start,
        **more,
    )


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_bodies_of_its_own_shape() -> None:
    answer = {"message": {"role": "assistant", "content": None, "tool_calls": CALLS, "refusal": None}, "usage": {}}
    draft = read(one(1, attributes={"response_data": json.dumps(answer)}))
    assert (draft.kind, draft.name, draft.grade) == ("model_call", "m", "semantic")
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert draft.input["params"]["temperature"] == 0.5
    assert draft.output["messages"][0]["parts"] == [{"id": "c1", "type": "tool_call", "name": "add", "arguments": {"n": 1}}]
    text = read(one(1, attributes={"response_data": '{"combined_chunk_content": "two", "chunk_count": 3}'}))
    assert text.output["messages"][0]["parts"] == [{"type": "text", "content": "two"}]


def test_events_of_the_responses_api() -> None:
    events = [
        {"event.name": "gen_ai.system.message", "content": "be kind", "role": "system"},
        {"event.name": "gen_ai.user.message", "content": "q", "role": "user"},
        {"event.name": "gen_ai.assistant.message", "content": "a", "role": "assistant"},
    ]
    draft = read(one(1, name="Responses API with {…}", body={"model": "m"}, attributes={"events": json.dumps(events)}))
    assert [message["role"] for message in draft.input["messages"]] == ["system", "user"]
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]


def test_a_stream_is_one_call_that_ends_with_its_remark() -> None:
    spans = [agent(1, end=100), one(2, 1, start=10, end=12), remark(3, 1, "a", start=30)]
    for records in (spans, spans[::-1]):
        (run,) = build_runs(records)
        (step,) = run.steps
        assert (step.span_id, step.started_ns, step.ended_ns, step.grade) == (spans[1].span_id, 10, 30, "semantic")
        assert step.output["messages"][0]["parts"] == [{"type": "text", "content": "a"}]
        assert run.unclassified_spans == 1


def test_each_of_several_streams_gets_its_own_answer() -> None:
    other = {**ASKED, "messages": [{"role": "user", "content": "r"}]}
    spans = [
        one(2, 1, start=10, end=12),
        one(3, 1, start=20, end=22, body=other),
        remark(4, 1, "to r", start=30, body=other),
        remark(5, 1, "to q", start=40),
        one(6, 1, start=50, end=52),
        remark(7, 1, "to q again", start=60),
        remark(8, 9, "elsewhere", start=70),
    ]
    (run,) = build_runs([agent(1, end=100), *spans])
    said = [step.output["messages"][0]["parts"][0]["content"] for step in run.steps]
    assert said == ["to q", "to r", "to q again"]


def test_a_stream_that_broke_is_an_error() -> None:
    broken = remark(3, 1, "a", start=30, attributes={a.ERROR_TYPE: "ReadError"}, status=STATUS_ERROR, status_message="gone")
    (run,) = build_runs([agent(1, end=100), one(2, 1, start=10, end=12), broken])
    assert [(step.outcome, step.error) for step in run.steps] == [("error", {"type": "ReadError", "message": "gone"})]


def test_other_requests_are_not_claimed() -> None:
    assert not DIALECT.claims(one(1, name="Embedding Creation with {request_data[model]!r}"))
    assert not DIALECT.claims(remark(1, None, "a", start=0))
    assert not DIALECT.claims(span(1, name="Chat Completion with m"))
