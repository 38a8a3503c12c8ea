"""Events of one message each, in the forms in which they are really written."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import chat, event, log
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.reading.spoken import CHOICE, NAMES, spoken
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASKED = [
    {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
    {"role": "user", "parts": [{"type": "text", "content": "1+1?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_0", "name": "add", "arguments": {"a": 0}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_0", "response": "0"}]},
]
ANSWERED = [
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "call_1", "name": "add", "arguments": {"a": 1}}],
        "finish_reason": "tool_calls",
    }
]
BEFORE = {"id": "call_0", "type": "function", "function": {"name": "add", "arguments": '{"a": 0}'}}

BODIES: list[tuple[str, dict[str, Any]]] = [
    ("gen_ai.system.message", {"content": "be brief"}),
    ("gen_ai.user.message", {"content": "1+1?", "role": "user"}),
    ("gen_ai.assistant.message", {"tool_calls": [BEFORE]}),
    ("gen_ai.tool.message", {"content": "0", "id": "call_0"}),
]
BESIDE = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant"}, "tool_calls": [CALL]}
INSIDE = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}
AS_TEXT = {"finish_reason": "tool_calls", "message": json.dumps({"role": "assistant", "tool_calls": [CALL]})}
TRACELOOP = {"id": "call_1", "type": "function", "function": {"function_name": "add", "arguments": '{"a": 1}'}}
OTHER_NAMES = {"finish_reason": "tool_calls", "message": {}, "tool_calls": [TRACELOOP]}


@pytest.mark.parametrize("choice", [BESIDE, INSIDE, AS_TEXT, OTHER_NAMES], ids=["beside", "inside", "text", "function_name"])
@pytest.mark.parametrize("form", ["event_name", "attribute", "body-text", "in-attributes", "span-events"])
def test_the_same_is_understood_in_every_form(choice: dict[str, Any], form: str) -> None:
    bodies = [*BODIES, (CHOICE, choice)]
    kind = {"gen_ai.system": "openai"}
    record, logs = chat(1, content=False), []
    if form == "event_name":
        logs = [log(1, name, kind, body=body, time=time) for time, (name, body) in enumerate(bodies)]
    elif form == "attribute":
        logs = [log(1, "", {"event.name": name}, body=body, time=time) for time, (name, body) in enumerate(bodies)]
    elif form == "body-text":
        logs = [log(1, "", {"event.name": name}, body=json.dumps(body), time=time) for time, (name, body) in enumerate(bodies)]
    elif form == "in-attributes":
        logs = [log(1, name, {**kind, **body}, time=time) for time, (name, body) in enumerate(bodies)]
    else:
        texts = [(name, {k: v if isinstance(v, str | int) else json.dumps(v) for k, v in body.items()}) for name, body in bodies]
        record = chat(1, content=False, events=tuple(event(name, {**kind, **body}, time=time) for time, (name, body) in enumerate(texts)))
    (run,) = build_runs([record, *logs])
    (step,) = run.steps
    assert (step.input["messages"], step.output["messages"]) == (ASKED, ANSWERED)
    assert (step.output["finish"], step.grade) == ("tool_calls", "semantic")


def test_messages_of_1_27_stand_in_one_event_each() -> None:
    asked = event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": "hi"}])})
    answered = event("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": "ho"}])})
    (run,) = build_runs([chat(1, content=False, events=(asked, answered))])
    assert run.steps[0].input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert run.steps[0].output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}]
    plain = spoken([{"event.name": "gen_ai.content.prompt", "gen_ai.prompt": "hi"}])
    assert plain.asked == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]


def test_a_list_in_one_attribute_is_read_by_the_same_function() -> None:
    events: list[dict[str, Any]] = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "hi", "gen_ai.message.index": 0, "gen_ai.system": "openai"},
        {"event.name": CHOICE, "index": 0, "message": {"role": "assistant", "content": "ho"}},
        {"event.name": "something.else", "content": "no"},
        {"content": "nameless"},
    ]
    assert spoken(events) == (
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}],
        (),
    )


def test_blocks_in_an_attribute_are_blocks_and_other_text_is_what_was_said() -> None:
    def said(content: str) -> Any:
        asked = spoken([{"event.name": "gen_ai.user.message", "content": content}], encoded=True).asked
        return asked[0]["parts"] if asked else None

    assert said('[{"text": "a"}, {"text": "b"}]') == [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]
    for text in ('[{"a": 1}]', "[1, 2, 3]", "[]", "null", '{"text": "a"}', "[note]"):
        assert said(text) == [{"type": "text", "content": text}]
    unencoded = spoken([{"event.name": "gen_ai.user.message", "content": '[{"text": "a"}]'}]).asked
    assert unencoded == [{"role": "user", "parts": [{"type": "text", "content": '[{"text": "a"}]'}]}], "a body needs no JSON text"


def test_several_choices_are_several_messages() -> None:
    answered = spoken([{"event.name": CHOICE, "index": n, "message": {"content": str(n)}} for n in range(2)]).answered
    assert [message["parts"][0]["content"] for message in answered or ()] == ["0", "1"]


OFF: list[tuple[str, dict[str, Any]]] = [
    ("gen_ai.user.message", {}),
    ("gen_ai.assistant.message", {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "add"}}]}),
    ("gen_ai.tool.message", {"id": "c"}),
    (CHOICE, {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}),
]


@pytest.mark.parametrize("sentinel", [None, "<elided>", "<REDACTED>"])
def test_events_without_content_are_none(sentinel: str | None) -> None:
    more = {} if sentinel is None else {"content": sentinel}
    told = spoken([{"event.name": name, **body, **more} for name, body in OFF])
    assert (told.asked, told.answered) == (None, None)
    (run,) = build_runs([chat(1, content=False), *(log(1, name, {}, body=body) for name, body in OFF)])
    assert run.steps[0].grade == "structure"


def test_an_empty_answer_to_a_question_that_was_captured_is_an_answer() -> None:
    told = spoken(
        [{"event.name": "gen_ai.user.message", "content": "hi"}, {"event.name": CHOICE, "finish_reason": "length", "message": {}}]
    )
    assert told.answered == [{"role": "assistant", "parts": [], "finish_reason": "length"}]


def test_attributes_and_the_present_event_win() -> None:
    old = [log(1, "gen_ai.user.message", {}, body={"content": "old"}), log(1, CHOICE, {}, body={"message": {"content": "old"}})]
    told = log(
        1, a.GEN_AI_INFERENCE_DETAILS_EVENT, {a.GEN_AI_INPUT_MESSAGES: '[{"role":"user","parts":[{"type":"text","content":"new"}]}]'}
    )
    assert build_runs([chat(1), *old])[0].steps[0].input["messages"][0]["parts"][0]["content"] == "hello"
    step = build_runs([chat(1, content=False), *old, told])[0].steps[0]
    assert step.input["messages"][0]["parts"][0]["content"] == "new"
    assert step.output["messages"][0]["parts"][0]["content"] == "old"


def test_what_is_cut_is_said_and_lowers_the_grade() -> None:
    cut = event("gen_ai.user.message", {"content": '[{"text": "a long sto'})
    (run,) = build_runs([chat(1, content=False, events=(cut, event(CHOICE, {"message": "ho"})))])
    (step,) = run.steps
    assert step.grade == "incomplete"
    assert any(reason.code == "cut" and "gen_ai.user.message" in reason.detail for reason in step.reasons)
    assert step.input["messages"][0]["parts"][0]["content"] == '[{"text": "a long sto'
    assert with_content(chat(1, events=(cut,)), []).cut == (), "the span has its own"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.binary(max_size=2)
    | st.sampled_from(['[{"', '[{"text":1}]', '{"content":[0]}']),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["role", "content", "function", "type", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(["role", "content", "tool_calls", "message", "parts", "id", "finish_reason", "gen_ai.prompt", "gen_ai.completion"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(NAMES)), st.dictionaries(FIELDS, VALUES, max_size=5)), max_size=3), st.booleans())
def test_no_event_costs_a_span(events: list[tuple[str, dict[str, Any]]], encoded: bool) -> None:
    told = spoken([{**fields, "event.name": name} for name, fields in events], encoded=encoded)
    json.dumps([told.asked, told.answered])
    (run,) = build_runs([chat(1, content=False), *(log(1, name, {}, body=fields) for name, fields in events)])
    assert "unreadable" not in {reason.code for reason in run.grade_reasons}
